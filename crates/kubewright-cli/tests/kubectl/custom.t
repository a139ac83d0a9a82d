# Custom resources: definition, explain, use, deletion.
$ cat > crd.yaml <<END
> apiVersion: apiextensions.k8s.io/v1
> kind: CustomResourceDefinition
> metadata: {name: widgets.stable.example.com}
> spec:
>   group: stable.example.com
>   scope: Namespaced
>   names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
>   versions:
>   - name: v1
>     served: true
>     storage: true
>     subresources:
>       status: {}
>       scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
>     additionalPrinterColumns:
>     - {name: Color, type: string, jsonPath: .spec.color}
>     schema:
>       openAPIV3Schema:
>         type: object
>         description: A thing that does something.
>         properties:
>           spec:
>             type: object
>             description: What it should do.
>             required: [color]
>             properties:
>               color: {type: string, description: How it looks., enum: [red, blue]}
>               size: {type: integer, default: 1}
>               parts:
>                 type: array
>                 x-kubernetes-list-type: map
>                 x-kubernetes-list-map-keys: [name]
>                 items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}
>           status:
>             type: object
>             properties: {size: {type: integer}, phase: {type: string}}
> END
$ kubectl apply -f crd.yaml
customresourcedefinition.apiextensions.k8s.io/widgets.stable.example.com created
$ kubectl wait --for=condition=Established crd/widgets.stable.example.com --timeout=30s
customresourcedefinition.apiextensions.k8s.io/widgets.stable.example.com condition met
$ kubectl api-resources --api-group=stable.example.com
NAME      SHORTNAMES   APIVERSION              NAMESPACED   KIND
widgets   wd           stable.example.com/v1   true         Widget
$ kubectl explain widgets
GROUP:      stable.example.com
KIND:       Widget
VERSION:    v1

DESCRIPTION:
    A thing that does something.
...
  spec	<Object>
    What it should do.
...
$ kubectl explain widget.spec --recursive
GROUP:      stable.example.com
KIND:       Widget
VERSION:    v1

FIELD: spec <Object>


DESCRIPTION:
    What it should do.
    *
FIELDS:
  color	<string> -required-
  enum: red, blue
  parts	<[]Object>
    count	<integer>
    name	<string> -required-
  size	<integer>

$ cat > widget.yaml <<END
> apiVersion: stable.example.com/v1
> kind: Widget
> metadata: {name: w}
> spec: {color: red, parts: [{name: a, count: 1}]}
> END
$ kubectl apply -f widget.yaml
widget.stable.example.com/w created
$ kubectl apply -f widget.yaml
widget.stable.example.com/w unchanged
$ kubectl get wd
NAME   COLOR
w      red
$ kubectl get all
...
NAME                          COLOR
widget.stable.example.com/w   red
$ kubectl get widget w -o jsonpath='{.spec.size}{"\n"}'
1
$ sed -i.old 's/red/blue/' widget.yaml; kubectl diff -f widget.yaml
...
-  color: red
+  color: blue
...
[1]
$ kubectl apply --server-side --force-conflicts -f widget.yaml
widget.stable.example.com/w serverside-applied
$ kubectl scale widget/w --replicas=4
widget.stable.example.com/w scaled
$ kubectl patch widget w --type=merge -p '{"spec":{"color":"green"}}'
The Widget "w" is invalid: spec.color: Unsupported value: "green": supported values: "red", "blue"
[1]
$ kubectl patch widget w -p '{"spec":{"color":"red"}}'
error: application/strategic-merge-patch+json is not supported by stable.example.com/v1, Kind=Widget: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
[1]
$ kubectl patch widget w --subresource=status --type=merge -p '{"status":{"phase":"Ready"}}'
widget.stable.example.com/w patched
$ kubectl wait --for=jsonpath='{.status.phase}'=Ready widget/w --timeout=30s
widget.stable.example.com/w condition met
$ kubectl create --validate=strict -f - <<END
> apiVersion: stable.example.com/v1
> kind: Widget
> metadata: {name: typo}
> spec: {color: red, colour: red}
> END
Error from server (BadRequest): error when creating "STDIN": Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.colour"
[1]
$ kubectl describe widget w
Name:         w
Namespace:    default
...
Kind:         Widget
...
Events:   <none>
$ kubectl delete widget w
widget.stable.example.com "w" deleted*
$ kubectl delete crd widgets.stable.example.com
customresourcedefinition.apiextensions.k8s.io "widgets.stable.example.com" deleted*
$ kubectl get --raw /apis/stable.example.com/v1
Error from server (NotFound): the server could not find the requested resource
[1]
