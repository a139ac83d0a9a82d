# Workloads without controllers.
$ kubectl run one --image=busybox --env=A=1 --port=80 -- sleep 1
pod/one created
$ kubectl get pod one -o jsonpath='{.spec.containers[0].args} {.spec.containers[0].ports[0].containerPort} {.spec.restartPolicy}{"\n"}'
["sleep","1"] 80 Always
$ kubectl create deployment web --image=nginx --replicas=2 --port=8080
deployment.apps/web created
$ kubectl get deploy
NAME   READY   UP-TO-DATE   AVAILABLE   AGE
web    0/2     0            0           *s
$ kubectl expose deployment web --port=80 --target-port=8080
service/web exposed
$ kubectl get service web
NAME   TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
web    ClusterIP   10.*   <none>        80/TCP    *s
$ kubectl create service nodeport np --tcp=80:8080
service/np created
$ kubectl get svc np -o jsonpath='{.spec.type} {.spec.ports[0].targetPort}{"\n"}'
NodePort 8080
$ kubectl create ingress in --rule='example.com/*=web:80'
ingress.networking.k8s.io/in created
$ kubectl get ingress in
NAME   CLASS    HOSTS         ADDRESS   PORTS   AGE
in     <none>   example.com             80      *s
$ kubectl describe deployment web
Name:                   web
Namespace:              default
...
Selector:               app=web
Replicas:               2 desired | 0 updated | 0 total | 0 available | 0 unavailable
StrategyType:           RollingUpdate
...
Events:            <none>

# A rollout, as the status of a deployment tells it.
$ kubectl rollout status deploy/web --watch=false
Waiting for deployment spec update to be observed...
$ kubectl patch deploy web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":1}}'
deployment.apps/web patched
$ kubectl rollout status deploy/web --watch=false
Waiting for deployment "web" rollout to finish: 1 out of 2 new replicas have been updated...
$ kubectl rollout status deploy/web --timeout=30s > status & waits=$!
> until [ -s status ]; do sleep 0.05; done
> kubectl patch deploy web --subresource=status --type=merge -p '{"status":{"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}' > /dev/null
> wait $waits; cat status
Waiting for deployment "web" rollout to finish: 1 out of 2 new replicas have been updated...
deployment "web" successfully rolled out
$ kubectl rollout history deploy/web
deployment.apps/web *
No rollout history found.
$ kubectl create -f - <<END
> apiVersion: apps/v1
> kind: ReplicaSet
> metadata:
>   name: web-1
>   labels: {app: web}
>   annotations: {deployment.kubernetes.io/revision: "1", kubernetes.io/change-cause: the first}
>   ownerReferences:
>   - {apiVersion: apps/v1, kind: Deployment, name: web, controller: true, uid: $(kubectl get deploy web -o jsonpath='{.metadata.uid}')}
> spec:
>   selector: {matchLabels: {app: web}}
>   template:
>     metadata: {labels: {app: web}}
>     spec: {containers: [{name: nginx, image: "nginx:0"}]}
> END
replicaset.apps/web-1 created
$ kubectl rollout history deploy/web
deployment.apps/web *
REVISION  CHANGE-CAUSE
1         the first
$ kubectl rollout history deploy/web --revision=1
deployment.apps/web with revision #1
Pod Template:
...
    Image:	nginx:0
...
$ kubectl rollout restart deploy/web
deployment.apps/web restarted
$ kubectl rollout pause deploy/web
deployment.apps/web paused
$ kubectl rollout resume deploy/web
deployment.apps/web resumed
$ kubectl rollout undo deploy/web --to-revision=1
deployment.apps/web rolled back
$ kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[0].image}{"\n"}'
nginx:0

# Jobs.
$ kubectl create job once --image=busybox -- true
job.batch/once created
$ kubectl create cronjob often --image=busybox --schedule='*/5 * * * *' -- true
cronjob.batch/often created
$ kubectl create job now --from=cronjob/often
job.batch/now created
$ kubectl get job now -o jsonpath='{.metadata.ownerReferences[0].kind} {.metadata.annotations}{"\n"}'
CronJob {"cronjob.kubernetes.io/instantiate":"manual"}
$ kubectl get cronjobs,jobs
NAME                  SCHEDULE      TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE
cronjob.batch/often   */5 * * * *   <none>     False     0        <none>          *s

NAME             STATUS    COMPLETIONS   DURATION   AGE
job.batch/now    *   0/1           *s
job.batch/once   *   0/1           *s
$ kubectl create poddisruptionbudget pdb --selector=app=web --min-available=1
poddisruptionbudget.policy/pdb created
$ kubectl create quota q --hard=pods=5,cpu=2
resourcequota/q created
$ kubectl describe quota q
Name:       q
Namespace:  default
Resource    Used  Hard
--------    ----  ----
$ kubectl create priorityclass high --value=1000
priorityclass.scheduling.k8s.io/high created
# No node, no log.
$ kubectl logs one
