//! Accessors of JSON objects, used by the strategies.

use serde_json::{Map, Value};

pub use super::descriptor::Json;

/// Returns a string field, empty if absent.
pub fn text<'a>(object: &'a Json, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the string at a path, empty if absent.
pub fn text_at<'a>(object: &'a Json, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the value at a path.
pub fn at<'a>(object: &'a Json, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(*key))
}

/// Returns an object field.
pub fn object<'a>(parent: &'a Json, key: &str) -> Option<&'a Json> {
    parent.get(key).and_then(Value::as_object)
}

/// Returns an object field, created if absent.
#[expect(clippy::missing_panics_doc, reason = "the value is made an object just before")]
pub fn object_mut<'a>(parent: &'a mut Json, key: &str) -> &'a mut Json {
    // Allocates the key only if it is new.
    if !parent.get(key).is_some_and(Value::is_object) {
        parent.insert(key.into(), Value::Object(Map::new()));
    }
    parent.get_mut(key).and_then(Value::as_object_mut).expect("made an object above")
}

/// Calls a function on the object as a [`Value`].
pub fn as_value(object: &mut Json, change: impl FnOnce(&mut Value)) {
    let mut value = Value::Object(std::mem::take(object));
    change(&mut value);
    if let Value::Object(changed) = value {
        *object = changed;
    }
}

/// Returns the elements of a list field, empty if absent.
pub fn list<'a>(parent: &'a Json, key: &str) -> &'a [Value] {
    parent.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the objects of a list field.
pub fn objects<'a>(parent: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    list(parent, key).iter().filter_map(Value::as_object)
}

/// Returns the objects of a list field, mutably.
pub fn objects_mut<'a>(parent: &'a mut Json, key: &str) -> impl Iterator<Item = &'a mut Json> {
    parent.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field if absent.
pub fn default(object: &mut Json, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.into(), value.into());
    }
}

/// Sets a string field if absent or empty.
pub fn default_text(object: &mut Json, key: &str, value: &str) {
    if text(object, key).is_empty() {
        object.insert(key.into(), value.into());
    }
}

/// Returns the metadata.
pub fn meta(object: &Json) -> &Json {
    static NONE: std::sync::LazyLock<Json> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&NONE)
}

/// Returns the metadata, mutably.
pub fn meta_mut(object: &mut Json) -> &mut Json {
    object_mut(object, "metadata")
}

/// Returns `metadata.name`.
pub fn name(object: &Json) -> &str {
    text(meta(object), "name")
}
