//! A typed object behind one face, so that objects of many types can travel in one list.

use std::any::{Any, TypeId, type_name};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, core::GroupVersionKind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    convert::TypeName,
    de::{NodeError, from_node},
    error::Issue,
    node::Node,
};

/// What every object can do whatever its type. The way back to the type is `dyn Any`.
pub(super) trait Object: Any + Send + Sync {
    fn metadata(&self) -> &ObjectMeta;
    fn to_json(&self) -> Result<Value, serde_json::Error>;
}

impl<K: Resource<DynamicType = ()> + Serialize + Send + Sync + 'static> Object for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn to_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

/// The object as its type, or as it was if it has another.
pub(super) fn downcast<K: 'static>(object: Box<dyn Object>) -> Result<K, Box<dyn Object>> {
    if (&*object as &dyn Any).is::<K>() {
        let object: Box<dyn Any> = object;
        Ok(*object.downcast().expect("the type was asked for"))
    } else {
        Err(object)
    }
}

/// A value of any type, on its way through conversion functions.
pub(super) type AnyBox = Box<dyn Any + Send + Sync>;

/// A kind and the Rust type that stands for it.
pub(super) struct Registered {
    pub(super) gvk: GroupVersionKind,
    pub(super) id: TypeId,
    pub(super) name: &'static str,
    pub(super) decode: DecodeFn,
    adopt: fn(AnyBox) -> Option<Box<dyn Object>>,
    pub(super) defaults: Vec<DefaultFn>,
}

/// Makes an object, and tells which fields of the node it has no place for.
type DecodeFn = fn(Node) -> Result<(Box<dyn Object>, Vec<Issue>), NodeError>;

/// A defaulting function behind its type.
pub(super) type DefaultFn = Box<dyn Fn(&mut dyn Any) + Send + Sync>;

impl Registered {
    pub(super) fn of<K>() -> Self
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        Self {
            gvk: gvk_of::<K>(),
            id: TypeId::of::<K>(),
            name: type_name::<K>(),
            decode: |node| {
                let (object, unknown) = from_node::<K>(node)?;
                Ok((Box::new(object), unknown))
            },
            adopt: |object| object.downcast::<K>().ok().map(|object| object as Box<dyn Object>),
            defaults: Vec::new(),
        }
    }

    pub(super) fn type_name(&self) -> TypeName {
        TypeName { id: self.id, name: self.name }
    }

    /// Takes an object that a conversion to this type has made.
    pub(super) fn adopt(&self, object: AnyBox) -> Box<dyn Object> {
        (self.adopt)(object).expect("a conversion makes the type that it is filed under")
    }

    pub(super) fn apply_defaults(&self, object: &mut dyn Any) {
        for default in &self.defaults {
            default(object);
        }
    }
}

/// The kind of a type.
pub(super) fn gvk_of<K: Resource<DynamicType = ()>>() -> GroupVersionKind {
    GroupVersionKind {
        group: K::group(&()).into(),
        version: K::version(&()).into(),
        kind: K::kind(&()).into(),
    }
}

/// `apps/v1 Deployment`
pub(super) fn name_of(gvk: &GroupVersionKind) -> String {
    format!("{} {}", gvk.api_version(), gvk.kind)
}
