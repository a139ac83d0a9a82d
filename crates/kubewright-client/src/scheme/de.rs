//! Nodes into typed objects.
//!
//! A `serde` deserializer over [`Node`] that adds two things to what `serde_json` does: an error knows the path and
//! the line of the value that does not fit, and a field that the type ignores is reported with its path.

use std::{cell::RefCell, fmt};

use serde::{
    Deserialize,
    de::{
        self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor,
    },
};

use super::{
    error::{Issue, IssueKind},
    node::{Field, Mark, Node, NodeValue, join},
    similar::similar,
};

/// Decodes a value and tells which of its fields were ignored.
pub(super) fn from_node<T: de::DeserializeOwned>(node: Node) -> Result<(T, Vec<Issue>), NodeError> {
    let unknown = RefCell::default();
    let value = T::deserialize(NodeDeserializer { node, path: Path::Root, unknown: &unknown })?;
    Ok((value, unknown.into_inner()))
}

/// Why a node does not fit a type. Texts from the document are not in the message.
#[derive(Debug)]
pub(super) struct NodeError(Box<Fault>);

#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    /// The message without any value in it, for objects that are secret as a whole.
    pub(super) discreet: String,
    pub(super) path: String,
    pub(super) at: Option<Mark>,
}

impl NodeError {
    pub(super) fn into_fault(self) -> Fault {
        *self.0
    }

    fn new(message: impl Into<String>, discreet: impl Into<String>) -> Self {
        let (message, discreet) = (message.into(), discreet.into());
        Self(Box::new(Fault { message, discreet, path: String::new(), at: None }))
    }

    /// A message of our own, which holds no value.
    fn plain(message: &str) -> Self {
        Self::new(message, message)
    }

    /// Adds the place unless a value further in has put its own.
    fn at(mut self, at: Mark, path: &Path<'_>, written: Option<&str>) -> Self {
        let fault = &mut *self.0;
        if fault.at.is_none() {
            fault.at = Some(at);
            fault.path = path.to_string();
            if let Some(written) = written {
                let hint = "without quotes; put it in quotes if a text is meant";
                fault.message = format!("{} (written {written} {hint})", fault.message);
                fault.discreet = format!("{} (written {hint})", fault.discreet);
            }
        }
        self
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for NodeError {}

impl de::Error for NodeError {
    /// The type's own words, which may hold the value.
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string(), "the value does not fit")
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            format!("invalid type: {}, expected {expected}", Quiet(found)),
            format!("invalid type: {}, expected {expected}", kind_of(found)),
        )
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            format!("invalid value: {}, expected {expected}", Quiet(found)),
            format!("invalid value: {}, expected {expected}", kind_of(found)),
        )
    }

    fn missing_field(field: &'static str) -> Self {
        Self::plain(&format!("the required field {field} is missing"))
    }
}

/// Shows numbers and booleans but no texts, which may be secrets.
struct Quiet<'a>(Unexpected<'a>);

impl fmt::Display for Quiet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => {
                self.0.fmt(f)
            }
            other => f.write_str(kind_of(other)),
        }
    }
}

/// What kind of value was found.
fn kind_of(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Str(_) | Unexpected::Char(_) | Unexpected::Bytes(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Map => "an object",
        Unexpected::Seq => "a list",
        _ => "another kind of value",
    }
}

/// The way from the object to a value, kept on the stack and written out only when somebody asks.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Field(&'p Path<'p>, FieldName<'p>),
    Item(&'p Path<'p>, usize),
}

#[derive(Clone, Copy)]
struct FieldName<'p> {
    key: &'p str,
    at: Mark,
    /// The names that the struct around it knows.
    known: &'static [&'static str],
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(parent, name) => f.write_str(&join(&parent.to_string(), name.key)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct NodeDeserializer<'p> {
    node: Node,
    path: Path<'p>,
    unknown: &'p RefCell<Vec<Issue>>,
}

impl NodeDeserializer<'_> {
    /// Visits the value; a struct's field names come along for the sake of its messages.
    fn visit<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        known: &'static [&'static str],
    ) -> Result<V::Value, NodeError> {
        let Self { node: Node { at, value, written }, path, unknown } = self;
        let visited = match value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(value) => visitor.visit_bool(value),
            NodeValue::Number(number) => {
                if let Some(value) = number.as_u64() {
                    visitor.visit_u64(value)
                } else if let Some(value) = number.as_i64() {
                    visitor.visit_i64(value)
                } else {
                    // A number that is no integer is a float.
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            NodeValue::String(text) => visitor.visit_string(text),
            NodeValue::Sequence(items) => {
                let length = items.len();
                let mut items = Items { rest: items.into_iter(), index: 0, path: &path, unknown };
                visitor.visit_seq(&mut items).and_then(|made| match items.rest.len() {
                    0 => Ok(made),
                    left => Err(de::Error::invalid_length(length, &&*format!("a list of {}", length - left))),
                })
            }
            NodeValue::Mapping(mapping) => visitor.visit_map(Fields {
                rest: mapping.fields.into_iter(),
                value: None,
                path: &path,
                known,
                unknown,
            }),
        };
        visited.map_err(|error| error.at(at, &path, written.as_deref()))
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = NodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.visit(visitor, &[])
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        // Serde's own structs would take a list of their fields in order; Kubernetes knows no such thing.
        if let NodeValue::Sequence(_) = self.node.value {
            let error: NodeError = de::Error::invalid_type(Unexpected::Seq, &visitor);
            return Err(error.at(self.node.at, &self.path, None));
        }
        self.visit(visitor, fields)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        let (at, path) = (self.node.at, self.path);
        match self.node.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error| error.at(at, &path, None))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        // `cpu: 1` is as good as `cpu: "1"` to Kubernetes; the Rust type holds a text.
        if let ("Quantity", NodeValue::Number(number)) = (name, &self.node.value) {
            self.node.value = NodeValue::String(number.to_string());
        }
        let (at, path) = (self.node.at, self.path);
        visitor.visit_newtype_struct(self).map_err(|error| error.at(at, &path, None))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        let Self { node: Node { at, value, written }, path, unknown } = self;
        let visited = match value {
            NodeValue::String(name) => {
                visitor.visit_enum(Variant { name, content: None, path: &path, unknown })
            }
            NodeValue::Mapping(mapping) if mapping.fields.len() == 1 => {
                let (name, content) = mapping.fields.into_iter().next().unzip();
                let (name, content) = (name.unwrap_or_default(), content.map(|field| field.node));
                visitor.visit_enum(Variant { name, content, path: &path, unknown })
            }
            _ => Err(NodeError::plain("a text, or an object with one field, must name the variant")),
        };
        visited.map_err(|error| error.at(at, &path, written.as_deref()))
    }

    /// What a type does with a field that it does not know.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        // Every object has these two, and not every type has fields for them.
        let is_type = |parent: &Path<'_>, key| matches!((parent, key), (Path::Root, "apiVersion" | "kind"));
        match self.path {
            Path::Field(parent, FieldName { key, at, known }) if !is_type(parent, key) => {
                let kind = IssueKind::Unknown { similar: similar(key, known) };
                self.unknown.borrow_mut().push(Issue { path: self.path.to_string(), at, kind });
            }
            _ => {}
        }
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier
    }
}

struct Items<'p> {
    rest: std::vec::IntoIter<Node>,
    index: usize,
    path: &'p Path<'p>,
    unknown: &'p RefCell<Vec<Issue>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = NodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NodeError> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        let path = Path::Item(self.path, self.index);
        self.index += 1;
        seed.deserialize(NodeDeserializer { node, path, unknown: self.unknown }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Fields<'p> {
    rest: indexmap::map::IntoIter<String, Field>,
    value: Option<(String, Field)>,
    path: &'p Path<'p>,
    known: &'static [&'static str],
    unknown: &'p RefCell<Vec<Issue>>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = NodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NodeError> {
        let Some((key, field)) = self.rest.next() else { return Ok(None) };
        let name = FieldName { key: &key, at: field.key_at, known: self.known };
        let found = seed
            .deserialize(de::value::StrDeserializer::new(&key))
            .map_err(|error: NodeError| error.at(field.key_at, &Path::Field(self.path, name), None))?;
        self.value = Some((key, field));
        Ok(Some(found))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NodeError> {
        let Some((key, Field { key_at, node })) = self.value.take() else {
            return Err(NodeError::plain("a value was asked for before its key"));
        };
        let path = Path::Field(self.path, FieldName { key: &key, at: key_at, known: self.known });
        seed.deserialize(NodeDeserializer { node, path, unknown: self.unknown })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant by its name, with the value of `{name: value}` if it was written so.
struct Variant<'p> {
    name: String,
    content: Option<Node>,
    path: &'p Path<'p>,
    unknown: &'p RefCell<Vec<Issue>>,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'p> {
    type Error = NodeError;
    type Variant = Content<'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'p>), NodeError> {
        let Self { name, content, path, unknown } = self;
        let variant = seed.deserialize(de::value::StrDeserializer::<NodeError>::new(&name))?;
        let content = content.map(|node| NodeDeserializer { node, path: *path, unknown });
        Ok((variant, Content(content)))
    }
}

struct Content<'p>(Option<NodeDeserializer<'p>>);

impl<'p> Content<'p> {
    fn needed(self) -> Result<NodeDeserializer<'p>, NodeError> {
        self.0.ok_or_else(|| NodeError::plain("this variant needs a value"))
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = NodeError;

    fn unit_variant(self) -> Result<(), NodeError> {
        match self.0 {
            None => Ok(()),
            Some(content) => Deserialize::deserialize(content),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, NodeError> {
        seed.deserialize(self.needed()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, NodeError> {
        self.needed()?.visit(visitor, &[])
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.needed()?.visit(visitor, fields)
    }
}
