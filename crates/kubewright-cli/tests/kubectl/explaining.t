# explain, from the OpenAPI documents. Built-in types have no descriptions here.
$ kubectl explain pods
KIND:       Pod
VERSION:    v1

DESCRIPTION:
    <empty>
FIELDS:
  apiVersion	<string>
...
  spec	<PodSpec>
...
$ kubectl explain deployment.spec.strategy.rollingUpdate
GROUP:      apps
KIND:       Deployment
VERSION:    v1

FIELD: rollingUpdate <RollingUpdateDeployment>


DESCRIPTION:
    <empty>
FIELDS:
  maxSurge	<IntOrString>
...
  maxUnavailable	<IntOrString>
...
$ kubectl explain pod.spec.containers.resources --recursive
KIND:       Pod
VERSION:    v1

FIELD: resources <ResourceRequirements>


DESCRIPTION:
    <empty>
FIELDS:
  claims	<[]ResourceClaim>
    name	<string> -required-
    request	<string>
  limits	<map[string]Quantity>
  requests	<map[string]Quantity>
$ kubectl explain hpa --api-version=autoscaling/v1
GROUP:      autoscaling
KIND:       HorizontalPodAutoscaler
VERSION:    v1
...
$ kubectl explain pod.spec.nothing
KIND:       Pod
VERSION:    v1

error: field "nothing" does not exist
[1]
$ kubectl explain nonsense
the server doesn't have a resource type "nonsense"
[1]
