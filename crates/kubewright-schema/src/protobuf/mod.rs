//! The `application/vnd.kubernetes.protobuf` media type, which Go's typed clients use.
//!
//! Objects are JSON everywhere else in this crate. [`decode`] and [`encode`] convert them, driven by the
//! table of built-in types, which has the protobuf field numbers, so there are no generated types. As
//! upstream, custom resources have no protobuf encoding.
//!
//! A document is the four bytes `k8s\0` and a `runtime.Unknown`: `typeMeta` (apiVersion, kind) and the
//! message itself. A watch is a sequence of `WatchEvent` messages, each preceded by its length in four bytes
//! and containing a document ([`frame`]).
//!
//! Pitfall: Go writes zero values of plain fields and reads absent ones as zero, so protobuf does not
//! distinguish them. [`decode`] canonicalises, which gives the same value as the same object sent as JSON.

mod decode;
mod encode;
mod wire;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub use self::wire::ProtobufError;
use crate::{
    AdditionalProperties, Child, Field, Gvk, Kind, List, ListType, Node, Object, PatchStrategy, Presence,
    Schemas, TypeRef, Wire, WireForm, canonical,
};

/// Media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Prefix of every document.
const MAGIC: &[u8] = b"k8s\0";

/// Type within the unions of a CRD's schema.
const SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Maximum nesting of messages, as in JSON bodies.
const MAX_DEPTH: usize = 250;

/// Document with its type and its undecoded message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// `apiVersion`; may be empty.
    pub api_version: String,
    /// `kind`; may be empty.
    pub kind: String,
    raw: &'b [u8],
}

/// Parses the envelope of a document without decoding the object.
pub fn open(document: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let Some(body) = document.strip_prefix(MAGIC) else {
        return Err(if document.is_empty() { ProtobufError::Empty } else { ProtobufError::NoPrefix });
    };
    let mut envelope = Envelope::default();
    let mut fields = wire::Reader::new(body);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => {
                let mut meta = wire::Reader::new(payload.bytes("typeMeta")?);
                while let Some((number, payload)) = meta.next()? {
                    match number {
                        1 => envelope.api_version = payload.text("apiVersion")?,
                        2 => envelope.kind = payload.text("kind")?,
                        _ => {}
                    }
                }
            }
            2 => envelope.raw = payload.bytes("raw")?,
            _ => {}
        }
    }
    Ok(envelope)
}

impl Envelope<'_> {
    /// Decodes the object into canonical JSON, with the `kind` and `apiVersion` of the envelope; `None` if
    /// there is no such built-in type.
    pub fn object(&self) -> Option<Result<Value, ProtobufError>> {
        let gvk = Gvk::from_api_version(&self.api_version, self.kind.clone());
        schema(&gvk).map(|schema| self.object_of(&schema, MAX_DEPTH))
    }

    fn object_of(&self, schema: &Node, depth: usize) -> Result<Value, ProtobufError> {
        let mut members = Map::new();
        if let Kind::Object(object) = &schema.kind {
            decode::message(object, self.raw, depth, &mut members)?;
        }
        let mut value = Value::Object(members);
        canonical::canonicalise(schema, &mut value);
        value["kind"] = self.kind.as_str().into();
        value["apiVersion"] = self.api_version.as_str().into();
        Ok(value)
    }
}

/// Decodes a document into JSON.
///
/// ```
/// use kubewright_schema::protobuf;
/// use serde_json::json;
///
/// let lease = json!({
///     "kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"},
///     "spec": {"renewTime": "2026-01-01T00:00:00.000001Z"},
/// });
/// let bytes = protobuf::encode(&lease).unwrap();
/// assert_eq!(protobuf::decode(&bytes)?, lease);
/// # Ok::<(), protobuf::ProtobufError>(())
/// ```
pub fn decode(document: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = open(document)?;
    envelope
        .object()
        .unwrap_or(Err(ProtobufError::UnknownKind { api_version: envelope.api_version, kind: envelope.kind }))
}

/// Encodes an object of a built-in type by its `kind` and `apiVersion`; `None` for other types.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let schema = schema(&Gvk::from_api_version(api_version, kind))?;
    let mut raw = Vec::new();
    if let (Kind::Object(shape), Some(members)) = (&schema.kind, object.as_object()) {
        encode::message(shape, members, &mut raw);
    }
    Some(document(api_version, kind, &raw))
}

/// Encodes a watch event with its length prefix; `None` if the object has no protobuf encoding.
pub fn frame(event: &str, object: &Value) -> Option<Vec<u8>> {
    let document = encode(object)?;
    let mut raw = Vec::with_capacity(document.len() + 8);
    wire::put_bytes(&mut raw, 1, &document);
    let mut message = vec![0; 4];
    wire::put_bytes(&mut message, 1, event.as_bytes());
    wire::put_bytes(&mut message, 2, &raw);
    let length = u32::try_from(message.len() - 4).ok()?;
    message[..4].copy_from_slice(&length.to_be_bytes());
    Some(message)
}

fn document(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::with_capacity(api_version.len() + kind.len() + 4);
    wire::put_bytes(&mut meta, 1, api_version.as_bytes());
    wire::put_bytes(&mut meta, 2, kind.as_bytes());
    let mut out = Vec::with_capacity(raw.len() + meta.len() + 16);
    out.extend_from_slice(MAGIC);
    wire::put_bytes(&mut out, 1, &meta);
    wire::put_bytes(&mut out, 2, raw);
    // Content encoding and content type, which Go writes although they are empty.
    wire::put_bytes(&mut out, 3, b"");
    wire::put_bytes(&mut out, 4, b"");
    out
}

/// Returns the schema of a built-in type. Partial objects are not part of `OpenAPI`, but of the protocol.
fn schema(gvk: &Gvk) -> Option<TypeRef> {
    match (&*gvk.group, &*gvk.kind) {
        ("meta.k8s.io", "PartialObjectMetadata") => Some(TypeRef::builtin(&PARTIAL)),
        ("meta.k8s.io", "PartialObjectMetadataList") => Some(TypeRef::builtin(&PARTIAL_LIST)),
        _ => Schemas::builtin().lookup(gvk),
    }
}

static PARTIAL: LazyLock<Node> = LazyLock::new(|| object_schema(meta_type("ObjectMeta"), None));
static PARTIAL_LIST: LazyLock<Node> = LazyLock::new(|| {
    let item = PARTIAL.clone().into();
    object_schema(
        meta_type("ListMeta"),
        Some(Node::from(Kind::List(List { item, list_type: ListType::Atomic })).into()),
    )
});

fn meta_type(name: &str) -> Child {
    let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
    Schemas::builtin().definition_named(&name).map_or_else(|| Node::default().into(), Child::Builtin)
}

/// Builds the schema of an object with metadata, and with items if it is a list.
fn object_schema(metadata: Child, items: Option<Child>) -> Node {
    let field = |name: &str, number: Option<u16>, presence, node| Field {
        name: name.into(),
        node,
        required: false,
        presence,
        patch: PatchStrategy::default(),
        wire: Wire { numbers: number.into_iter().collect(), form: WireForm::Plain },
    };
    let text = || Child::from(Node::from(Kind::Scalar(crate::Scalar::String)));
    let mut fields = vec![
        field("apiVersion", None, Presence::OmitEmpty, text()),
        field("kind", None, Presence::OmitEmpty, text()),
        field("metadata", Some(1), Presence::Always, metadata),
    ];
    if let Some(items) = items {
        fields.insert(1, field("items", Some(2), Presence::AlwaysNull, items));
    }
    Kind::Object(Object { fields: fields.into(), additional: AdditionalProperties::Closed, atomic: false })
        .into()
}
