//! All versions of a CRD: conversion to and from storage, and for field managers.

use serde_json::Value;

use super::{CustomResource, ResourceError};
use crate::{
    apply::{ApplyError, Converter},
    crd::{definition::storage_version, props::set},
    schema::TypeRef,
};

/// Versions of one CRD, compiled together (conversion strategy None).
///
/// ```
/// use kubewright_apiserver::crd::resource::Versions;
/// use serde_json::json;
///
/// let schema = |field: &str| json!({"openAPIV3Schema": {"type": "object", "properties": {field: {"type": "string"}}}});
/// let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Demo"}, "versions": [
///     {"name": "v1", "served": true, "storage": false, "schema": schema("one")},
///     {"name": "v2", "served": true, "storage": true, "schema": schema("two")}]}});
/// let versions = Versions::new(&crd)?;
/// let stored = versions.to_storage(json!({"apiVersion": "example.com/v1", "kind": "Demo", "one": "x"}));
/// assert_eq!(stored, json!({"apiVersion": "example.com/v2", "kind": "Demo"}));
/// assert_eq!(versions.read(stored, "v1").unwrap()["apiVersion"], "example.com/v1");
/// # Ok::<(), kubewright_apiserver::crd::resource::ResourceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Versions {
    versions: Vec<CustomResource>,
    storage: Option<usize>,
}

impl Versions {
    /// Compiles every version of a CRD.
    pub fn new(crd: &Value) -> Result<Self, ResourceError> {
        let names = crd["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|version| version["name"].as_str());
        let versions: Vec<_> = names.map(|name| CustomResource::new(crd, name)).collect::<Result<_, _>>()?;
        let storage = storage_version(&crd["spec"]);
        let storage = versions.iter().position(|version| Some(&*version.gvk().version) == storage);
        Ok(Self { versions, storage })
    }

    /// Returns a version by name.
    pub fn get(&self, version: &str) -> Option<&CustomResource> {
        self.versions.iter().find(|known| known.gvk().version == version)
    }

    /// Returns all versions, in the order of the CRD.
    pub fn all(&self) -> &[CustomResource] {
        &self.versions
    }

    /// Returns the storage version.
    pub fn storage(&self) -> Option<&CustomResource> {
        self.versions.get(self.storage?)
    }

    /// Converts an object of any version to the storage version.
    pub fn to_storage(&self, mut object: Value) -> Value {
        if let Some(storage) = self.storage() {
            storage.convert(&mut object);
        }
        object
    }

    /// Converts a stored object to a version: pruned and defaulted by the schema of its stored version, then
    /// converted. `None` if there is no such version.
    pub fn read(&self, mut object: Value, version: &str) -> Option<Value> {
        let wanted = self.get(version)?;
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        if let Some(stored) = self.versions.iter().find(|known| known.gvk().api_version() == api_version) {
            stored.prune(&mut object);
            stored.apply_defaults(&mut object);
        }
        wanted.convert(&mut object);
        Some(object)
    }
}

impl Converter for Versions {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<(Value, TypeRef)>, ApplyError> {
        let Some(version) = self.versions.iter().find(|known| known.gvk().api_version() == api_version)
        else {
            return Ok(None);
        };
        // Nothing is pruned here: ownership of fields that another version lacks cannot be computed, as
        // upstream.
        let mut object = object.clone();
        set(&mut object, &["apiVersion"], api_version);
        Ok(Some((object, version.schema().clone())))
    }
}
