//! Resource descriptors: everything the server needs to know about a type to serve it.
//!
//! Built-in types are rows of a table ([`super::builtin`]); custom resources get descriptors at run time. All
//! verbs are the same code for all types; differences are here, or in the functions of a [`Strategy`].

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

/// String that is static for built-in types and owned for custom resources.
pub type Text = Cow<'static, str>;

/// The JSON object of an API object.
pub type Json = Map<String, Value>;

/// Scope of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in a namespace.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// Changes that increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The type has none.
    None,
    /// On changes outside of metadata and status.
    Content,
    /// On changes outside of metadata: custom resources, whose status is reset if there is a status
    /// subresource.
    ContentAndStatus,
    /// Like `Content`, and on changes of annotations.
    ContentAndAnnotations,
    /// Like `Content`, and on changes of labels or annotations.
    ContentAndMetadata,
}

/// Subresource of a resource.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// The name in the path.
    pub name: Text,
    /// The group of its kind; empty for that of the parent.
    pub group: Text,
    /// The version of its kind.
    pub version: Text,
    /// The kind of its requests and responses.
    pub kind: Text,
    /// The supported verbs.
    pub verbs: Vec<Text>,
}

/// Field that list and watch requests can select by, besides name and namespace.
#[derive(Debug, Clone)]
pub struct SelectableField {
    /// The name in selectors.
    pub label: Text,
    /// Paths of the field; the first one present is used.
    pub paths: Vec<Vec<Text>>,
    /// The value if the field is absent.
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

/// Conversion between a served version and the stored version.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// Converts from the stored version.
    pub from_stored: fn(&mut Json),
    /// Converts to the stored version.
    pub to_stored: fn(&mut Json),
}

/// Default propagation policy of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultPropagation {
    /// The garbage collector deletes the dependents afterwards.
    Background,
    /// The dependents are orphaned.
    Orphan,
}

/// Descriptor of a resource in one version.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a type")]
pub struct Descriptor {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind.
    pub kind: Text,
    /// The kind of lists.
    pub list_kind: Text,
    /// The plural name, used in paths.
    pub plural: Text,
    /// The singular name.
    pub singular: Text,
    /// The scope.
    pub scope: Scope,
    /// Short names for kubectl.
    pub short_names: Vec<Text>,
    /// Categories for kubectl.
    pub categories: Vec<Text>,
    /// The verbs, in discovery order.
    pub verbs: Vec<Text>,
    /// The subresources, sorted.
    pub subresources: Vec<Subresource>,
    /// The storage key of the collection; versions of one resource share it.
    pub storage: Arc<str>,
    /// The selectable fields.
    pub fields: Vec<SelectableField>,
    /// When the generation is incremented.
    pub generation: Generation,
    /// Whether deletion waits for a kubelet (pods).
    pub graceful: bool,
    /// Whether PUT creates a missing object.
    pub create_on_put: bool,
    /// Whether PUT without a resourceVersion overwrites.
    pub unconditional_put: bool,
    /// Whether deletion returns the object rather than a Status.
    pub delete_answers_object: bool,
    /// The default propagation policy of deletion.
    pub propagation: DefaultPropagation,
    /// Whether list items have `kind` and `apiVersion` (custom resources do).
    pub typed_items: bool,
    /// The conversion, if this version is not the stored one.
    pub conversion: Option<Conversion>,
    /// The strategy of the type.
    pub strategy: &'static Strategy,
    /// The CRD of a custom resource.
    pub custom: Option<Custom>,
    /// The built-in schema, cached on first use.
    pub builtin_schema: CachedSchema,
}

/// Schema that is looked up once. A clone starts empty, because a copied descriptor may be given another
/// kind.
#[derive(Debug, Default)]
pub struct CachedSchema(OnceLock<Option<TypeRef>>);

impl Clone for CachedSchema {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Descriptor {
    /// Returns `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns whether objects are namespaced.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns whether the type supports a verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// Returns a subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Returns the schema of the type: that of its CRD, or the built-in one.
    pub fn schema(&self) -> Option<TypeRef> {
        if let Some(custom) = &self.custom {
            return Some(custom.resource().schema().clone());
        }
        let find = || Schemas::builtin().find(&self.group, &self.version, &self.kind);
        self.builtin_schema.0.get_or_init(find).clone()
    }

    /// Returns the `openAPIV3Schema` of a custom resource, for publishing.
    pub fn openapi(&self) -> Option<&Value> {
        self.custom.as_ref().and_then(|custom| custom.resource().openapi()).map(std::convert::AsRef::as_ref)
    }

    /// Returns the details of errors about the resource: `details.kind` is the plural.
    pub fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, kind: &self.plural, name }
    }

    /// Returns the details of errors about an object's content: `details.kind` is the kind.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        // Events of both groups are validated as one type of the core group.
        let group = if self.group == "events.k8s.io" { "" } else { self.group.as_ref() };
        About { group, kind: &self.kind, name }
    }

    /// Encodes an object of the stored version.
    pub fn draft(&self, object: &Json) -> Draft {
        self.draft_with(object, None)
    }

    /// Encodes an object whose `managedFields` are given as JSON text; never used for custom resources.
    pub(crate) fn draft_with(&self, object: &Json, managers: Option<&str>) -> Draft {
        if let Some(custom) = &self.custom {
            return custom.draft(object);
        }
        Draft::encode_with(object, managers, self.fields.iter().map(|f| f.value(object)).collect())
    }

    /// Decodes a stored object and converts it to this version, with `kind` and `apiVersion`.
    pub fn decode(&self, object: &Object) -> Json {
        if let Some(custom) = &self.custom {
            return custom.show(object);
        }
        let mut json = object.decode();
        self.from_stored(&mut json);
        json
    }

    /// Converts an object of this version to the stored one.
    pub fn to_stored(&self, object: &mut Json) {
        if let Some(custom) = &self.custom {
            custom.to_stored(object);
        }
        if let Some(conversion) = self.conversion {
            (conversion.to_stored)(object);
        }
    }

    /// Converts an object of the stored version to this one.
    pub fn from_stored(&self, object: &mut Json) {
        if let Some(custom) = &self.custom {
            custom.from_stored(object);
        }
        if let Some(conversion) = self.conversion {
            (conversion.from_stored)(object);
        }
        object.insert("kind".into(), self.kind.as_ref().into());
        object.insert("apiVersion".into(), self.api_version().into());
    }

    /// Returns whether the stored bytes are valid in this version without conversion.
    pub fn shows_as_stored(&self, object: &Object) -> bool {
        match &self.custom {
            Some(custom) => custom.is_current(object),
            None => self.conversion.is_none(),
        }
    }

    /// Returns `{"kind":"Pod","apiVersion":"v1",`, to be prepended to the stored bytes without their opening
    /// brace.
    pub fn prefix(&self) -> String {
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", self.kind, self.api_version())
    }

    /// Encodes a single object, with `kind` and `apiVersion`.
    pub fn encode_single(&self, object: &Object) -> Vec<u8> {
        if !self.shows_as_stored(object) {
            return serde_json::to_vec(&self.decode(object)).unwrap_or_default();
        }
        let prefix = self.prefix();
        let mut bytes = Vec::with_capacity(prefix.len() + object.size());
        bytes.extend_from_slice(prefix.as_bytes());
        object.for_each_member_chunk(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }
}
