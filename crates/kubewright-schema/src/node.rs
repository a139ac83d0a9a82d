//! Schema model: objects, lists and scalars, with the merge rules of each.

use std::{ops::Deref, sync::Arc};

use serde_json::Value;

use super::{Schemas, fields::Fields};

/// Node of a schema.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Object, list or scalar.
    pub kind: Kind,
    /// Whether `null` is allowed (`nullable: true` of a CRD).
    pub nullable: bool,
    /// Whether this node itself keeps unknown fields (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether this is a complete object with apiVersion, kind and metadata
    /// (`x-kubernetes-embedded-resource`).
    pub embedded_resource: bool,
    /// The value of an absent field. In built-in types only keys of associative lists have one.
    pub default: Option<Value>,
}

/// Kind of value that a [`Node`] describes.
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
    /// Values allowed under other keys, as server-side apply sees it.
    pub additional: AdditionalProperties,
    /// Whether apply replaces it as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
}

/// Keys that an object allows besides its named fields, like `additionalProperties` in `OpenAPI`.
#[derive(Debug, Clone)]
pub enum AdditionalProperties {
    /// None.
    Closed,
    /// Any keys, with values of one type: a map.
    Values(Child),
    /// Any keys with any values.
    Any,
}

/// Named field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// The JSON name.
    pub name: Box<str>,
    /// Its type.
    pub node: Child,
    /// Whether the schema lists it as required.
    pub required: bool,
    /// When Go encodes the field; built-in types only.
    pub presence: Presence,
    /// Its strategic merge patch rules.
    pub patch: PatchStrategy,
    /// Its position in the protobuf message; built-in types only.
    pub wire: Wire,
}

/// Position and encoding of a field in its protobuf message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wire {
    /// Field numbers from the outermost message inwards: embedded structs are nested messages. Empty for
    /// fields that protobuf does not have (`kind` and `apiVersion` of a top-level object).
    pub numbers: Box<[u16]>,
    /// The encoding of values.
    pub form: WireForm,
}

/// Protobuf encoding of the values of a field. It applies to the elements of a list or map, except that
/// `Wrapped` wraps the whole list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WireForm {
    /// The encoding of the field's type.
    #[default]
    Plain,
    /// A list of strings in a message (`items = 1`).
    Wrapped,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of schemas.
    SchemaOrArray,
    /// A schema or a list of strings.
    SchemaOrStrings,
}

/// Condition for Go's JSON encoder to write a field, which determines stored objects and their managedFields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    /// A pointer: absent, or any value including zero.
    #[default]
    Optional,
    /// `omitempty` on a plain value: the zero value is omitted.
    OmitEmpty,
    /// Always written: a struct as an object, a scalar as its zero value.
    Always,
    /// Always written, as `null` if not set: lists, maps and times without `omitempty`.
    AlwaysNull,
    /// `omitzero`: omitted if it is entirely zero.
    OmitZero,
}

/// Strategic merge patch rules of a field of a built-in type.
#[derive(Debug, Clone, Default)]
pub struct PatchStrategy {
    /// Lists are merged: by `merge_key`, or as a set of scalars without one.
    pub merge: bool,
    /// Only the keys listed in `$retainKeys` survive.
    pub retain_keys: bool,
    /// The value is replaced as a whole even though it is a map.
    pub replace: bool,
    /// The field that identifies an item of a merged list.
    pub merge_key: Option<Box<str>>,
}

/// The content of [`Kind::List`].
#[derive(Debug, Clone)]
pub struct List {
    /// The type of an item.
    pub item: Child,
    /// The merge rule of server-side apply.
    pub list_type: ListType,
}

/// Merge rule of a list in server-side apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// One owner, replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects identified by the values of these fields.
    Map(Vec<Box<str>>),
}

/// The content of [`Kind::Scalar`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A string without a format.
    String,
    /// Base64 text (format `byte`).
    Bytes,
    /// A string with a format, such as `date-time`.
    Formatted,
    /// A `metav1.Time`: RFC 3339 in whole seconds.
    Time,
    /// A `metav1.MicroTime`: RFC 3339 with six fractional digits.
    MicroTime,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A floating-point number.
    Number,
    /// A boolean.
    Boolean,
    /// An integer or a string.
    IntOrString,
    /// A `resource.Quantity`.
    Quantity,
}

/// Child node: inline, or a reference to a built-in definition.
#[derive(Debug, Clone)]
pub enum Child {
    /// An inline node.
    Inline(Box<Node>),
    /// The built-in definition with this number; see [`Schemas`](super::Schemas).
    Builtin(u16),
}

impl Child {
    /// Returns the node; the target of a reference is decoded on first use.
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

/// Node without restrictions, for content below `x-kubernetes-preserve-unknown-fields`.
pub(crate) static ANY: Node = Node {
    kind: Kind::Any,
    nullable: false,
    preserve_unknown: false,
    embedded_resource: false,
    default: None,
};

/// Node for content without a schema that is merged as one value.
pub(crate) static RAW: Node = Node {
    kind: Kind::Raw,
    nullable: false,
    preserve_unknown: false,
    embedded_resource: false,
    default: None,
};

impl Object {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// Returns the schema of the value under `key`, whether a named field or not; `None` if the key is not
    /// allowed.
    pub fn value_of(&self, key: &str) -> Option<&Node> {
        match (self.field(key), &self.additional) {
            (Some(field), _) => Some(field.node.node()),
            (None, AdditionalProperties::Values(values)) => Some(values.node()),
            (None, AdditionalProperties::Any) => Some(&ANY),
            (None, AdditionalProperties::Closed) => None,
        }
    }
}

impl Node {
    /// Returns the object schema, if this is an object.
    pub fn as_object(&self) -> Option<&Object> {
        match &self.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the list schema, if this is a list.
    pub fn as_list(&self) -> Option<&List> {
        match &self.kind {
            Kind::List(list) => Some(list),
            _ => None,
        }
    }
}

/// Handle to the schema of a type; cloning is free for built-in types and one reference count otherwise.
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
