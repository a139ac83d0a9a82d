# patch in three forms, label, annotate, edit, scale, set.
$ kubectl create deployment web --image=nginx:1 --replicas=2
deployment.apps/web created
$ kubectl create configmap app --from-literal=a=1
configmap/app created

$ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
deployment.apps/web patched
$ kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
side nginx
$ kubectl patch cm app --type=merge -p '{"data":{"a":null,"b":"2"}}'
configmap/app patched
$ kubectl patch cm app --type=json -p '[{"op":"test","path":"/data/b","value":"2"},{"op":"add","path":"/data/c","value":"3"}]'
configmap/app patched
$ kubectl get cm app -o jsonpath='{.data}{"\n"}'
{"b":"2","c":"3"}
$ kubectl patch cm app --type=json -p '[{"op":"remove","path":"/data/missing"}]'
The request is invalid: the server rejected our request due to an error in our request
[1]
$ kubectl patch cm app --type=merge -p '{"data":{"b":"2"}}'
configmap/app patched (no change)
$ kubectl patch deploy web --subresource=status --type=merge -p '{"status":{"replicas":2}}'
deployment.apps/web patched

$ kubectl label cm app tier=front
configmap/app labeled
$ kubectl label cm app tier=back
error: 'tier' already has a value (front), and --overwrite is false
[1]
$ kubectl label cm app tier=back --overwrite
configmap/app labeled
$ kubectl label cm app tier-
configmap/app unlabeled
$ kubectl annotate cm app note='for the reader'
configmap/app annotated
$ kubectl annotate cm -l nothing=here x=y
$ kubectl label cm app 'bad key=x'
The ConfigMap "app" is invalid: metadata.labels: Invalid value: "bad key": name part must consist of alphanumeric characters, *
[1]
$ kubectl label cm app tier='not/a value'
error: invalid label value: "tier=not/a value": *
[1]

$ kubectl scale deploy web --replicas=3
deployment.apps/web scaled
$ kubectl scale deploy web --current-replicas=2 --replicas=4
error: Expected replicas to be 2, was 3
[1]
$ kubectl get deploy web --subresource=scale
NAME   DESIRED   AVAILABLE   AGE
web    3         2           *s
$ kubectl autoscale deploy web --min=2 --max=5
horizontalpodautoscaler.autoscaling/web autoscaled
$ kubectl get hpa web -o jsonpath='{.spec.minReplicas}-{.spec.maxReplicas}{"\n"}'
2-5

$ KUBE_EDITOR="sed -i.old -e s/nginx:1/nginx:7/" kubectl edit deploy web
deployment.apps/web edited
$ KUBE_EDITOR=true kubectl edit deploy web
Edit cancelled, no changes made.
$ KUBE_EDITOR="sed -i.old -e s/replicas:.3/replicas:.many/" kubectl edit deploy web
error: deployments.apps "web" is invalid
A copy of your changes has been stored to "*"
error: Edit cancelled, no valid changes were saved.
[1]
$ kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[1].image} {.spec.replicas}{"\n"}'
nginx:7 3

$ kubectl set image deploy/web nginx=nginx:8 side=side:2
deployment.apps/web image updated
$ kubectl set env deploy/web --containers=nginx KEY=value
deployment.apps/web env updated
$ kubectl set env deploy/web --list --containers=nginx
*Deployment web, container nginx
KEY=value
$ kubectl set resources deploy/web -c=nginx --limits=cpu=1500m,memory=1Gi
deployment.apps/web resource requirements updated
$ kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[1].resources}{"\n"}'
{"limits":{"cpu":"1500m","memory":"1Gi"}}
$ kubectl set serviceaccount deploy/web bot
deployment.apps/web serviceaccount updated
$ kubectl set selector service kubernetes x=y --dry-run=server -o jsonpath='{.spec.selector}{"\n"}'
{"x":"y"}
