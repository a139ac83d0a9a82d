//! A type as data: what the server must know of a resource to serve it.
//!
//! Built-in types are rows of a table ([`super::builtin`]), custom resources become descriptors at run time. All verbs
//! are the same code for all of them; what differs is here, or in the few functions of a [`Strategy`].

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

use super::{custom::Custom, strategy::Strategy};
use crate::{
    schema::{Schemas, TypeRef},
    status::About,
    storage::{Draft, Object},
};

/// Static for built-in types, owned for custom ones.
pub(crate) type Text = Cow<'static, str>;

/// The JSON object of an API object.
pub(crate) type Json = Map<String, Value>;

/// Where objects of a type live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// When `metadata.generation` counts up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The type has none.
    None,
    /// On every change outside of metadata and status.
    Content,
    /// On every change outside of metadata: custom resources, whose status stays when it has an endpoint of its own.
    ContentAndStatus,
    /// As `Content`, and when annotations change.
    ContentAndAnnotations,
    /// As `Content`, and on any change of labels or annotations.
    ContentAndMetadata,
}

/// A subresource, as discovery shows it and as requests reach it.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// Its name: the last part of the path.
    pub name: Text,
    /// The group of its kind; empty means that of the parent.
    pub group: Text,
    /// The version of its kind.
    pub version: Text,
    /// The kind that it takes and gives.
    pub kind: Text,
    /// The verbs it has.
    pub verbs: Vec<Text>,
}

/// A field that lists and watches can select by, besides name and namespace.
#[derive(Debug, Clone)]
pub struct SelectableField {
    /// As selectors write it.
    pub label: Text,
    /// Where it is; several places are tried in turn.
    pub paths: Vec<Vec<Text>>,
    /// What it is when it is not there.
    pub absent: Text,
}

impl SelectableField {
    fn value(&self, object: &Json) -> Box<str> {
        for path in &self.paths {
            let Some((first, rest)) = path.split_first() else { continue };
            let mut found = object.get(first.as_ref());
            for part in rest {
                found = found.and_then(|v| v.get(part.as_ref()));
            }
            match found {
                Some(Value::String(text)) if !text.is_empty() => return text.as_str().into(),
                Some(Value::Bool(_) | Value::Number(_)) => {
                    return found.map(ToString::to_string).unwrap_or_default().into();
                }
                _ => {}
            }
        }
        self.absent.as_ref().into()
    }
}

/// How the object of one version becomes that of the stored version, and back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversion {
    /// From what is stored to what this version shows.
    pub(crate) from_stored: fn(&mut Json),
    /// From what this version takes to what is stored.
    pub(crate) to_stored: fn(&mut Json),
}

/// What a deletion without a propagation policy does with dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultPropagation {
    /// The garbage collector removes them afterwards.
    Background,
    /// They are orphaned.
    Orphan,
}

/// One resource in one version.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a type")]
pub struct Descriptor {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind.
    pub kind: Text,
    /// The kind of its lists.
    pub list_kind: Text,
    /// The plural: the name in paths.
    pub plural: Text,
    /// The singular.
    pub singular: Text,
    /// Where objects live.
    pub scope: Scope,
    /// Short names for kubectl.
    pub short_names: Vec<Text>,
    /// Categories for kubectl.
    pub categories: Vec<Text>,
    /// The verbs, as discovery orders them.
    pub verbs: Vec<Text>,
    /// The subresources, sorted.
    pub subresources: Vec<Subresource>,
    /// The key of the collection in storage; versions of one resource share it.
    pub storage: Arc<str>,
    /// Fields to select by.
    pub fields: Vec<SelectableField>,
    /// When generation counts up.
    pub generation: Generation,
    /// Whether deletion waits for a kubelet (pods).
    pub graceful: bool,
    /// Whether PUT of a missing name creates.
    pub create_on_put: bool,
    /// Whether PUT without a resourceVersion overwrites.
    pub unconditional_put: bool,
    /// Whether deletion answers with the object rather than with a Status.
    pub delete_answers_object: bool,
    /// What deletion without a policy does.
    pub propagation: DefaultPropagation,
    /// Whether list items carry `kind` and `apiVersion` (custom resources do).
    pub typed_items: bool,
    /// Conversion, when this version is not the stored one.
    pub(crate) conversion: Option<Conversion>,
    /// The functions of the type.
    pub(crate) strategy: &'static Strategy,
    /// The definition behind a custom resource.
    pub(crate) custom: Option<Custom>,
    /// The built-in schema, once it was looked up.
    pub(crate) builtin_schema: Found,
}

/// A schema that is looked up once. A copy of a type may be given another kind, so it looks for itself.
#[derive(Debug, Default)]
pub(crate) struct Found(OnceLock<Option<TypeRef>>);

impl Clone for Found {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Descriptor {
    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether the type has a verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The shape of the type: that of its definition, or the built-in one.
    pub fn schema(&self) -> Option<TypeRef> {
        if let Some(custom) = &self.custom {
            return Some(custom.resource().schema().clone());
        }
        let find = || Schemas::builtin().find(&self.group, &self.version, &self.kind);
        self.builtin_schema.0.get_or_init(find).clone()
    }

    /// The schema of a custom resource as its definition has it, to be published.
    pub fn openapi(&self) -> Option<&Value> {
        self.custom.as_ref().and_then(|custom| custom.resource().openapi()).map(std::convert::AsRef::as_ref)
    }

    /// For refusals about the resource: `details.kind` is the plural.
    pub fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, kind: &self.plural, name }
    }

    /// For refusals about an object's content: `details.kind` is the Kind.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        // Events of both groups are validated as one type of the core group.
        let group = if self.group == "events.k8s.io" { "" } else { self.group.as_ref() };
        About { group, kind: &self.kind, name }
    }

    /// Encodes an object of the stored version.
    pub fn draft(&self, object: &Json) -> Draft {
        self.draft_with(object, None)
    }

    /// The same for an object whose `managedFields` are a text beside it; those of custom resources never are.
    pub(crate) fn draft_with(&self, object: &Json, managers: Option<&str>) -> Draft {
        if let Some(custom) = &self.custom {
            return custom.draft(object);
        }
        Draft::encode_with(object, managers, self.fields.iter().map(|f| f.value(object)).collect())
    }

    /// A stored object as this version shows it, with `kind` and `apiVersion`.
    pub fn decode(&self, object: &Object) -> Json {
        if let Some(custom) = &self.custom {
            return custom.show(object);
        }
        let mut json = object.decode();
        self.convert_from_stored(&mut json);
        json
    }

    /// Brings an object of this version into the stored one.
    pub fn to_stored(&self, object: &mut Json) {
        if let Some(custom) = &self.custom {
            custom.to_stored(object);
        }
        if let Some(conversion) = self.conversion {
            (conversion.to_stored)(object);
        }
    }

    /// Brings an object of the stored version into this one.
    pub fn convert_from_stored(&self, object: &mut Json) {
        if let Some(custom) = &self.custom {
            custom.convert_from_stored(object);
        }
        if let Some(conversion) = self.conversion {
            (conversion.from_stored)(object);
        }
        object.insert("kind".into(), self.kind.as_ref().into());
        object.insert("apiVersion".into(), self.api_version().into());
    }

    /// Whether the stored bytes are what this version shows.
    pub fn shows_as_stored(&self, object: &Object) -> bool {
        match &self.custom {
            Some(custom) => custom.is_current(object),
            None => self.conversion.is_none(),
        }
    }

    /// `{"kind":"Pod","apiVersion":"v1",`: what stands in front of the stored bytes (without their first brace).
    pub fn prefix(&self) -> String {
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", self.kind, self.api_version())
    }

    /// The bytes of one object as it travels alone.
    pub fn encode_single(&self, object: &Object) -> Vec<u8> {
        if !self.shows_as_stored(object) {
            return serde_json::to_vec(&self.decode(object)).unwrap_or_default();
        }
        let prefix = self.prefix();
        let mut bytes = Vec::with_capacity(prefix.len() + object.size());
        bytes.extend_from_slice(prefix.as_bytes());
        object.pieces_inside(|piece| bytes.extend_from_slice(piece));
        bytes
    }
}
