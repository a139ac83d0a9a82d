//! A decoded object.

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
    /// Boxed, so that results are small.
    inner: Box<Inner>,
}

struct Inner {
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
        Self { inner: Box::new(Inner { gvk, body, location, warnings }) }
    }

    pub(super) fn into_parts(self) -> (Body, Option<Location>) {
        let Inner { body, location, .. } = *self.inner;
        (body, location)
    }

    /// Returns group, version and kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.inner.gvk
    }

    /// Returns name and namespace; an error for an object without a name, such as one with `generateName`.
    pub fn key(&self) -> Result<ObjectKey, KeyError> {
        let metadata = self.metadata();
        match metadata.name.as_deref() {
            Some(name) if !name.is_empty() => Ok(ObjectKey::new(metadata.namespace.as_deref(), name)),
            _ => Err(KeyError::Nameless { kind: self.inner.gvk.kind.clone() }),
        }
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match &self.inner.body {
            Body::Typed(object) => object.metadata(),
            Body::Unstructured(object) => &object.metadata,
        }
    }

    /// Returns the position in the input; `None` for an object that was not decoded from a text.
    pub fn location(&self) -> Option<&Location> {
        self.inner.location.as_ref()
    }

    /// Returns the issues that a strict decoder would reject.
    pub fn warnings(&self) -> &[Issue] {
        &self.inner.warnings
    }

    /// Returns the object as its type, or `self` if it has another type.
    pub fn downcast<K: 'static>(self) -> Result<K, Self> {
        let Inner { gvk, body, location, warnings } = *self.inner;
        let body = match body {
            Body::Typed(object) => match downcast(object) {
                Ok(object) => return Ok(object),
                Err(object) => Body::Typed(object),
            },
            body @ Body::Unstructured(_) => body,
        };
        Err(Self::new(gvk, body, location, warnings))
    }

    /// Borrows the object as its type; `None` if it has another type or is unstructured.
    pub fn downcast_ref<K: 'static>(&self) -> Option<&K> {
        match &self.inner.body {
            Body::Typed(object) => (&**object as &dyn Any).downcast_ref(),
            Body::Unstructured(_) => None,
        }
    }

    /// Returns the object if it was decoded as unstructured. [`Decoded::to_unstructured`] converts any
    /// object.
    pub fn as_unstructured(&self) -> Option<&DynamicObject> {
        match &self.inner.body {
            Body::Typed(_) => None,
            Body::Unstructured(object) => Some(object),
        }
    }

    /// Converts to an unstructured object, for a dynamic client.
    pub fn to_unstructured(&self) -> Result<DynamicObject, serde_json::Error> {
        let mut fields = match &self.inner.body {
            Body::Unstructured(object) => return Ok((**object).clone()),
            Body::Typed(object) => object.to_json()?,
        };
        if let Value::Object(fields) = &mut fields {
            for field in ["apiVersion", "kind", "metadata"] {
                fields.remove(field);
            }
        }
        let types = TypeMeta { api_version: self.inner.gvk.api_version(), kind: self.inner.gvk.kind.clone() };
        Ok(DynamicObject { types: Some(types), metadata: self.metadata().clone(), data: fields })
    }

    /// Formats kind and key: `apps/v1 Deployment shop/web`.
    pub(super) fn describe(&self) -> String {
        describe(&self.inner.gvk, self.metadata().namespace.as_deref(), self.metadata().name.as_deref())
    }
}

/// Wraps an unstructured object, so that it can be converted. Without `types` its kind is empty.
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

/// Formats kind and key only, since it may be a Secret.
impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoded({})", self.describe())
    }
}

impl Serialize for Decoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.inner.body {
            Body::Typed(object) => {
                let mut value = object.to_json().map_err(S::Error::custom)?;
                if let Value::Object(fields) = &mut value {
                    // Not every type serialises its own kind.
                    fields.entry("apiVersion").or_insert_with(|| self.inner.gvk.api_version().into());
                    fields.entry("kind").or_insert_with(|| self.inner.gvk.kind.as_str().into());
                }
                value.serialize(serializer)
            }
            Body::Unstructured(object) => object.serialize(serializer),
        }
    }
}

/// Formats kind and key, as far as known.
pub(super) fn describe(gvk: &GroupVersionKind, namespace: Option<&str>, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{} {}", name_of(gvk), ObjectKey::new(namespace, name)),
        None => name_of(gvk),
    }
}
