# delete in all its forms, and wait. There are no controllers here, so dependents are not collected.
$ kubectl create configmap a
configmap/a created
$ kubectl delete configmap a
configmap "a" deleted*
$ kubectl delete configmap a
Error from server (NotFound): configmaps "a" not found
[1]
$ kubectl delete configmap a --ignore-not-found

$ kubectl create configmap kept
configmap/kept created
$ kubectl patch cm kept --type=merge -p '{"metadata":{"finalizers":["example.com/wait"]}}'
configmap/kept patched
$ kubectl delete cm kept --wait=false
configmap "kept" deleted*
$ kubectl delete cm kept --timeout=1s
configmap "kept" deleted*
error: timed out waiting for the condition on configmaps/kept
[1]
$ kubectl wait --for=delete cm/kept --timeout=30s & waits=$!
> kubectl patch cm kept --type=merge -p '{"metadata":{"finalizers":null}}'
> wait $waits
configmap/kept *
...

$ kubectl create deployment web --image=nginx
deployment.apps/web created
$ kubectl delete deployment web --cascade=foreground --wait=false
deployment.apps "web" deleted*
$ kubectl get deploy web -o jsonpath='{.metadata.finalizers}{"\n"}'
["foregroundDeletion"]
$ kubectl patch deploy web --type=merge -p '{"metadata":{"finalizers":null}}'
deployment.apps/web patched
$ kubectl create deployment web --image=nginx
deployment.apps/web created
$ kubectl delete deployment web --cascade=orphan --wait=false
deployment.apps "web" deleted*
$ kubectl get deploy web -o jsonpath='{.metadata.finalizers}{"\n"}'
["orphan"]
$ kubectl patch deploy web --type=merge -p '{"metadata":{"finalizers":null}}'
deployment.apps/web patched
$ kubectl create deployment web --image=nginx
deployment.apps/web created
$ kubectl delete deployment web --cascade=background
deployment.apps "web" deleted*

$ kubectl run pod --image=busybox
pod/pod created
$ kubectl delete pod pod --grace-period=0 --force
Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
pod "pod" force deleted*
$ kubectl get pods
No resources found in default namespace.
$ kubectl run pod --image=busybox
pod/pod created
$ kubectl delete pod pod --now
pod "pod" deleted*

$ kubectl create configmap a
configmap/a created
$ kubectl create configmap b
configmap/b created
$ kubectl label cm a b group=x
configmap/a labeled
configmap/b labeled
$ kubectl delete cm -l group=x
configmap "a" deleted*
configmap "b" deleted*
$ kubectl create configmap a
configmap/a created
$ kubectl delete cm a --dry-run=server
configmap "a" deleted*
$ kubectl delete cm --all
configmap "a" deleted*
...
$ kubectl delete ns kube-system
Error from server (Forbidden): namespaces "kube-system" is forbidden: this namespace may not be deleted
[1]

# Waiting for conditions and for values.
$ kubectl create deployment web --image=nginx
deployment.apps/web created
$ kubectl wait --for=condition=Available deploy/web --timeout=100ms
error: timed out waiting for the condition on deployments/web
[1]
$ kubectl wait --for=condition=Available deploy/web --timeout=30s > waited & waits=$!
> kubectl patch deploy web --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Available","status":"True","reason":"R","message":"m"}],"replicas":1}}' > /dev/null
> wait $waits; cat waited
deployment.apps/web condition met
$ kubectl wait --for=jsonpath='{.status.replicas}'=1 deploy/web --timeout=30s
deployment.apps/web condition met
$ kubectl wait --for=create cm/later --timeout=30s > created & waits=$!
> kubectl create configmap later > /dev/null
> wait $waits; cat created
configmap/later condition met
