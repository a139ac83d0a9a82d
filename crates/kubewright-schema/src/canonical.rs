//! The form in which Go writes a built-in object.
//!
//! kube-apiserver decodes a body into Go structs and encodes those, so fields that were left out may appear
//! (`"resources": {}`), fields that were sent may vanish (`"hostNetwork": false`, `null`), and unknown fields are
//! gone. Stored objects, answers and managedFields all show that form, so bring an object into it once, after
//! decoding or patching and before anything looks at it. Custom resources have no Go type: leave them alone.
//!
//! Amounts and times take the one spelling that Go gives them: `1000m` becomes `1`, a time is in UTC.

use serde_json::{Map, Value};

use super::{
    node::{Field, Kind, Node, Object, Presence, Rest, Scalar},
    quantity, time,
};

/// Lists that say something by being empty, and not only by what they hold. An empty list of managers asks to forget
/// them, and who tracks fields takes it out; an empty list of scaling policies is none of the default ones, and refused.
const MEANINGFUL_EMPTY: [&str; 2] = ["managedFields", "policies"];

/// Brings an object of a built-in type into the form that Go writes.
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

/// Amounts and times have one spelling.
fn canonicalise_scalar(scalar: Scalar, value: &mut Value) {
    let spelling = match (scalar, &*value) {
        (Scalar::Quantity, Value::String(text)) if quantity::is_plainly_canonical(text) => None,
        (Scalar::Time, Value::String(text)) if time::is_in_seconds(text) => None,
        (Scalar::Quantity, Value::String(text)) => quantity::canonical(text),
        (Scalar::Quantity, Value::Number(number)) => quantity::canonical(&number.to_string()),
        (Scalar::Time, Value::String(text)) => time::parse(text).map(time::in_seconds),
        (Scalar::MicroTime, Value::String(text)) => time::parse(text).map(time::in_micros),
        _ => None,
    };
    if let Some(spelling) = spelling {
        *value = spelling.into();
    }
}

/// Brings a canonical object into the form in which it comes back from storage.
///
/// Storage does not tell an empty list or map from none, so `"rules": []` is read as `"rules": null`. Fields are
/// tracked before that: whoever wrote the empty list owns it.
pub fn forget_empty(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (key, value) in map {
                // Only what holds something can hold something empty.
                if !(value.is_object() || value.is_array()) {
                    continue;
                }
                let node = match (object.field(key), &object.rest) {
                    (Some(field), _) => {
                        let node = field.node.node();
                        if field.presence == Presence::AlwaysNull && is_empty(value) && is_collection(node) {
                            *value = Value::Null;
                        }
                        node
                    }
                    (None, Rest::Values(values)) => values.node(),
                    (None, _) => continue,
                };
                forget_empty(node, value);
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            for value in items {
                forget_empty(list.item.node(), value);
            }
        }
        _ => {}
    }
}

/// The object that Go makes of nothing: what a create is compared with to find the fields it owns.
pub fn empty_object(node: &Node) -> Value {
    let mut value = Value::Object(Map::new());
    canonicalise(node, &mut value);
    value
}

fn canonicalise_object(object: &Object, map: &mut Map<String, Value>) {
    // One walk over what is there, not over everything that could be: a Pod has some 40 of several hundred fields.
    let mut missing = object.fields.written_always();
    let mut is_complete = true;
    for (key, value) in map.iter_mut() {
        let field = object.field(key);
        match (field, &object.rest) {
            (Some(field), _) => {
                missing -= usize::from(is_always(field));
                let node = field.node.node();
                if value.is_null() && field.presence == Presence::Always {
                    *value = zero(node);
                } else {
                    canonicalise(node, value);
                }
            }
            (None, Rest::Values(values)) => {
                let node = values.node();
                if value.is_null() {
                    *value = zero(node);
                }
                canonicalise(node, value);
            }
            (None, _) => {}
        }
        is_complete &= stays(object, field, key, value);
    }
    // Taking out while walking costs more than walking, and mostly there is nothing to take out.
    if !is_complete {
        map.retain(|key, value| stays(object, object.field(key), key, value));
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

/// Whether Go writes a field that holds a canonical value.
fn stays(object: &Object, field: Option<&Field>, key: &str, value: &Value) -> bool {
    let Some(field) = field else { return !matches!(object.rest, Rest::Closed) };
    match field.presence {
        _ if value.is_null() => is_always(field),
        Presence::OmitEmpty => !is_empty(value) || MEANINGFUL_EMPTY.contains(&key),
        Presence::OmitZero => !is_empty(value) && *value != zero(field.node.node()),
        _ => true,
    }
}

/// A list or a map; a pointer to an empty struct or text is something else than none.
fn is_collection(node: &Node) -> bool {
    match &node.kind {
        Kind::List(_) => true,
        Kind::Object(object) => object.fields.is_empty() && matches!(object.rest, Rest::Values(_)),
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
        Kind::Object(Object { rest: Rest::Free, .. }) => Value::Object(Map::new()),
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
    fn pointers_keep_zero_and_plain_fields_lose_it() {
        let value =
            json!({"data": {}, "immutable": false, "metadata": {"name": "c", "generation": 0, "labels": {}}});
        assert_eq!(
            canonical("", "v1", "ConfigMap", value),
            json!({"immutable": false, "metadata": {"name": "c"}})
        );
    }

    #[test]
    fn unknown_fields_are_gone_and_times_without_a_value_are_null() {
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
    fn amounts_and_times_have_one_spelling() {
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
        forget_empty(&schema, &mut role);
        assert_eq!(role, json!({"metadata": {}, "rules": null}));
        let mut role = json!({"rules": [{"verbs": [], "resources": ["pods"]}]});
        forget_empty(&schema, &mut role);
        assert_eq!(role, json!({"rules": [{"verbs": null, "resources": ["pods"]}]}));
        let schema = Schemas::builtin().lookup(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        let mut deployment = json!({"spec": {"selector": {}}});
        forget_empty(&schema, &mut deployment);
        assert_eq!(deployment, json!({"spec": {"selector": {}}}), "an empty struct is not none");
    }

    #[test]
    fn doing_it_twice_changes_nothing() {
        for gvk in Schemas::builtin().kinds() {
            let schema = Schemas::builtin().lookup(&gvk).unwrap();
            let once = empty_object(&schema);
            let mut twice = once.clone();
            canonicalise(&schema, &mut twice);
            assert_eq!(once, twice, "{gvk}");
        }
    }
}
