//! JSON merge patch (RFC 7386).

use serde_json::Value;

use super::PatchError;
use crate::go;

/// Merges `patch` into `document`: objects key by key, `null` removes, everything else replaces.
///
/// ```
/// use kubewright_schema::patch::merge;
/// use serde_json::json;
///
/// let patched = merge::apply(json!({"a": 1, "b": {"c": 2}}), json!({"a": null, "b": {"d": [3]}}))?;
/// assert_eq!(patched, json!({"b": {"c": 2, "d": [3]}}));
/// # Ok::<(), kubewright_schema::patch::PatchError>(())
/// ```
pub fn apply(mut document: Value, patch: Value) -> Result<Value, PatchError> {
    match patch {
        Value::Object(_) => {
            merge(&mut document, patch);
            Ok(document)
        }
        Value::Null => Err(PatchError::BadRequest("Invalid JSON Patch".to_owned())),
        other => Err(PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&other)
        ))),
    }
}

fn merge(document: &mut Value, patch: Value) {
    let patch = match patch {
        Value::Object(patch) => patch,
        other => return *document = other,
    };
    let Value::Object(document) = document else {
        let mut patch = Value::Object(patch);
        drop_nulls(&mut patch);
        return *document = patch;
    };
    for (key, mut value) in patch {
        match document.get_mut(&key) {
            _ if value.is_null() => drop(document.remove(&key)),
            Some(current) if !current.is_null() => merge(current, value),
            _ => {
                drop_nulls(&mut value);
                document.insert(key, value);
            }
        }
    }
}

/// Drops nulls from a newly added value, where there is nothing to remove; those in lists stay.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(apply(document.clone(), patch.clone()).unwrap(), expected, "{document} + {patch}");
        }
    }

    #[test]
    fn a_patch_must_be_an_object() {
        let refused = apply(json!({}), json!([])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
        assert_eq!(refused.code(), 400);
        assert!(apply(json!({}), Value::Null).is_err());
    }
}
