//! Accessors of a CRD's schema in JSON; `null` counts as absent.

use serde_json::{Map, Value};

/// Node of an `openAPIV3Schema`.
#[derive(Debug, Clone, Copy)]
pub struct Props<'s>(pub Option<&'s Map<String, Value>>);

impl<'s> Props<'s> {
    /// Views a JSON value as a schema node.
    pub fn new(value: &'s Value) -> Self {
        Self(value.as_object())
    }

    /// Returns the value of a keyword; `null` counts as absent.
    pub fn get(self, name: &str) -> Option<&'s Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// Returns a string keyword, empty if absent.
    pub fn text(self, name: &str) -> &'s str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the `type` keyword.
    pub fn kind(self) -> &'s str {
        self.text("type")
    }

    /// Returns a boolean keyword, false if absent.
    pub fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns an integer keyword.
    pub fn number(self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// Returns an array keyword, empty if absent.
    pub fn list(self, name: &str) -> &'s [Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the strings of an array keyword.
    pub fn texts(self, name: &str) -> Vec<&'s str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    /// Returns the properties by name.
    pub fn properties(self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let map = self.get("properties").and_then(Value::as_object);
        map.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Returns the schema of one property.
    pub fn property(self, name: &str) -> Option<&'s Value> {
        self.get("properties")?.get(name)
    }

    /// Returns whether there are properties.
    pub fn has_properties(self) -> bool {
        self.properties().next().is_some()
    }

    /// Returns the schema of the items; a list of schemas is ignored.
    pub fn items(self) -> Option<&'s Value> {
        self.get("items").filter(|items| items.is_object())
    }

    /// Returns the schema of a map's values.
    pub fn values(self) -> Option<&'s Value> {
        self.get("additionalProperties").filter(|values| values.is_object())
    }
}

/// Returns whether a node of the schema, including the root, matches the predicate.
pub fn any(schema: &Value, matches: &dyn Fn(Props<'_>) -> bool) -> bool {
    let props = Props::new(schema);
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| props.list(name));
    let single = [props.items(), props.values(), props.get("not")].into_iter().flatten();
    matches(props)
        || props
            .properties()
            .map(|(_, schema)| schema)
            .chain(lists)
            .chain(single)
            .any(|schema| any(schema, matches))
}

/// Returns the value at a path, creating its parents; `None` if one of them is not an object.
pub fn entry<'v>(object: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    let mut at = object;
    for name in path {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut()?.entry(*name).or_insert(Value::Null);
    }
    Some(at)
}

/// Sets a field, unless one of its parents is not an object.
pub fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if let Some(place) = entry(object, path) {
        *place = value.into();
    }
}
