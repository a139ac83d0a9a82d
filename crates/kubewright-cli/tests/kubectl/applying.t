# apply, client-side and server-side.
$ cat > app.yaml <<END
> apiVersion: v1
> kind: ConfigMap
> metadata: {name: app, labels: {tier: front}}
> data: {a: "1", b: "1"}
> ---
> apiVersion: apps/v1
> kind: Deployment
> metadata: {name: web}
> spec:
>   replicas: 1
>   selector: {matchLabels: {app: web}}
>   template:
>     metadata: {labels: {app: web}}
>     spec:
>       containers:
>       - {name: web, image: "nginx:1", ports: [{containerPort: 80}]}
>       - {name: side, image: "side:1"}
> END
$ kubectl diff -f app.yaml | grep -c '^+' | tr -d ' '
*
$ kubectl apply -f app.yaml --dry-run=server
configmap/app created (server dry run)
deployment.apps/web created (server dry run)
$ kubectl get cm app
Error from server (NotFound): configmaps "app" not found
[1]
$ kubectl apply -f app.yaml --dry-run=client -o name
configmap/app
deployment.apps/web
$ kubectl apply -f app.yaml
configmap/app created
deployment.apps/web created
$ kubectl apply -f app.yaml
configmap/app unchanged
deployment.apps/web unchanged
$ kubectl diff -f app.yaml

# What goes from the file goes from the object; what others added stays. Lists merge by their keys.
$ kubectl label cm app other=kept
configmap/app labeled
$ kubectl set image deployment/web side=side:2
deployment.apps/web image updated
$ sed -i.old -e 's/, b: "1"/, c: "2"/' -e 's/nginx:1/nginx:2/' -e 's/side:1/side:2/' app.yaml
$ kubectl diff -f app.yaml
diff -u -N */apps.v1.Deployment.default.web *
...
-      - image: nginx:1
+      - image: nginx:2
...
diff -u -N */v1.ConfigMap.default.app *
...
-  b: "1"
+  c: "2"
...
[1]
$ kubectl apply -f app.yaml
configmap/app configured
deployment.apps/web configured
$ kubectl get cm app -o jsonpath='{.data}{.metadata.labels}{"\n"}'
{"a":"1","c":"2"}{"other":"kept","tier":"front"}
$ kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[*].image}{"\n"}'
nginx:2 side:2
$ kubectl apply view-last-applied cm/app
apiVersion: v1
data:
  a: "1"
  c: "2"
...

# On the server's side, with conflicts.
$ cat > theirs.yaml <<END
> apiVersion: v1
> kind: ConfigMap
> metadata: {name: app}
> data: {a: theirs}
> END
$ kubectl apply --server-side --field-manager=them -f theirs.yaml
error: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.a
Please review the fields above--they currently have other managers. Here
...
[1]
$ kubectl apply --server-side --field-manager=them --force-conflicts -f theirs.yaml
configmap/app serverside-applied
# kubectl hands what it applied itself over to the new manager, who does not mention it and so gives it up.
$ kubectl get cm app -o jsonpath='{.data}{"\n"}'
{"a":"theirs"}
$ kubectl get cm app --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation}{"\n"}{end}' | sort
kubectl-label Update
them Apply
$ kubectl diff --server-side --field-manager=them -f theirs.yaml
$ kubectl apply --server-side --field-manager=them -f theirs.yaml -o jsonpath='{.data.a}{"\n"}'
theirs

# Unknown fields.
$ cat > typo.yaml <<END
> apiVersion: v1
> kind: ConfigMap
> metadata: {name: typo}
> date: {a: "1"}
> END
$ kubectl apply -f typo.yaml
Error from server (BadRequest): error when creating "typo.yaml": ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "date"
[1]
$ kubectl apply --validate=strict -f typo.yaml
Error from server (BadRequest): error when creating "typo.yaml": *unknown field "date"
[1]
$ kubectl apply --validate=warn -f typo.yaml
Warning: unknown field "date"
configmap/typo created
$ kubectl apply --validate=ignore -f typo.yaml
configmap/typo configured
$ kubectl create -f typo.yaml
Error from server (BadRequest): error when creating "typo.yaml": *unknown field "date"
[1]

# create and replace.
$ kubectl create -f theirs.yaml
Error from server (AlreadyExists): error when creating "theirs.yaml": configmaps "app" already exists
[1]
$ kubectl replace -f theirs.yaml
configmap/app replaced
$ kubectl get cm app -o jsonpath='{.data}{"\n"}'
{"a":"theirs"}
$ kubectl create secret generic s --from-literal=k=v -o jsonpath='{.data.k}{"\n"}'
dg==
$ kubectl create -f - <<END
> apiVersion: v1
> kind: Secret
> metadata: {generateName: made-}
> stringData: {k: v}
> END
secret/made-* created
