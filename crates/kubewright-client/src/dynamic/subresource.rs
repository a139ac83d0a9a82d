//! A part of an object that is read and written by itself.

use http::Method;
use kube::{
    api::{Patch, PatchParams, PostParams},
    core::DynamicObject,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ResourceClient, resource::Target};
use crate::error::ApiError;

/// Operations on a subresource. Made by [`ResourceClient::subresource`].
///
/// What is read and written is the object itself for `status`, and an object of its own kind for others:
/// `Scale` for `scale`. Take it as [`DynamicObject`] or as a type of yours.
///
/// ```no_run
/// # async fn example(deployments: kubewright::client::ResourceClient) -> Result<(), kubewright::client::ApiError> {
/// use k8s_openapi::api::autoscaling::v1::Scale;
/// use kubewright::kube::api::{Patch, PatchParams};
///
/// let scale: Scale = deployments.scale().get("web").await?;
/// let twice = scale.spec.and_then(|spec| spec.replicas).unwrap_or(1) * 2;
/// let patch = Patch::Merge(serde_json::json!({ "spec": { "replicas": twice } }));
/// let _: Scale = deployments.scale().patch("web", &PatchParams::default(), &patch).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SubresourceClient {
    resource: ResourceClient,
    name: String,
}

impl SubresourceClient {
    pub(super) fn new(resource: ResourceClient, name: String) -> Self {
        Self { resource, name }
    }

    /// Reads it.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ApiError> {
        self.resource
            .request(Method::GET, self.target(name), |builder, name| {
                builder.get_subresource(&self.name, name)
            })
            .await
    }

    /// Creates it: `eviction`, `binding`, `token`.
    pub async fn create<I: Serialize, T: DeserializeOwned>(
        &self,
        name: &str,
        params: &PostParams,
        body: &I,
    ) -> Result<T, ApiError> {
        let body = self.resource.encode(&Method::POST, body)?;
        self.resource
            .request(Method::POST, self.target(name), |builder, name| {
                builder.create_subresource(&self.name, name, params, body)
            })
            .await
    }

    /// Replaces it.
    pub async fn update<I: Serialize, T: DeserializeOwned>(
        &self,
        name: &str,
        params: &PostParams,
        body: &I,
    ) -> Result<T, ApiError> {
        let body = self.resource.encode(&Method::PUT, body)?;
        self.resource
            .request(Method::PUT, self.target(name), |builder, name| {
                builder.replace_subresource(&self.name, name, params, body)
            })
            .await
    }

    /// Changes parts of it.
    pub async fn patch<P: Serialize, T: DeserializeOwned>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<T, ApiError> {
        self.resource
            .request(Method::PATCH, self.target(name), |builder, name| {
                builder.patch_subresource(&self.name, name, params, patch)
            })
            .await
    }

    /// Applies the subresource's part of an object on the server.
    pub async fn apply(
        &self,
        params: &PatchParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, ApiError> {
        let name = self.resource.name_of(&Method::PATCH, object)?;
        let object = self.resource.applied(object, params)?;
        self.patch(name, params, &Patch::Apply(&object)).await
    }

    fn target<'a>(&'a self, name: &'a str) -> Target<'a> {
        Target::Object { name, subresource: Some(&self.name) }
    }
}
