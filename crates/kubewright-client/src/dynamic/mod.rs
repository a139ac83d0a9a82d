//! The dynamic client: any resource of the cluster as an unstructured object.
//!
//! Use it where the kind is known only at run time: tools over all resources, garbage collectors, owners of
//! anything. Where the type is known, [`Api<K>`](kube::Api) is safer. Objects are [`DynamicObject`]s;
//! [`NestedFields`] reads and writes their insides.
//!
//! A resource is named by its [`GroupVersionResource`] ([`DynamicClient::resource`], no discovery needed), by
//! kind ([`DynamicClient::kind`]), by what one types after `kubectl get` ([`DynamicClient::find`]) or by an
//! object itself ([`DynamicClient::object`]); the last three ask the [`RestMapper`].
//!
//! # Pitfalls
//! - A [`ResourceClient`] made by `resource` does not know its scope: a namespaced object asked for without a
//!   namespace is a 404 of the server. Made through the mapper, it knows, refuses such a request with a word
//!   of help, and ignores the namespace for cluster-scoped resources as kubectl does.
//! - Items of a list come without `apiVersion` and `kind` for built-in types; they are filled in here, as
//!   client-go does.

mod fields;
mod resource;
mod subresource;
#[cfg(test)]
mod tests;

use kube::{
    Client,
    core::{ApiResource, DynamicObject, GroupVersionKind, GroupVersionResource, gvk::ParseGroupVersionError},
};

pub use self::{
    fields::{FieldError, NestedFields},
    resource::{Deletion, ResourceClient},
    subresource::SubresourceClient,
};
use crate::rest_mapper::{MapperError, RestMapper};

/// Reads and writes any resource.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::kube::client::Body;
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     assert_eq!(request.uri().path(), "/apis/apps/v1/namespaces/shop/deployments");
/// #     let list = br#"{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"7"},
/// #         "items":[{"metadata":{"name":"cart"},"spec":{"replicas":2}}]}"#.to_vec();
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(list)))
/// # });
/// # let clients = kubewright::client::Clients::new(kubewright::kube::Client::new(server, "default"));
/// use kubewright::client::NestedFields;
/// use kubewright::kube::{ResourceExt, api::ListParams, core::GroupVersionResource};
///
/// let deployments = GroupVersionResource::gvr("apps", "v1", "deployments");
/// let list = clients.dynamic().resource(&deployments).namespace("shop").list(&ListParams::default()).await?;
/// for deployment in &list {
///     assert_eq!(deployment.name_any(), "cart");
///     assert_eq!(deployment.nested_i64(&["spec", "replicas"])?, Some(2));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DynamicClient {
    mapper: RestMapper,
    client: ClientHandle,
}

/// [`Client`] with a `Debug` that says nothing, so that types holding it can derive theirs.
#[derive(Clone)]
struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl DynamicClient {
    /// A client on this connection that resolves kinds with this mapper.
    pub fn new(client: Client, mapper: RestMapper) -> Self {
        Self { mapper, client: ClientHandle(client) }
    }

    /// The resource with this group, version and plural. Asks nobody.
    pub fn resource(&self, resource: &GroupVersionResource) -> ResourceClient {
        let GroupVersionResource { group, version, resource, .. } = resource;
        let gvk = GroupVersionKind::gvk(group, version, "");
        self.open(ApiResource::from_gvk_with_plural(&gvk, resource), None)
    }

    /// The resource that serves this kind. With an empty version, the one that the server prefers.
    pub async fn kind(&self, kind: &GroupVersionKind) -> Result<ResourceClient, MapperError> {
        let found = self.mapper.kind(kind).await?;
        Ok(self.open(found.api_resource(), Some(found.scope.clone())))
    }

    /// The resource that kubectl would take this word for: `deploy`, `deployments.apps`, `Deployment`.
    pub async fn find(&self, word: &str) -> Result<ResourceClient, MapperError> {
        let found = self.mapper.find(word).await?;
        Ok(self.open(found.api_resource(), Some(found.scope.clone())))
    }

    /// The resource, and the namespace if it has one, that this object belongs to.
    pub async fn object(&self, object: &DynamicObject) -> Result<ResourceClient, MapperError> {
        let types = object.types.as_ref().ok_or(MapperError::Untyped)?;
        let kind = GroupVersionKind::try_from(types).map_err(|ParseGroupVersionError(text)| {
            MapperError::NoMatch { wanted: text, known: Vec::new() }
        })?;
        let resource = self.kind(&kind).await?;
        Ok(match &object.metadata.namespace {
            Some(namespace) => resource.namespace(namespace),
            None => resource,
        })
    }

    fn open(&self, resource: ApiResource, scope: Option<kube::discovery::Scope>) -> ResourceClient {
        ResourceClient::new(self.client.0.clone(), resource, scope)
    }
}
