//! Uniqueness checks of lists with `x-kubernetes-list-type: set` or `map`.

use serde_json::{Map, Value};

use super::{
    AdditionalProperties, Child, Kind, ListType, Node,
    field::{ErrorKind, FieldError},
};

/// Returns an error for each item of a set or associative list that occurs more than once.
pub fn validate(schema: &Node, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(schema, value, "", &mut errors);
    errors
}

fn visit(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match (&node.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                match (object.field(key), &object.additional) {
                    // Metadata is validated separately.
                    (Some(field), _) if matches!(field.node, Child::Builtin(_)) => {}
                    (Some(field), _) => visit(field.node.node(), value, &format!("{path}{dot}{key}"), errors),
                    (None, AdditionalProperties::Values(values)) => {
                        visit(values.node(), value, &format!("{path}[{key}]"), errors);
                    }
                    _ => {}
                }
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            match &list.list_type {
                ListType::Atomic => {}
                ListType::Set => duplicates(items.clone(), path, errors),
                ListType::Map(keys) => {
                    if let Some(at) = items.iter().position(|item| !(item.is_object() || item.is_null())) {
                        let detail = "must be an object for an array of list-type map";
                        let field = format!("{path}[{at}]");
                        errors.push(FieldError::new(ErrorKind::Invalid, field, items[at].clone(), detail));
                    } else {
                        duplicates(items.iter().map(|item| key_of(item, keys)).collect(), path, errors);
                    }
                }
            }
            for (i, item) in items.iter().enumerate() {
                visit(list.item.node(), item, &format!("{path}[{i}]"), errors);
            }
        }
        _ => {}
    }
}

fn key_of(item: &Value, keys: &[Box<str>]) -> Value {
    let pairs = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Reports the second occurrence of each value.
fn duplicates(items: Vec<Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (i, item) in items.into_iter().enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::new(ErrorKind::Duplicate, format!("{path}[{i}]"), item, ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::TypeRef;

    #[test]
    fn the_second_of_two_equal_items_is_reported() {
        let schema = TypeRef::from_structural(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {
                "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                      "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
            }}}}))
        .unwrap();
        let value = json!({"spec": {"s": ["x", "y", "x", "x"], "m": [{"a": "1", "b": 2}, {"a": "1"}, {"a": "1", "b": 2}]}});
        let texts: Vec<_> = validate(&schema, &value).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [r#"spec.m[2]: Duplicate value: {"a":"1","b":2}"#, r#"spec.s[2]: Duplicate value: "x""#]
        );
        let texts: Vec<_> =
            validate(&schema, &json!({"spec": {"m": [1]}})).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["spec.m[0]: Invalid value: 1: must be an object for an array of list-type map"]);
    }
}
