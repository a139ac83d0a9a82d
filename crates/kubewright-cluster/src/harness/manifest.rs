//! Manifests: text, a typed object, or several.

use kube::{Resource, core::DynamicObject};
use kubewright::scheme::Scheme;
use serde::Serialize;
use serde_json::Value;

use super::HarnessError;

/// Objects that a test can [apply](crate::Cluster::apply): YAML or JSON text, an object of a Rust type or a
/// `DynamicObject` (by value or by reference), or an iterator of objects.
///
/// `Form` keeps the implementations apart; it is inferred.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kubewright_cluster::Cluster;
///
/// # async fn apply(cluster: Cluster, config: ConfigMap, secrets: Vec<Secret>) -> Result<(), Box<dyn std::error::Error>> {
/// cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;
/// cluster.apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {}}}}}", "b")).await?;
/// cluster.apply(&config).await?;
/// cluster.apply(&secrets).await?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be applied to a cluster",
    label = "neither YAML, nor an object, nor several objects",
    note = "text, `&K`, `K` and iterators of those can be applied, where `K` is a Kubernetes object"
)]
pub trait Manifest<Form> {
    /// The objects of the manifest.
    fn objects(self) -> Result<Vec<DynamicObject>, HarnessError>;
}

/// Forms of a manifest.
pub mod form {
    /// YAML or JSON.
    #[derive(Debug)]
    pub enum Text {}
    /// One object.
    /// One object.
    #[derive(Debug)]
    pub enum Object {}
    /// One borrowed object.
    #[derive(Debug)]
    pub enum Borrowed {}
    /// Several objects, each of form `F`.
    #[derive(Debug)]
    pub struct Several<F>(std::convert::Infallible, std::marker::PhantomData<F>);
}

impl<T: AsRef<str>> Manifest<form::Text> for T {
    fn objects(self) -> Result<Vec<DynamicObject>, HarnessError> {
        let scheme = Scheme::kubernetes();
        scheme
            .decoder()
            .unstructured()
            .decode(self.as_ref())
            .map(|object| Ok(object?.to_unstructured()?))
            .collect()
    }
}

impl<K: Resource + Serialize> Manifest<form::Borrowed> for &K {
    fn objects(self) -> Result<Vec<DynamicObject>, HarnessError> {
        Ok(vec![unstructured(self)?])
    }
}

impl<K: Resource + Serialize> Manifest<form::Object> for K {
    fn objects(self) -> Result<Vec<DynamicObject>, HarnessError> {
        Ok(vec![unstructured(&self)?])
    }
}

impl<F, I> Manifest<form::Several<F>> for I
where
    I: IntoIterator,
    I::Item: Manifest<F>,
{
    fn objects(self) -> Result<Vec<DynamicObject>, HarnessError> {
        let mut objects = Vec::new();
        for item in self {
            objects.extend(item.objects()?);
        }
        Ok(objects)
    }
}

fn unstructured<K: Resource + Serialize>(object: &K) -> Result<DynamicObject, HarnessError> {
    let mut value = serde_json::to_value(object)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        // Server-side apply rejects objects with managed fields, which read objects have.
        metadata.remove("managedFields");
    }
    let object: DynamicObject = serde_json::from_value(value)?;
    if object.types.is_none() {
        return Err(HarnessError::Untyped { name: object.metadata.name.unwrap_or_default() });
    }
    Ok(object)
}
