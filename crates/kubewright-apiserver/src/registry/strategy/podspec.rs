//! Defaults of pod specs, in pods and in templates.

use serde_json::{Value, json};

use crate::registry::json::{Json, default, default_text, list, object_mut, objects_mut, text};

/// Sets the defaults of a pod spec.
pub(super) fn default_spec(spec: &mut Json) {
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default_text(spec, "schedulerName", "default-scheduler");
    object_mut(spec, "securityContext");
    let (name, old) = (text(spec, "serviceAccountName"), text(spec, "serviceAccount"));
    if name != old {
        let (missing, given) =
            if name.is_empty() { ("serviceAccountName", old) } else { ("serviceAccount", name) };
        let given = Value::from(given);
        spec.insert(missing.into(), given);
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        for container in objects_mut(spec, key) {
            default_container(container, host_network && key != "ephemeralContainers");
        }
    }
    for volume in objects_mut(spec, "volumes") {
        default_volume(volume);
    }
}

/// Sets the defaults of the spec of a template.
pub(super) fn default_template(parent: &mut Json) {
    if let Some(template) = parent.get_mut("template").and_then(Value::as_object_mut) {
        default_spec(object_mut(template, "spec"));
    }
}

/// Returns `IfNotPresent` for an image with a digest or a tag other than `latest`, `Always` otherwise.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let name_without_digest = name.split('@').next().unwrap_or_default();
    let tag = name_without_digest.split_once(':').map_or("", |(_, tag)| tag);
    if image.contains('@') || (!tag.is_empty() && tag != "latest") { "IfNotPresent" } else { "Always" }
}

fn default_container(container: &mut Json, host_network: bool) {
    let policy = pull_policy(text(container, "image"));
    default_text(container, "imagePullPolicy", policy);
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    object_mut(container, "resources");
    for port in objects_mut(container, "ports") {
        default_text(port, "protocol", "TCP");
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            default(port, "hostPort", number);
        }
    }
    for env in objects_mut(container, "env") {
        if let Some(field) =
            env.get_mut("valueFrom").and_then(|v| v.get_mut("fieldRef")).and_then(Value::as_object_mut)
        {
            default_text(field, "apiVersion", "v1");
        }
        if let Some(resource) = env
            .get_mut("valueFrom")
            .and_then(|v| v.get_mut("resourceFieldRef"))
            .and_then(Value::as_object_mut)
        {
            default(resource, "divisor", "0");
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(key).and_then(Value::as_object_mut) {
            default(probe, "timeoutSeconds", 1);
            default(probe, "periodSeconds", 10);
            default(probe, "successThreshold", 1);
            default(probe, "failureThreshold", 3);
            default_http(probe);
            if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
                default(grpc, "service", "");
            }
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
        for key in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.get_mut(key).and_then(Value::as_object_mut) {
                default_http(handler);
            }
        }
    }
    if let Some(context) = container.get_mut("securityContext").and_then(Value::as_object_mut)
        && context.get("privileged").is_none()
        && context.get("procMount").is_some_and(|v| v == "")
    {
        context.insert("procMount".into(), "Default".into());
    }
}

fn default_http(handler: &mut Json) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        default_text(get, "path", "/");
        default_text(get, "scheme", "HTTP");
    }
}

fn default_field_refs(parent: &mut Json) {
    for item in objects_mut(parent, "items") {
        if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
            default_text(field, "apiVersion", "v1");
        }
        if let Some(resource) = item.get_mut("resourceFieldRef").and_then(Value::as_object_mut) {
            default(resource, "divisor", "0");
        }
    }
}

enum DefaultValue {
    Text(&'static str),
    Mode(i64),
    No,
}

const VOLUME_DEFAULTS: &[(&str, &[(&str, DefaultValue)])] = &[
    ("secret", &[("defaultMode", DefaultValue::Mode(0o644))]),
    ("configMap", &[("defaultMode", DefaultValue::Mode(0o644))]),
    ("downwardAPI", &[("defaultMode", DefaultValue::Mode(0o644))]),
    ("projected", &[("defaultMode", DefaultValue::Mode(0o644))]),
    ("hostPath", &[("type", DefaultValue::Text(""))]),
    ("iscsi", &[("iscsiInterface", DefaultValue::Text("default"))]),
    (
        "rbd",
        &[
            ("pool", DefaultValue::Text("rbd")),
            ("user", DefaultValue::Text("admin")),
            ("keyring", DefaultValue::Text("/etc/ceph/keyring")),
        ],
    ),
    (
        "azureDisk",
        &[
            ("cachingMode", DefaultValue::Text("ReadWrite")),
            ("fsType", DefaultValue::Text("ext4")),
            ("readOnly", DefaultValue::No),
            ("kind", DefaultValue::Text("Shared")),
        ],
    ),
];

fn default_volume(volume: &mut Json) {
    if volume.len() == 1 && volume.contains_key("name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    for (source, values) in VOLUME_DEFAULTS {
        if let Some(source) = volume.get_mut(*source).and_then(Value::as_object_mut) {
            for (key, value) in *values {
                match value {
                    DefaultValue::Text(text) => default(source, key, *text),
                    DefaultValue::Mode(mode) => default(source, key, *mode),
                    DefaultValue::No => default(source, key, false),
                }
            }
        }
    }
    if let Some(downward) = volume.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        default_field_refs(downward);
    }
    if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
        for source in objects_mut(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                default(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                default_field_refs(downward);
            }
        }
    }
    if let Some(claim) = volume
        .get_mut("ephemeral")
        .and_then(|e| e.get_mut("volumeClaimTemplate"))
        .and_then(|t| t.get_mut("spec"))
        .and_then(Value::as_object_mut)
    {
        default_text(claim, "volumeMode", "Filesystem");
    }
}

/// Sets requests from limits, in pods but not in templates.
pub(super) fn default_requests(spec: &mut Json) {
    for key in ["initContainers", "containers"] {
        for container in objects_mut(spec, key) {
            let resources = object_mut(container, "resources");
            let Some(limits) = resources.get("limits").and_then(Value::as_object) else { continue };
            let given = resources.get("requests").and_then(Value::as_object);
            let is_given = |name: &str| given.and_then(|given| given.get(name)).is_some_and(|v| !v.is_null());
            let missing: Vec<(String, Value)> = limits
                .iter()
                .filter(|(name, _)| !is_given(name))
                .map(|(name, limit)| (name.clone(), limit.clone()))
                .collect();
            object_mut(resources, "requests").extend(missing);
        }
    }
}

/// Returns the quality of service class.
pub(super) fn qos(spec: &Json) -> &'static str {
    let (mut any, mut guaranteed) = (false, true);
    for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
        let of = |kind: &str, name: &str| {
            container
                .get("resources")
                .and_then(|r| r.get(kind))
                .and_then(|r| r.get(name))
                .filter(|v| !is_zero(v))
                .cloned()
        };
        for name in ["cpu", "memory"] {
            let (request, limit) = (of("requests", name), of("limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        _ => "Burstable",
    }
}

fn is_zero(quantity: &Value) -> bool {
    match quantity {
        Value::String(text) => text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0",
        Value::Number(n) => n.as_f64() == Some(0.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tags_determine_the_pull_policy() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.25", "IfNotPresent"),
            ("host:5000/nginx", "Always"),
            ("nginx@sha256:abc", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
