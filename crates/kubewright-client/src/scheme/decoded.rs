//! An object that came out of a document.

use std::{any::Any, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, GroupVersionKind, TypeMeta};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::Value;

use super::{
    error::{Issue, Location},
    object::{Object, downcast, name_of},
};
use kubewright_core::{KeyError, ObjectKey};

/// An object of a registered type, or an unstructured object.
///
/// ```
/// use kubewright::{k8s_openapi::api::core::v1::ConfigMap, scheme::Scheme};
///
/// let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours, namespace: shop}\ndata: {sky: blue}\n";
/// let object = Scheme::kubernetes().decode(yaml).next().unwrap()?;
/// assert_eq!(object.gvk().kind, "ConfigMap");
/// assert_eq!(object.key()?.to_string(), "shop/colours");
///
/// match object.downcast::<ConfigMap>() {
///     Ok(colours) => assert_eq!(colours.data.unwrap()["sky"], "blue"),
///     Err(other) => panic!("expected a ConfigMap, not {other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoded {
    /// In a box, so that an iterator of results passes pointers on.
    parts: Box<Parts>,
}

struct Parts {
    gvk: GroupVersionKind,
    body: Body,
    location: Option<Location>,
    warnings: Vec<Issue>,
}

pub(super) enum Body {
    Typed(Box<dyn Object>),
    Unstructured(Box<DynamicObject>),
}

impl Decoded {
    pub(super) fn new(
        gvk: GroupVersionKind,
        body: Body,
        location: Option<Location>,
        warnings: Vec<Issue>,
    ) -> Self {
        Self { parts: Box::new(Parts { gvk, body, location, warnings }) }
    }

    pub(super) fn into_parts(self) -> (Body, Option<Location>) {
        let Parts { body, location, .. } = *self.parts;
        (body, location)
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.parts.gvk
    }

    /// Name and namespace; an error for an object without a name, as one with `generateName` is.
    pub fn key(&self) -> Result<ObjectKey, KeyError> {
        let metadata = self.metadata();
        match metadata.name.as_deref() {
            Some(name) if !name.is_empty() => Ok(ObjectKey::new(metadata.namespace.as_deref(), name)),
            _ => Err(KeyError::Nameless { kind: self.parts.gvk.kind.clone() }),
        }
    }

    /// The metadata, whatever the type.
    pub fn metadata(&self) -> &ObjectMeta {
        match &self.parts.body {
            Body::Typed(object) => object.metadata(),
            Body::Unstructured(object) => &object.metadata,
        }
    }

    /// Where the object stood; `None` for one that was not decoded from a text.
    pub fn location(&self) -> Option<&Location> {
        self.parts.location.as_ref()
    }

    /// What a strict decoder would have refused.
    pub fn warnings(&self) -> &[Issue] {
        &self.parts.warnings
    }

    /// The object as its type, or the whole back if it has another type.
    pub fn downcast<K: 'static>(self) -> Result<K, Self> {
        let Parts { gvk, body, location, warnings } = *self.parts;
        let body = match body {
            Body::Typed(object) => match downcast(object) {
                Ok(object) => return Ok(object),
                Err(object) => Body::Typed(object),
            },
            body @ Body::Unstructured(_) => body,
        };
        Err(Self::new(gvk, body, location, warnings))
    }

    /// A view of the object as its type; `None` if it has another type or is unstructured.
    pub fn downcast_ref<K: 'static>(&self) -> Option<&K> {
        match &self.parts.body {
            Body::Typed(object) => (&**object as &dyn Any).downcast_ref(),
            Body::Unstructured(_) => None,
        }
    }

    /// The object if it was decoded without a type. [`Decoded::to_unstructured`] makes one of any object.
    pub fn as_unstructured(&self) -> Option<&DynamicObject> {
        match &self.parts.body {
            Body::Typed(_) => None,
            Body::Unstructured(object) => Some(object),
        }
    }

    /// The object without its type, ready for a dynamic client.
    pub fn to_unstructured(&self) -> Result<DynamicObject, serde_json::Error> {
        let mut fields = match &self.parts.body {
            Body::Unstructured(object) => return Ok((**object).clone()),
            Body::Typed(object) => object.to_json()?,
        };
        if let Value::Object(fields) = &mut fields {
            for field in ["apiVersion", "kind", "metadata"] {
                fields.remove(field);
            }
        }
        let types = TypeMeta { api_version: self.parts.gvk.api_version(), kind: self.parts.gvk.kind.clone() };
        Ok(DynamicObject { types: Some(types), metadata: self.metadata().clone(), data: fields })
    }

    /// `apps/v1 Deployment shop/web`
    pub(super) fn describe(&self) -> String {
        describe(&self.parts.gvk, self.metadata().namespace.as_deref(), self.metadata().name.as_deref())
    }
}

/// An unstructured object from elsewhere, so that it can be converted. Without `types` its kind is empty.
impl From<DynamicObject> for Decoded {
    fn from(object: DynamicObject) -> Self {
        let gvk = match &object.types {
            Some(types) => {
                let (group, version) =
                    types.api_version.split_once('/').unwrap_or(("", types.api_version.as_str()));
                GroupVersionKind::gvk(group, version, &types.kind)
            }
            None => GroupVersionKind::gvk("", "", ""),
        };
        Self::new(gvk, Body::Unstructured(Box::new(object)), None, Vec::new())
    }
}

/// Names the object; its contents stay out, since it may be a Secret.
impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoded({})", self.describe())
    }
}

impl Serialize for Decoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.parts.body {
            Body::Typed(object) => {
                let mut value = object.to_json().map_err(S::Error::custom)?;
                if let Value::Object(fields) = &mut value {
                    // Not every type writes its own kind.
                    fields.entry("apiVersion").or_insert_with(|| self.parts.gvk.api_version().into());
                    fields.entry("kind").or_insert_with(|| self.parts.gvk.kind.as_str().into());
                }
                value.serialize(serializer)
            }
            Body::Unstructured(object) => object.serialize(serializer),
        }
    }
}

/// What is known of an object, in one line.
pub(super) fn describe(gvk: &GroupVersionKind, namespace: Option<&str>, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{} {}", name_of(gvk), ObjectKey::new(namespace, name)),
        None => name_of(gvk),
    }
}
