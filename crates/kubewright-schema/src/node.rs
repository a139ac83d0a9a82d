//! The shape of a type: objects, lists and scalars, with what merging needs to know about each.

use std::{ops::Deref, sync::Arc};

use serde_json::Value;

use super::{Schemas, fields::Fields};

/// One place in a schema.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Object, list or scalar.
    pub kind: Kind,
    /// Whether `null` is a value here (`nullable: true` of a CRD).
    pub nullable: bool,
    /// Whether this very node keeps fields it does not name (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether this is a whole object with apiVersion, kind and metadata (`x-kubernetes-embedded-resource`).
    pub embedded_resource: bool,
    /// The value of an absent field. For built-in types only keys of associative lists have one.
    pub default: Option<Value>,
}

/// What kind of value a [`Node`] describes.
#[derive(Debug, Clone, Default)]
pub enum Kind {
    /// A struct, a map or both.
    Object(Object),
    /// A list.
    List(List),
    /// A string, number or boolean.
    Scalar(Scalar),
    /// Anything: maps are merged key by key, lists are atomic.
    #[default]
    Any,
    /// Anything, merged as one value (`RawExtension`).
    Raw,
}

/// The content of [`Kind::Object`].
#[derive(Debug, Clone)]
pub struct Object {
    /// Named fields, sorted by name.
    pub fields: Fields,
    /// What other keys may hold, as apply sees it.
    pub rest: Rest,
    /// Replaced as a whole by apply (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
}

/// What an object allows besides its named fields.
#[derive(Debug, Clone)]
pub enum Rest {
    /// Nothing.
    Closed,
    /// Keys with values of one type: a map.
    Values(Child),
    /// Anything.
    Free,
}

/// A named field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// The JSON name.
    pub name: Box<str>,
    /// Its type.
    pub node: Child,
    /// Whether the schema lists it as required.
    pub required: bool,
    /// What Go writes when it is not set; built-in types only.
    pub presence: Presence,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// Its place in the protobuf message; built-in types only.
    pub wire: Wire,
}

/// Where a field of a built-in type stands in its protobuf message, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wire {
    /// Field numbers from the outside in: the fields of an embedded struct are in a message of their own. Empty for
    /// fields that protobuf does not have (`kind` and `apiVersion` of a whole object).
    pub numbers: Box<[u16]>,
    /// How values are written.
    pub form: WireForm,
}

/// How the values of a field are written in protobuf. Of a list or a map it speaks of the elements, except that a
/// wrapped list is wrapped whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WireForm {
    /// As the type of the field says.
    #[default]
    Plain,
    /// A list of strings in a message (`items = 1`).
    Wrapped,
    /// A schema or true or false.
    SchemaOrBool,
    /// A schema or a list of them.
    SchemaOrArray,
    /// A schema or a list of strings.
    SchemaOrStrings,
}

/// What the Go type behind a field writes when the field is not set, which decides what a stored object and its
/// managedFields look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    /// A pointer: absent or any value, zero included.
    #[default]
    Optional,
    /// `omitempty` on a plain value: the zero value is left out.
    OmitEmpty,
    /// Always written: a struct as an object, a scalar as its zero value.
    Always,
    /// Always written, as `null` when not set: lists, maps and times without `omitempty`.
    AlwaysNull,
    /// `omitzero`: left out when everything in it is zero.
    OmitZero,
}

/// How a strategic merge patch treats a field of a built-in type.
#[derive(Debug, Clone, Default)]
pub struct PatchStrategy {
    /// Lists are merged: by `merge_key`, or as a set of scalars without one.
    pub merge: bool,
    /// Only the keys listed in `$retainKeys` survive.
    pub retain_keys: bool,
    /// The value is replaced whole even though it is a map.
    pub replace: bool,
    /// The field that identifies an item of a merged list.
    pub merge_key: Option<Box<str>>,
}

/// The content of [`Kind::List`].
#[derive(Debug, Clone)]
pub struct List {
    /// The type of an item.
    pub item: Child,
    /// How apply merges items.
    pub list_type: ListType,
}

/// How server-side apply merges the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// One owner, replaced whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects identified by the values of these fields.
    Map(Vec<Box<str>>),
}

/// The content of [`Kind::Scalar`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A string of any kind without a format.
    String,
    /// Base64 text (format `byte`).
    Bytes,
    /// A string with a format, such as `date-time`.
    Formatted,
    /// A `metav1.Time`: RFC 3339, kept in whole seconds.
    Time,
    /// A `metav1.MicroTime`: RFC 3339 with six digits of a second.
    MicroTime,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A number with a fraction.
    Number,
    /// True or false.
    Boolean,
    /// An integer or a string.
    IntOrString,
    /// A `resource.Quantity`.
    Quantity,
}

/// A node inside another: written out, or a reference to a built-in definition.
#[derive(Debug, Clone)]
pub enum Child {
    /// A node of its own.
    Inline(Box<Node>),
    /// The built-in definition with this number.
    Builtin(u16),
}

impl Child {
    /// The node itself; a reference is decoded on first use.
    pub fn node(&self) -> &Node {
        match self {
            Self::Inline(node) => node,
            Self::Builtin(id) => Schemas::builtin().definition_node(*id),
        }
    }
}

impl From<Node> for Child {
    fn from(node: Node) -> Self {
        Self::Inline(Box::new(node))
    }
}

impl From<Kind> for Node {
    fn from(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// The fully open node: what lies below content that no schema describes.
pub(crate) static ANY: Node = Node {
    kind: Kind::Any,
    nullable: false,
    preserve_unknown: false,
    embedded_resource: false,
    default: None,
};

/// Content that no schema describes and that is merged as one value.
pub(crate) static RAW: Node = Node {
    kind: Kind::Raw,
    nullable: false,
    preserve_unknown: false,
    embedded_resource: false,
    default: None,
};

impl Object {
    /// The named field, if the object has it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// The type of the value under `key`, named or not; `None` where the key is not allowed.
    pub fn value_of(&self, key: &str) -> Option<&Node> {
        match (self.field(key), &self.rest) {
            (Some(field), _) => Some(field.node.node()),
            (None, Rest::Values(values)) => Some(values.node()),
            (None, Rest::Free) => Some(&ANY),
            (None, Rest::Closed) => None,
        }
    }
}

impl Node {
    /// The object behind this node, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match &self.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The list behind this node, if it is one.
    pub fn as_list(&self) -> Option<&List> {
        match &self.kind {
            Kind::List(list) => Some(list),
            _ => None,
        }
    }
}

/// A handle to the schema of a whole type; a clone is free for built-in types and one reference count otherwise.
///
/// ```
/// use kubewright_schema::{Gvk, Schemas};
///
/// let pod = Schemas::builtin().lookup(&Gvk::new("", "v1", "Pod")).unwrap();
/// assert!(pod.as_object().unwrap().field("spec").is_some());
/// ```
#[derive(Debug, Clone)]
pub struct TypeRef(Repr);

#[derive(Debug, Clone)]
enum Repr {
    Builtin(&'static Node),
    Owned(Arc<Node>),
}

impl TypeRef {
    pub(crate) fn builtin(node: &'static Node) -> Self {
        Self(Repr::Builtin(node))
    }
}

impl From<Node> for TypeRef {
    fn from(node: Node) -> Self {
        Self(Repr::Owned(Arc::new(node)))
    }
}

impl Deref for TypeRef {
    type Target = Node;

    fn deref(&self) -> &Node {
        match &self.0 {
            Repr::Builtin(node) => node,
            Repr::Owned(node) => node,
        }
    }
}
