# get in its common forms.
$ kubectl create configmap b --from-literal=x=2
configmap/b created
$ kubectl create configmap a --from-literal=x=1 --from-literal=z=1
configmap/a created
$ kubectl label configmap a tier=front
configmap/a labeled
$ kubectl create namespace other
namespace/other created
$ kubectl create configmap c -n other --from-literal=x=3
configmap/c created

$ kubectl get configmaps
NAME   DATA   AGE
a      2      *s
b      1      *s
$ kubectl get cm a --show-labels
NAME   DATA   AGE   LABELS
a      2      *s    tier=front
$ kubectl get cm a -o name
configmap/a
$ kubectl get cm a -o jsonpath='{.data.x}{"\n"}'
1
$ kubectl get cm a -o go-template='{{.metadata.name}}{{"\n"}}'
a
$ kubectl get cm -o custom-columns=NAME:.metadata.name,X:.data.x
NAME   X
a      1
b      2
$ kubectl get cm a -o yaml
apiVersion: v1
data:
  x: "1"
  z: "1"
kind: ConfigMap
metadata:
  creationTimestamp: "*Z"
  labels:
    tier: front
  name: a
  namespace: default
  resourceVersion: "*"
  uid: *
$ kubectl get cm a -o json | grep '"kind"'
    "kind": "ConfigMap",
$ kubectl get cm --sort-by=.data.x -o name
configmap/a
configmap/b
$ kubectl get cm --sort-by='{.metadata.creationTimestamp}' --no-headers | wc -l | tr -d ' '
2
$ kubectl get cm -A -o name | sort
configmap/a
configmap/b
configmap/c
...
$ kubectl get cm -A -l tier=front
NAMESPACE   NAME   DATA   AGE
default     a      2      *s
$ kubectl get cm -l 'tier notin (front)' -o name
configmap/b
$ kubectl get cm -A --field-selector=metadata.name=c -o name
configmap/c
$ kubectl get cm -A --field-selector=data.x=1
Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "", field selector "data.x=1": *
[1]
$ kubectl get cm/a ns/default -o name
configmap/a
namespace/default
$ kubectl get cm --chunk-size=1 -o name
configmap/a
configmap/b
$ kubectl get pods
No resources found in default namespace.
$ kubectl get cm missing
Error from server (NotFound): configmaps "missing" not found
[1]
$ kubectl get nonsense
error: the server doesn't have a resource type "nonsense"
[1]
$ kubectl get --raw /api/v1/namespaces/default/configmaps/a | head -c 40
{"kind":"ConfigMap","apiVersion":"v1",*

# Columns of -o wide, and tables of several kinds.
$ kubectl run web --image=nginx --labels=app=web
pod/web created
$ kubectl get pods -o wide
NAME   READY   STATUS    RESTARTS   AGE   IP       NODE     NOMINATED NODE   READINESS GATES
web    0/1     Pending   0          *s    <none>   <none>   <none>           <none>
$ kubectl get pods --field-selector=status.phase=Pending -o name
pod/web
$ kubectl get pods --field-selector=status.phase=Running
No resources found in default namespace.
$ kubectl get all
NAME      READY   STATUS    RESTARTS   AGE
pod/web   0/1     Pending   0          *s

NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
service/kubernetes   ClusterIP   *   <none>        443/TCP   *s

# Watching.
$ kubectl get cm a -w -o jsonpath='{.data.x}{"\n"}' > seen & watch=$!
> until grep -q 1 seen; do sleep 0.05; done
> kubectl patch cm a -p '{"data":{"x":"4"}}'
> until grep -q 4 seen; do sleep 0.05; done
> kill $watch; cat seen
configmap/a patched
1
4
$ kubectl get pods -w > table & watch=$!
> until grep -q web table; do sleep 0.05; done
> kubectl label pod web x=y
> until [ "$(grep -c web table)" = 2 ]; do sleep 0.05; done
> kill $watch; cat table
pod/web labeled
NAME   READY   STATUS    RESTARTS   AGE
web    0/1     Pending   0          *s
web    0/1     Pending   0          *s

$ kubectl describe cm a
Name:         a
Namespace:    default
Labels:       tier=front
Annotations:  <none>

Data
====
x:
----
4

z:
----
1


BinaryData
====

Events:  <none>
$ kubectl describe pod web
Name:         web
Namespace:    default
Priority:     0
...
Labels:       app=web
              x=y
Annotations:  <none>
Status:       Pending
...
Containers:
  web:
    Image:        nginx
...
Events:           <none>

# Events are found by the object that they are about.
$ kubectl create -f - <<END
> apiVersion: v1
> kind: Event
> metadata: {name: web.1, namespace: default}
> involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: default}
> reason: Scheduled
> message: put on a node
> type: Normal
> lastTimestamp: "2026-01-01T00:00:00Z"
> source: {component: scheduler}
> END
event/web.1 created
$ kubectl get events
LAST SEEN   TYPE     REASON      OBJECT    MESSAGE
*   Normal   Scheduled   pod/web   put on a node
$ kubectl events --for pod/web
LAST SEEN   TYPE     REASON      OBJECT    MESSAGE
*   Normal   Scheduled   Pod/web   put on a node
$ kubectl get events --field-selector=involvedObject.kind=Pod,involvedObject.name=web -o name
event/web.1
