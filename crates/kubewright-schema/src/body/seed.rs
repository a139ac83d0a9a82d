//! Serde seed that builds a value while checking it against a schema.
//!
//! Repeated keys, unknown fields and the first value of a wrong type are noted in document order.

use std::fmt::{self, Write as _};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value, map::Entry};

use super::{
    BodyError, Decoded,
    types::{Problem, go_type, problem},
};
use crate::{AdditionalProperties, Child, Kind, Node, Schemas, go};

/// Maximum number of collected findings.
const MAX_FINDINGS: usize = 100;
const TOO_DEEP: &str = "exceeded max depth";

/// State of decoding one document.
pub(super) struct Context {
    /// `spec.containers[0].image`, for findings.
    path: String,
    /// `.spec.containers.image`, for type errors.
    fields: String,
    findings: Vec<String>,
    wrong_type: Option<String>,
    depth_left: usize,
    too_deep: bool,
}

/// Position of a value in the schema.
#[derive(Clone, Copy)]
struct Place<'n> {
    node: &'n Node,
    /// The reference that led here, for the type's name; `None` at the root.
    child: Option<&'n Child>,
    /// The struct that the field belongs to.
    owner: Owner<'n>,
}

/// Struct that a field belongs to. Its name is resolved only for messages.
#[derive(Clone, Copy)]
enum Owner<'n> {
    Kind(&'n str),
    Definition(u16),
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind(name) => name,
            Self::Definition(id) => Schemas::builtin().name_of(*id).rsplit('.').next().unwrap_or_default(),
        })
    }
}

impl Context {
    pub(super) fn new(depth: usize) -> Self {
        Self {
            path: String::new(),
            fields: String::new(),
            findings: Vec::new(),
            wrong_type: None,
            depth_left: depth,
            too_deep: false,
        }
    }

    pub(super) fn run<'de, D: Deserializer<'de>>(
        &mut self,
        source: D,
        schema: Option<(&Node, &str)>,
    ) -> Result<Value, D::Error> {
        let place = schema.map(|(node, kind)| Place { node, child: None, owner: Owner::Kind(kind) });
        Seed { context: self, place }.deserialize(source)
    }

    pub(super) fn finish(self, value: Value) -> Result<Decoded, BodyError> {
        match self.wrong_type {
            Some(message) => Err(BodyError::Type(message)),
            None => Ok(Decoded { value, findings: self.findings }),
        }
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    pub(super) fn depth_error() -> BodyError {
        BodyError::Syntax(TOO_DEEP.to_owned())
    }

    fn add_finding(&mut self, what: &str, key: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let finding = format!("{what} {}", go::quote(&format!("{}{dot}{key}", self.path)));
        if self.findings.len() < MAX_FINDINGS && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn check(&mut self, place: Option<Place<'_>>, value: &Value) {
        let (Some(place), None) = (place, &self.wrong_type) else { return };
        let Some(problem) = problem(place.node, value) else { return };
        self.wrong_type = Some(match problem {
            Problem::Custom(message) => message,
            Problem::Kind(found) => {
                let wanted = place.child.map(go_type).unwrap_or_default();
                format!(
                    "json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}",
                    place.owner,
                    self.fields.strip_prefix('.').unwrap_or_default()
                )
            }
        });
    }
}

struct Seed<'c, 'n> {
    context: &'c mut Context,
    place: Option<Place<'n>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'n> Seed<'_, 'n> {
    fn scalar(self, value: Value) -> Value {
        self.context.check(self.place, &value);
        value
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        self.context.depth_left = self.context.depth_left.checked_sub(1).ok_or_else(|| {
            self.context.too_deep = true;
            E::custom(TOO_DEEP)
        })?;
        Ok(())
    }

    /// Returns the struct that errors below this node name.
    fn owner(place: Place<'n>) -> Owner<'n> {
        match (place.child, &place.node.kind) {
            (Some(Child::Builtin(id)), Kind::Object(object)) if !object.fields.is_empty() => {
                Owner::Definition(*id)
            }
            _ => place.owner,
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(self.scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(self.scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // Go decodes an integer that does not fit int64 as a float64.
        #[expect(clippy::cast_precision_loss, reason = "as Go does")]
        let value = i64::try_from(value).map_or_else(|_| float(value as f64), Value::from);
        Ok(self.scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.scalar(float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.enter()?;
        let list = self.place.and_then(|place| Some((place, place.node.as_list()?)));
        let item_place = list.map(|(place, list)| Place {
            node: list.item.node(),
            child: Some(&list.item),
            owner: Self::owner(place),
        });
        let is_wrong = self.place.is_some() && list.is_none();
        if is_wrong {
            self.context.check(self.place, &Value::Array(Vec::new()));
        }
        let mut out = Vec::new();
        let length = self.context.path.len();
        loop {
            // Writing to a `String` cannot fail.
            let _ = write!(self.context.path, "[{}]", out.len());
            let item = items.next_element_seed(Seed { context: self.context, place: item_place })?;
            self.context.path.truncate(length);
            match item {
                Some(item) => out.push(item),
                None => break,
            }
        }
        self.context.depth_left += 1;
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        self.enter()?;
        self.context.check(self.place, &Value::Object(Map::new()));
        let mut out = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let object = self.place.and_then(|place| place.node.as_object());
            let field = object.and_then(|object| object.field(&key));
            let place = self.place.and_then(|place| {
                let child = match (object?, field) {
                    (_, Some(field)) => &field.node,
                    (object, None) => match &object.additional {
                        AdditionalProperties::Values(values) => values,
                        _ => return None,
                    },
                };
                Some(Place { node: child.node(), child: Some(child), owner: Self::owner(place) })
            });
            let is_unknown = field.is_none()
                && object.is_some_and(|object| matches!(object.additional, AdditionalProperties::Closed));
            if is_unknown {
                self.context.add_finding("unknown field", &key);
                entries.next_value::<serde::de::IgnoredAny>()?;
                continue;
            }
            // One lookup of the key serves both the check for duplicates and the insertion.
            let entry = out.entry(key);
            let (key, is_repeated) = (entry.key(), matches!(entry, Entry::Occupied(_)));
            if is_repeated {
                self.context.add_finding("duplicate field", key);
            }
            let (length, fields_length) = (self.context.path.len(), self.context.fields.len());
            if length > 0 {
                self.context.path.push('.');
            }
            self.context.path.push_str(key);
            if field.is_some() {
                self.context.fields.push('.');
                self.context.fields.push_str(key);
            }
            let value = entries.next_value_seed(Seed { context: self.context, place })?;
            self.context.fields.truncate(fields_length);
            self.context.path.truncate(length);
            match entry {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut before) => merge(before.get_mut(), value, object.is_some()),
            }
        }
        self.context.depth_left += 1;
        Ok(Value::Object(out))
    }
}

/// Merges the value of a repeated field: Go decodes into the struct or map that the first one filled.
fn merge(before: &mut Value, value: Value, typed: bool) {
    match (before, value) {
        (Value::Object(before), Value::Object(more)) if typed => {
            for (key, value) in more {
                match before.entry(key) {
                    Entry::Vacant(place) => {
                        place.insert(value);
                    }
                    Entry::Occupied(mut before) => merge(before.get_mut(), value, true),
                }
            }
        }
        (before, value) => *before = value,
    }
}

/// Converts a float; whole numbers become integers because Go writes them without a fraction.
fn float(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if value.fract() == 0.0 && value.abs() < 9.0e18 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
