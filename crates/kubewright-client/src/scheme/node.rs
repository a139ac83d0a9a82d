//! A document as a tree that remembers where each value stood.
//!
//! YAML and JSON are both read into this tree; typed objects, unstructured objects and error messages are made
//! from it. It holds what JSON can hold, plus line and column of every value and key.

use indexmap::{IndexMap, map::Entry};
use serde_json::{Map, Number, Value};

/// A place in the whole input, counted from 1. Line 0 means that the value came from memory, not from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// One value of a document.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: Mark,
    pub(super) value: NodeValue,
    /// The word as it was written, where reading it changed its look: `yes` is kept beside `true`, so that a
    /// message about the boolean can name the word.
    pub(super) written: Option<Box<str>>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum NodeValue {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Mapping),
}

/// The fields of an object in the order in which they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    pub(super) fields: IndexMap<String, Field>,
    /// Keys that were written again, with the place of each repetition. The last value is the one kept.
    pub(super) repeated: Vec<Repeated>,
}

/// The value of a key, and where the key stood.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) key_at: Mark,
    pub(super) node: Node,
}

/// A key that was written more than once.
#[derive(Debug, Clone)]
pub(super) struct Repeated {
    pub(super) key: String,
    pub(super) at: Mark,
    pub(super) first_line: usize,
}

impl Mapping {
    /// Sets a field as YAML readers for Kubernetes do: the last value of a repeated key wins.
    pub(super) fn insert(&mut self, key: String, key_at: Mark, node: Node) {
        match self.fields.entry(key) {
            Entry::Vacant(free) => {
                free.insert(Field { key_at, node });
            }
            Entry::Occupied(mut taken) => {
                let first_line = taken.get().key_at.line;
                self.repeated.push(Repeated { key: taken.key().clone(), at: key_at, first_line });
                taken.get_mut().node = node;
            }
        }
    }

    /// Adds the fields of a `<<` merge that are not there yet.
    pub(super) fn merge(&mut self, other: Mapping) {
        for (key, field) in other.fields {
            self.fields.entry(key).or_insert(field);
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.fields.get(key).map(|field| &field.node)
    }

    pub(super) fn get_str(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }
}

/// What one value costs beside its text, in the currency of [`Node::weight`].
const VALUE_WEIGHT: usize = 64;

impl Node {
    pub(super) fn new(at: Mark, value: NodeValue) -> Self {
        Self { at, value, written: None }
    }

    /// About how many bytes a copy of this value takes; aliases are paid for with it.
    pub(super) fn weight(&self) -> usize {
        VALUE_WEIGHT
            + match &self.value {
                NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => 0,
                NodeValue::String(text) => text.len(),
                NodeValue::Sequence(items) => items.iter().map(Node::weight).sum(),
                NodeValue::Mapping(mapping) => {
                    mapping.fields.iter().map(|(key, field)| key.len() + field.node.weight()).sum()
                }
            }
    }

    /// How many levels of sequences and mappings this value has: 0 for a scalar.
    pub(super) fn depth(&self) -> usize {
        match &self.value {
            NodeValue::Sequence(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            NodeValue::Mapping(mapping) => {
                1 + mapping.fields.values().map(|field| field.node.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// What the value is, in words for a message.
    pub(super) fn describe(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Sequence(_) => "a list",
            NodeValue::Mapping(_) => "an object",
        }
    }

    /// The same value without its places.
    pub(super) fn into_json(self) -> Value {
        match self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(value),
            NodeValue::Number(number) => Value::Number(number),
            NodeValue::String(text) => Value::String(text),
            NodeValue::Sequence(items) => Value::Array(items.into_iter().map(Node::into_json).collect()),
            NodeValue::Mapping(mapping) => Value::Object(mapping.into_json()),
        }
    }

    /// Whether any key in the value was written twice.
    pub(super) fn has_repeated(&self) -> bool {
        match &self.value {
            NodeValue::Sequence(items) => items.iter().any(Node::has_repeated),
            NodeValue::Mapping(mapping) => {
                !mapping.repeated.is_empty() || mapping.fields.values().any(|field| field.node.has_repeated())
            }
            _ => false,
        }
    }

    /// Calls `found` with the path and the record of every key that was written twice.
    pub(super) fn each_repeated(&self, path: &str, found: &mut impl FnMut(String, &Repeated)) {
        match &self.value {
            NodeValue::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.each_repeated(&format!("{path}[{index}]"), found);
                }
            }
            NodeValue::Mapping(mapping) => {
                for repeated in &mapping.repeated {
                    found(join(path, &repeated.key), repeated);
                }
                for (key, field) in &mapping.fields {
                    field.node.each_repeated(&join(path, key), found);
                }
            }
            _ => {}
        }
    }
}

impl Mapping {
    pub(super) fn into_json(self) -> Map<String, Value> {
        self.fields.into_iter().map(|(key, field)| (key, field.node.into_json())).collect()
    }
}

/// `spec` and `replicas` make `spec.replicas`; a key with dots is put in brackets so that the path stays readable.
pub(super) fn join(path: &str, key: &str) -> String {
    match (path.is_empty(), key.contains('.')) {
        (true, false) => key.to_owned(),
        (false, false) => format!("{path}.{key}"),
        (_, true) => format!("{path}[{key}]"),
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(value),
            Value::Number(number) => NodeValue::Number(number),
            Value::String(text) => NodeValue::String(text),
            Value::Array(items) => NodeValue::Sequence(items.into_iter().map(Node::from).collect()),
            Value::Object(fields) => {
                let mut mapping = Mapping::default();
                for (key, value) in fields {
                    mapping.insert(key, Mark::default(), Node::from(value));
                }
                NodeValue::Mapping(mapping)
            }
        };
        Self::new(Mark::default(), value)
    }
}
