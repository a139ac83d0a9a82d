//! The typed client: [`Api<K>`] of kube, on our transport.
//!
//! `Api<K>` is what client-go's generated clientset is, for every `K` that implements [`Resource`]: the
//! built-in types of [`k8s_openapi`] and your own. It is re-exported and not wrapped, so code and examples
//! written for kube work here, and [`Clients::typed`](crate::Clients::typed) only saves the words.
//! Errors are [`kube::Error`]; ask them with [`Refusal`](crate::Refusal).
//!
//! Custom resources come from the `CustomResource` derive (feature `derive` of this crate, and `schemars` in
//! yours):
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use http::{Request, Response};
//! # use kubewright::kube::client::Body;
//! # let server = tower::service_fn(|request: Request<Body>| async move {
//! #     let body = match request.uri().path() {
//! #         "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/shop/foos/cart" => r#"{"apiVersion":"samplecontroller.k8s.io/v1alpha1",
//! #             "kind":"Foo","metadata":{"name":"cart"},"spec":{"deploymentName":"cart","replicas":2}}"#,
//! #         "/api/v1/nodes" => r#"{"apiVersion":"v1","kind":"NodeList","metadata":{},"items":[{"metadata":{"name":"n1"}}]}"#,
//! #         other => panic!("{other}"),
//! #     };
//! #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
//! # });
//! # let clients = kubewright::client::Clients::new(kubewright::kube::Client::new(server, "default"));
//! use k8s_openapi::api::core::v1::Node;
//! use kubewright::kube::{CustomResource, ResourceExt, api::ListParams};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
//! #[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced)]
//! #[serde(rename_all = "camelCase")]
//! struct FooSpec {
//!     deployment_name: String,
//!     replicas: Option<i32>,
//! }
//!
//! // A built-in type, in the whole cluster.
//! for node in clients.typed::<Node>().list(&ListParams::default()).await? {
//!     assert_eq!(node.name_any(), "n1");
//! }
//! // A type of our own, in one namespace.
//! let foo = clients.typed_in::<Foo>("shop").get("cart").await?;
//! assert_eq!(foo.spec.replicas, Some(2));
//! # Ok(())
//! # }
//! ```
//!
//! # Pitfalls
//! - When an answer does not fit `K`, kube writes the whole body into its log at `WARN` (target
//!   `kube_client::client`), and the body of a refusal that is no `Status` at `DEBUG`. Where Secrets are
//!   read, filter with `kube_client::client=error`, or read them through
//!   [`RestClient`](crate::RestClient) or [`DynamicClient`](crate::DynamicClient), whose
//!   decoding never shows what it read.
//! - [`kube::Error`]'s text for such an answer may quote a value for the same reason. Do not log errors about
//!   Secrets as they are.
//! - `Status::is_not_found` and its sisters on kube's type miss refusals without a reason;
//!   [`Refusal::is_not_found`](crate::Refusal::is_not_found) does not.

pub use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, GetParams, ListParams, ObjectList, Patch, PatchParams, PostParams, WatchParams},
};
