# Cluster information, nodes and authorization.
$ kubectl version
Client Version: v1.*
Kustomize Version: *
Server Version: v1.*
...
$ kubectl cluster-info
*Kubernetes control plane*is running at*https://127.0.0.1:*

To further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.
$ kubectl config current-context
kubewright
$ kubectl config get-contexts
CURRENT   NAME         CLUSTER      AUTHINFO           NAMESPACE
*         kubewright   kubewright   kubernetes-admin*
$ kubectl config view -o jsonpath='{.clusters[0].name} {.users[0].name}{"\n"}'
kubewright kubernetes-admin
$ kubectl config set-context --current --namespace=kube-system
Context "kubewright" modified.
$ kubectl get cm missing
Error from server (NotFound): configmaps "missing" not found
[1]
$ kubectl config set-context --current --namespace=default
Context "kubewright" modified.
$ kubectl api-versions
admissionregistration.k8s.io/v1
apiextensions.k8s.io/v1
apiregistration.k8s.io/v1
apps/v1
authentication.k8s.io/v1
authorization.k8s.io/v1
autoscaling/v1
autoscaling/v2
batch/v1
certificates.k8s.io/v1
coordination.k8s.io/v1
discovery.k8s.io/v1
events.k8s.io/v1
networking.k8s.io/v1
node.k8s.io/v1
policy/v1
rbac.authorization.k8s.io/v1
scheduling.k8s.io/v1
storage.k8s.io/v1
v1
$ kubectl api-resources --api-group=apps
NAME                  SHORTNAMES   APIVERSION   NAMESPACED   KIND
controllerrevisions                apps/v1      true         ControllerRevision
daemonsets            ds           apps/v1      true         DaemonSet
deployments           deploy       apps/v1      true         Deployment
replicasets           rs           apps/v1      true         ReplicaSet
statefulsets          sts          apps/v1      true         StatefulSet
$ kubectl api-resources --namespaced=false --verbs=list -o name | grep -c . | tr -d ' '
*
$ kubectl api-resources --categories=all -o name | sort
cronjobs.batch
daemonsets.apps
deployments.apps
horizontalpodautoscalers.autoscaling
jobs.batch
pods
replicasets.apps
replicationcontrollers
services
statefulsets.apps
$ kubectl get namespaces -o name
namespace/default
namespace/kube-node-lease
namespace/kube-public
namespace/kube-system
$ kubectl get --raw /readyz
ok

# Nodes.
$ kubectl create -f - <<END
> apiVersion: v1
> kind: Node
> metadata: {name: n1}
> END
node/n1 created
$ kubectl taint nodes n1 dedicated=web:NoSchedule
node/n1 tainted
$ kubectl cordon n1
node/n1 cordoned
$ kubectl get nodes
NAME   STATUS                       ROLES    AGE   VERSION
n1     Unknown,SchedulingDisabled   <none>   *s*
$ kubectl get node n1 -o jsonpath='{.spec.unschedulable} {.spec.taints[?(@.key=="dedicated")].value}{"\n"}'
true web
$ kubectl drain n1 --ignore-daemonsets
node/n1 already cordoned
node/n1 drained
$ kubectl uncordon n1
node/n1 uncordoned
$ kubectl taint nodes n1 dedicated-
node/n1 untainted
$ kubectl describe node n1
Name:               n1
Roles:              <none>
...
Unschedulable:      false
...

# Who one is, and what one may do.
$ kubectl auth whoami
ATTRIBUTE*VALUE
Username*kubernetes-admin
Groups*[system:masters system:authenticated]
...
$ kubectl auth can-i create pods
yes
$ kubectl auth can-i create pods --as=alice
no
[1]
$ kubectl create serviceaccount bot
serviceaccount/bot created
$ kubectl create role reader --verb=get,list --resource=configmaps
role.rbac.authorization.k8s.io/reader created
$ kubectl create rolebinding bot-reads --role=reader --serviceaccount=default:bot
rolebinding.rbac.authorization.k8s.io/bot-reads created
$ kubectl auth can-i list configmaps --as=system:serviceaccount:default:bot
yes
$ kubectl auth can-i delete configmaps --as=system:serviceaccount:default:bot
no
[1]
$ kubectl auth can-i --list --as=system:serviceaccount:default:bot
Resources*Non-Resource URLs*Resource Names*Verbs
...
configmaps*[get list]
...
$ kubectl get secrets --as=system:serviceaccount:default:bot
Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:default:bot" cannot list resource "secrets" in API group "" in the namespace "default"
[1]
$ kubectl create token bot --duration=1h > token; tr -cd . < token | wc -c | tr -d ' '
2
$ kubectl --kubeconfig=/dev/null --server="$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')" --insecure-skip-tls-verify --token="$(cat token)" auth whoami -o jsonpath='{.status.userInfo.username}{"\n"}'
system:serviceaccount:default:bot
$ kubectl create clusterrole everything --verb='*' --resource='*' --as=system:serviceaccount:default:bot
Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:default:bot" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope
[1]
$ kubectl auth reconcile -f - <<END
> apiVersion: rbac.authorization.k8s.io/v1
> kind: Role
> metadata: {name: reader, namespace: default}
> rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
> END
role.rbac.authorization.k8s.io/reader reconciled
	reconciliation required update
	missing rules added:
		{Verbs:[get] APIGroups:[] Resources:[secrets] ResourceNames:[] NonResourceURLs:[]}
$ kubectl certificate approve nobody
Error from server (NotFound): certificatesigningrequests.certificates.k8s.io "nobody" not found
[1]
