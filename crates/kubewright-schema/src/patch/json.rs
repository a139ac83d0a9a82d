//! JSON patch (RFC 6902) with the semantics of kube-apiserver's Go library.
//!
//! The library deviates from the RFC, and clients rely on it: a negative index counts from the end, `replace`
//! creates a missing key, a missing `value` is `null`, `copy` of a missing key gives `null`.

use serde_json::{Map, Value};

use super::PatchError;
use crate::{body::Decoded, go};

/// Maximum number of operations.
const MAX_OPERATIONS: usize = 10_000;
/// Fields of an operation.
const FIELDS: [&str; 4] = ["op", "path", "from", "value"];

/// Applies the operations in order; all or none.
///
/// ```
/// use kubewright_schema::patch::json;
/// use serde_json::json as value;
///
/// let patched = json::apply(
///     value!({"l": [1]}),
///     &value!([{"op": "add", "path": "/l/-", "value": 2}, {"op": "test", "path": "/l/0", "value": 1}]),
/// )?;
/// assert_eq!(patched, value!({"l": [1, 2]}));
/// # Ok::<(), kubewright_schema::patch::PatchError>(())
/// ```
pub fn apply(mut document: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = operations(patch)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    for operation in operations {
        run(&mut document, operation).map_err(PatchError::Unprocessable)?;
    }
    Ok(document)
}

/// Returns the errors of strict field validation of a JSON patch: repeated keys and unknown fields of
/// operations.
pub fn findings(patch: &Decoded) -> Vec<String> {
    let operations = patch.value.as_array().into_iter().flatten().enumerate();
    let unknown = operations.flat_map(|(i, operation)| {
        let keys = operation.as_object().into_iter().flat_map(Map::keys);
        keys.filter(|key| !FIELDS.contains(&&***key)).map(move |key| format!("unknown field \"[{i}].{key}\""))
    });
    patch.findings.iter().cloned().chain(unknown).map(|finding| format!("json patch {finding}")).collect()
}

fn operations(patch: &Value) -> Result<Vec<&Map<String, Value>>, PatchError> {
    let refuse = |value: &Value, wanted: &str| {
        PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {} into Go {wanted}",
            go::json_kind(value)
        ))
    };
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => return Ok(Vec::new()),
        other => return Err(refuse(other, "value of type []handlers.jsonPatchOp")),
    };
    operations
        .iter()
        .map(|operation| {
            let map = operation
                .as_object()
                .ok_or_else(|| refuse(operation, "value of type handlers.jsonPatchOp"))?;
            for name in &FIELDS[..3] {
                match map.get(*name) {
                    None | Some(Value::String(_) | Value::Null) => {}
                    Some(other) => {
                        return Err(refuse(
                            other,
                            &format!("struct field jsonPatchOp.{name} of type string"),
                        ));
                    }
                }
            }
            Ok(map)
        })
        .collect()
}

fn run(document: &mut Value, operation: &Map<String, Value>) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let no_path = |kind: &str| format!("{kind} operation failed to decode path: missing value");
    let kind = text("op").unwrap_or("unknown");
    match kind {
        "add" => {
            let path = text("path").ok_or_else(|| no_path(kind))?;
            let (parent, key) = parent(document, path).ok_or_else(|| {
                format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
            })?;
            add(parent, &key, value()).map_err(|e| format!("error in add for path: '{path}': {e}"))
        }
        "remove" => {
            let path = text("path").ok_or_else(|| no_path(kind))?;
            let (parent, key) = parent(document, path).ok_or_else(|| {
                format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
            })?;
            remove(parent, &key).map(drop).map_err(|e| format!("error in remove for path: '{path}': {e}"))
        }
        "replace" => {
            let path = text("path").ok_or_else(|| {
                "replace operation failed to decode path: operation missing path field: missing value"
                    .to_owned()
            })?;
            replace(document, path, value())
        }
        "move" => {
            let from = text("from").ok_or_else(|| no_from(kind))?;
            let (source, key) = parent(document, from).ok_or_else(|| {
                format!("move operation does not apply: doc is missing from path: {from}: missing value")
            })?;
            let moved = remove(source, &key).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
            let path = text("path").ok_or_else(|| no_destination(kind))?;
            let (target, key) = parent(document, path).ok_or_else(|| {
                format!(
                    "move operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })?;
            add(target, &key, moved).map_err(|e| format!("error in move for path: '{path}': {e}"))
        }
        "copy" => {
            let from = text("from").ok_or_else(|| no_from(kind))?;
            let (source, key) = parent(document, from).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing from path: {from}: missing value")
            })?;
            let copied = get(source, &key).map_err(|e| format!("error in copy for from: '{from}': {e}"))?;
            let copied = copied.cloned().unwrap_or_default();
            let path = text("path").ok_or_else(|| no_path(kind))?;
            let (target, key) = parent(document, path).ok_or_else(|| {
                format!(
                    "copy operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })?;
            add(target, &key, copied).map_err(|e| format!("error while adding value during copy: {e}"))
        }
        "test" => {
            let path = text("path").ok_or_else(|| no_destination(kind))?;
            test(document, path, &value())
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn no_from(kind: &str) -> String {
    format!("{kind} operation failed to decode from: operation, missing from field: missing value")
}

fn no_destination(kind: &str) -> String {
    format!("{kind} operation failed to decode path: operation missing path field: missing value")
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent(document, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: missing value")
    })?;
    get(parent, &key).map_err(|_| {
        format!("replace operation does not apply: doc is missing key: {path}: missing value")
    })?;
    match parent {
        Value::Array(items) => {
            let at = index(&key, items.len(), items.len())?;
            items[at] = value;
        }
        Value::Object(map) => drop(map.insert(key, value)),
        _ => {}
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, expected: &Value) -> Result<(), String> {
    let failed = || format!("testing value {path} failed: test failed");
    if path.is_empty() {
        return if document == expected { Ok(()) } else { Err(failed()) };
    }
    let (parent, key) = parent(document, path)
        .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: missing value"))?;
    let found = get(parent, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
    if found.unwrap_or(&Value::Null) == expected { Ok(()) } else { Err(failed()) }
}

/// Returns the container that a pointer leads into, and the last segment of the pointer.
fn parent<'d>(document: &'d mut Value, pointer: &str) -> Option<(&'d mut Value, String)> {
    let mut parts: Vec<_> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let last = parts.pop()?;
    let mut at = document;
    for part in parts {
        at = match at {
            Value::Object(map) => map.get_mut(&part)?,
            Value::Array(items) => {
                let i = index(&part, items.len(), items.len()).ok()?;
                &mut items[i]
            }
            _ => return None,
        };
    }
    (at.is_object() || at.is_array()).then_some((at, last))
}

fn get<'d>(container: &'d Value, key: &str) -> Result<Option<&'d Value>, String> {
    match container {
        Value::Array(items) => Ok(Some(&items[index(key, items.len(), items.len())?])),
        other => Ok(other.get(key)),
    }
}

fn add(container: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            if let Err(reason) = parse_index(key) {
                return Err(format!("value was not a proper array index: '{key}': {reason}"));
            }
            let at = index(key, items.len() + 1, items.len() + 1)?;
            items.insert(at, value);
        }
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        _ => {}
    }
    Ok(())
}

fn remove(container: &mut Value, key: &str) -> Result<Value, String> {
    match container {
        Value::Array(items) => {
            let at = index(key, items.len(), items.len())?;
            Ok(items.remove(at))
        }
        Value::Object(map) => {
            map.remove(key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
        }
        _ => Ok(Value::Null),
    }
}

fn parse_index(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(key)))
}

/// Parses a position below `bound`; a negative one counts back from `length`.
fn index(key: &str, length: usize, bound: usize) -> Result<usize, String> {
    let given = parse_index(key)?;
    let at = if given < 0 { given.saturating_add_unsigned(length as u64) } else { given };
    usize::try_from(at)
        .ok()
        .filter(|at| *at < bound)
        .ok_or_else(|| format!("Unable to access invalid index: {given}: invalid index referenced"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn patched(document: Value, patch: Value) -> Result<Value, String> {
        apply(document, &patch).map_err(|e| e.to_string())
    }

    #[test]
    fn the_six_operations_follow_the_rfc() {
        let document = json!({"a": {"b": [1, 2]}, "x/y": 1, "m~n": 2});
        let patch = json!([
            {"op": "test", "path": "/a/b/1", "value": 2},
            {"op": "add", "path": "/a/b/1", "value": 9},
            {"op": "remove", "path": "/a/b/0"},
            {"op": "replace", "path": "/x~1y", "value": {"z": 1}},
            {"op": "move", "from": "/m~0n", "path": "/moved"},
            {"op": "copy", "from": "/a/b", "path": "/copied"},
        ]);
        assert_eq!(
            patched(document, patch).unwrap(),
            json!({"a": {"b": [9, 2]}, "x/y": {"z": 1}, "moved": 2, "copied": [9, 2]})
        );
    }

    #[test]
    fn deviations_of_the_go_library_are_kept() {
        assert_eq!(
            patched(json!({}), json!([{"op": "replace", "path": "/a", "value": 1}])).unwrap(),
            json!({"a": 1})
        );
        assert_eq!(patched(json!({}), json!([{"op": "add", "path": "/a"}])).unwrap(), json!({"a": null}));
        assert_eq!(
            patched(json!({"l": [1, 2]}), json!([{"op": "remove", "path": "/l/-1"}])).unwrap(),
            json!({"l": [1]})
        );
        assert_eq!(
            patched(json!({}), json!([{"op": "test", "path": "/a", "value": null}])).unwrap(),
            json!({})
        );
    }

    #[test]
    fn errors_have_the_texts_of_the_go_library() {
        let cases = [
            (
                json!([{"op": "remove", "path": "/a"}]),
                "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
            ),
            (
                json!([{"op": "add", "path": "/a/b/c", "value": 1}]),
                "add operation does not apply: doc is missing path: \"/a/b/c\": missing value",
            ),
            (
                json!([{"op": "replace", "path": "/l/5", "value": 1}]),
                "replace operation does not apply: doc is missing key: /l/5: missing value",
            ),
            (
                json!([{"op": "add", "path": "/l/x", "value": 1}]),
                "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (json!([{"op": "test", "path": "/l/0", "value": 2}]), "testing value /l/0 failed: test failed"),
            (json!([{"op": "frob", "path": "/l"}]), "Unexpected kind: frob"),
            (json!([{"path": "/l"}]), "Unexpected kind: unknown"),
        ];
        for (patch, message) in cases {
            assert_eq!(patched(json!({"l": [1]}), patch).unwrap_err(), message);
        }
        assert_eq!(apply(json!({}), &json!({})).unwrap_err().code(), 400);
        assert_eq!(apply(json!({}), &json!([1])).unwrap_err().code(), 400);
        assert_eq!(apply(json!({}), &json!([{"op": 1}])).unwrap_err().code(), 400);
    }

    #[test]
    fn too_many_operations_are_rejected() {
        let many = vec![json!({"op": "test", "path": "/a", "value": null}); MAX_OPERATIONS + 1];
        assert_eq!(apply(json!({}), &Value::Array(many)).unwrap_err().code(), 413);
    }

    #[test]
    fn unknown_and_repeated_fields_of_operations_are_found() {
        let body = br#"[{"op": "add", "op": "add", "path": "/a", "value": 1}, {"op": "add", "pth": "/a"}]"#;
        let patch = crate::patch::decode(body, &crate::body::Limits::default()).unwrap();
        assert_eq!(
            findings(&patch),
            ["json patch duplicate field \"[0].op\"", "json patch unknown field \"[1].pth\""]
        );
        assert!(crate::patch::decode(b"{nope", &crate::body::Limits::default()).is_err());
    }
}
