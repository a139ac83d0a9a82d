//! Reading a schema as it is written in a CRD; `null` counts as absent.

use serde_json::{Map, Value};

/// One node of an `openAPIV3Schema`.
#[derive(Debug, Clone, Copy)]
pub struct Props<'s>(pub Option<&'s Map<String, Value>>);

impl<'s> Props<'s> {
    /// Views a JSON value as a schema node.
    pub fn of(value: &'s Value) -> Self {
        Self(value.as_object())
    }

    /// The value of a keyword; `null` counts as absent.
    pub fn get(self, name: &str) -> Option<&'s Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// A string keyword, or the empty string.
    pub fn text(self, name: &str) -> &'s str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The `type` keyword.
    pub fn kind(self) -> &'s str {
        self.text("type")
    }

    /// A boolean keyword, or false.
    pub fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// An integer keyword.
    pub fn number(self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// An array keyword, or the empty slice.
    pub fn list(self, name: &str) -> &'s [Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The strings of an array keyword.
    pub fn texts(self, name: &str) -> Vec<&'s str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    /// The properties by name.
    pub fn properties(self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let map = self.get("properties").and_then(Value::as_object);
        map.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schema of one property.
    pub fn property(self, name: &str) -> Option<&'s Value> {
        self.get("properties")?.get(name)
    }

    /// Whether any property is declared.
    pub fn has_properties(self) -> bool {
        self.properties().next().is_some()
    }

    /// The schema of the items; a list of schemas is no schema.
    pub fn items(self) -> Option<&'s Value> {
        self.get("items").filter(|items| items.is_object())
    }

    /// The schema of a map's values.
    pub fn values(self) -> Option<&'s Value> {
        self.get("additionalProperties").filter(|values| values.is_object())
    }
}

/// Whether some node of the schema, itself included, is as asked.
pub fn any(schema: &Value, ask: &dyn Fn(Props<'_>) -> bool) -> bool {
    let props = Props::of(schema);
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| props.list(name));
    let single = [props.items(), props.values(), props.get("not")].into_iter().flatten();
    ask(props)
        || props
            .properties()
            .map(|(_, schema)| schema)
            .chain(lists)
            .chain(single)
            .any(|schema| any(schema, ask))
}

/// The place of a field, made on the way; `None` where something before it is no object: bodies can be anything.
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

/// Sets a field, unless something before it is no object.
pub fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if let Some(place) = entry(object, path) {
        *place = value.into();
    }
}
