//! Canonical form of built-in objects: the JSON that Go's encoder would produce.
//!
//! kube-apiserver decodes a body into Go structs and encodes those, so omitted fields may appear
//! (`"resources": {}`), sent fields may vanish (`"hostNetwork": false`, `null`), and unknown fields are
//! dropped. Stored objects, responses and managedFields all have that form, so canonicalise an object once,
//! after decoding or patching and before any other step. Custom resources have no Go type and are not
//! canonicalised.
//!
//! Quantities and times have one spelling: `1000m` becomes `1`, a time is in UTC.

use serde_json::{Map, Value};

use super::{
    node::{AdditionalProperties, Field, Kind, Node, Object, Presence, Scalar},
    quantity, time,
};

/// Lists for which empty differs from absent. Empty `managedFields` asks to reset field ownership and is
/// removed by the field manager; empty scaling `policies` are not defaulted and fail validation.
const SIGNIFICANT_WHEN_EMPTY: [&str; 2] = ["managedFields", "policies"];

/// Canonicalises an object of a built-in type.
///
/// ```
/// use kubewright_schema::{Gvk, Schemas, canonical};
/// use serde_json::json;
///
/// let pod = Schemas::builtin().lookup(&Gvk::new("", "v1", "Pod")).unwrap();
/// let mut value = json!({"spec": {"hostNetwork": false, "containers": [{"name": "c", "image": null}]}});
/// canonical::canonicalise(&pod, &mut value);
/// assert_eq!(value, json!({
///     "metadata": {}, "status": {}, "spec": {"containers": [{"name": "c", "resources": {}}]},
/// }));
/// ```
pub fn canonicalise(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => canonicalise_object(object, map),
        (Kind::List(list), Value::Array(items)) => {
            let item = list.item.node();
            for value in items {
                if value.is_null() {
                    *value = zero(item);
                }
                canonicalise(item, value);
            }
        }
        (Kind::Scalar(scalar), value) => canonicalise_scalar(*scalar, value),
        _ => {}
    }
}

/// Canonicalises the spelling of a quantity or a time.
fn canonicalise_scalar(scalar: Scalar, value: &mut Value) {
    let canonical = match (scalar, &*value) {
        (Scalar::Quantity, Value::String(text)) if quantity::is_trivially_canonical(text) => None,
        (Scalar::Time, Value::String(text)) if time::has_seconds_layout(text) => None,
        (Scalar::Quantity, Value::String(text)) => quantity::canonical(text),
        (Scalar::Quantity, Value::Number(number)) => quantity::canonical(&number.to_string()),
        (Scalar::Time, Value::String(text)) => time::parse(text).map(time::format_seconds),
        (Scalar::MicroTime, Value::String(text)) => time::parse(text).map(time::format_micros),
        _ => None,
    };
    if let Some(canonical) = canonical {
        *value = canonical.into();
    }
}

/// Converts a canonical object to the form in which it is read back from storage.
///
/// Protobuf in etcd does not distinguish an empty list or map from an absent one, so `"rules": []` is read as
/// `"rules": null`. Call it after field tracking: the manager that wrote the empty list owns it.
pub fn nullify_empty(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (key, value) in map {
                // Only objects and lists can be empty collections or contain some.
                if !(value.is_object() || value.is_array()) {
                    continue;
                }
                let node = match (object.field(key), &object.additional) {
                    (Some(field), _) => {
                        let node = field.node.node();
                        if field.presence == Presence::AlwaysNull && is_empty(value) && is_collection(node) {
                            *value = Value::Null;
                        }
                        node
                    }
                    (None, AdditionalProperties::Values(values)) => values.node(),
                    (None, _) => continue,
                };
                nullify_empty(node, value);
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            for value in items {
                nullify_empty(list.item.node(), value);
            }
        }
        _ => {}
    }
}

/// Returns the canonical form of an empty Go struct, with which a create is compared to find the fields it
/// owns.
pub fn empty_object(node: &Node) -> Value {
    let mut value = Value::Object(Map::new());
    canonicalise(node, &mut value);
    value
}

fn canonicalise_object(object: &Object, map: &mut Map<String, Value>) {
    // Iterate over the present fields, not over all possible ones: a Pod has about 40 of several hundred.
    let mut missing = object.fields.always_encoded();
    let mut all_encoded = true;
    for (key, value) in map.iter_mut() {
        let field = object.field(key);
        match (field, &object.additional) {
            (Some(field), _) => {
                missing -= usize::from(is_always(field));
                let node = field.node.node();
                if value.is_null() && field.presence == Presence::Always {
                    *value = zero(node);
                } else {
                    canonicalise(node, value);
                }
            }
            (None, AdditionalProperties::Values(values)) => {
                let node = values.node();
                if value.is_null() {
                    *value = zero(node);
                }
                canonicalise(node, value);
            }
            (None, _) => {}
        }
        all_encoded &= is_encoded(object, field, key, value);
    }
    // `retain` on every object costs more than the check, and mostly there is nothing to remove.
    if !all_encoded {
        map.retain(|key, value| is_encoded(object, object.field(key), key, value));
    }
    if missing == 0 {
        return;
    }
    for field in &object.fields {
        let missing = match field.presence {
            Presence::Always | Presence::AlwaysNull => !map.contains_key(&*field.name),
            _ => false,
        };
        if missing {
            let is_null = field.presence == Presence::AlwaysNull;
            let value = if is_null { Value::Null } else { zero(field.node.node()) };
            map.insert(field.name.as_ref().to_owned(), value);
        }
    }
}

fn is_always(field: &Field) -> bool {
    matches!(field.presence, Presence::Always | Presence::AlwaysNull)
}

/// Returns whether Go encodes a field with this canonical value.
fn is_encoded(object: &Object, field: Option<&Field>, key: &str, value: &Value) -> bool {
    let Some(field) = field else { return !matches!(object.additional, AdditionalProperties::Closed) };
    match field.presence {
        _ if value.is_null() => is_always(field),
        Presence::OmitEmpty => !is_empty(value) || SIGNIFICANT_WHEN_EMPTY.contains(&key),
        Presence::OmitZero => !is_empty(value) && *value != zero(field.node.node()),
        _ => true,
    }
}

/// Returns whether a node is a list or a map. Pointers to empty structs or strings are not absent.
fn is_collection(node: &Node) -> bool {
    match &node.kind {
        Kind::List(_) => true,
        Kind::Object(object) => {
            object.fields.is_empty() && matches!(object.additional, AdditionalProperties::Values(_))
        }
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn zero(node: &Node) -> Value {
    match &node.kind {
        Kind::Object(object) if !object.fields.is_empty() => empty_object(node),
        Kind::Object(Object { additional: AdditionalProperties::Any, .. }) => Value::Object(Map::new()),
        Kind::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Formatted => "".into(),
            Scalar::Boolean => false.into(),
            Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString => 0.into(),
            Scalar::Quantity => "0".into(),
            Scalar::Bytes | Scalar::Time | Scalar::MicroTime => Value::Null,
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Gvk, Schemas};

    fn canonical(group: &str, version: &str, kind: &str, mut value: Value) -> Value {
        let schema = Schemas::builtin().lookup(&Gvk::new(group, version, kind)).unwrap();
        canonicalise(&schema, &mut value);
        value
    }

    #[test]
    fn an_empty_deployment_has_the_structs_go_always_writes() {
        assert_eq!(
            canonical("apps", "v1", "Deployment", json!({})),
            json!({
                "metadata": {},
                "spec": {"selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}},
                "status": {},
            })
        );
    }

    #[test]
    fn zero_values_are_kept_for_pointers_and_dropped_for_plain_fields() {
        let value =
            json!({"data": {}, "immutable": false, "metadata": {"name": "c", "generation": 0, "labels": {}}});
        assert_eq!(
            canonical("", "v1", "ConfigMap", value),
            json!({"immutable": false, "metadata": {"name": "c"}})
        );
    }

    #[test]
    fn unknown_fields_are_dropped_and_unset_times_are_null() {
        let value = json!({"x": 1, "metadata": {"name": "e", "y": 2}, "involvedObject": {"kind": "Pod"}});
        assert_eq!(
            canonical("", "v1", "Event", value),
            json!({
                "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "source": {}, "firstTimestamp": null,
                "lastTimestamp": null, "eventTime": null, "reportingComponent": "", "reportingInstance": "",
            })
        );
    }

    #[test]
    fn quantities_and_times_have_one_canonical_form() {
        let limits = json!({"cpu": "1000m", "memory": 1024, "x": "0.5Gi"});
        let pod = json!({"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}});
        let pod = canonical("", "v1", "Pod", pod);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"]["limits"],
            json!({"cpu": "1", "memory": "1024", "x": "512Mi"})
        );
        let lease = json!({"metadata": {"creationTimestamp": "2020-01-01T01:00:00.5+01:00"},
                           "spec": {"renewTime": "2020-01-01T00:00:00.123456+00:00"}});
        assert_eq!(
            canonical("coordination.k8s.io", "v1", "Lease", lease),
            json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"},
                   "spec": {"renewTime": "2020-01-01T00:00:00.123456Z"}})
        );
    }

    #[test]
    fn an_empty_list_is_kept_until_it_is_stored() {
        let schema = Schemas::builtin().lookup(&Gvk::new("rbac.authorization.k8s.io", "v1", "Role")).unwrap();
        let mut role = canonical("rbac.authorization.k8s.io", "v1", "Role", json!({"rules": []}));
        assert_eq!(role, json!({"metadata": {}, "rules": []}));
        nullify_empty(&schema, &mut role);
        assert_eq!(role, json!({"metadata": {}, "rules": null}));
        let mut role = json!({"rules": [{"verbs": [], "resources": ["pods"]}]});
        nullify_empty(&schema, &mut role);
        assert_eq!(role, json!({"rules": [{"verbs": null, "resources": ["pods"]}]}));
        let schema = Schemas::builtin().lookup(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        let mut deployment = json!({"spec": {"selector": {}}});
        nullify_empty(&schema, &mut deployment);
        assert_eq!(deployment, json!({"spec": {"selector": {}}}), "an empty struct is not none");
    }

    #[test]
    fn canonicalisation_is_idempotent() {
        for gvk in Schemas::builtin().kinds() {
            let schema = Schemas::builtin().lookup(&gvk).unwrap();
            let once = empty_object(&schema);
            let mut twice = once.clone();
            canonicalise(&schema, &mut twice);
            assert_eq!(once, twice, "{gvk}");
        }
    }
}
