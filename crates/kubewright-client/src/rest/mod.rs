//! The REST client: any path, any verb, as close to HTTP as one wants to be and no closer.
//!
//! This is client-go's `RESTClient`: a request is put together word by word and sent, and the answer is had
//! as bytes, as a Rust type or as a stream of body frames. Refusals become [`ApiError::Status`] with the
//! server's [`Status`](kube::core::Status) inside.
//!
//! Use it for what the other clients do not cover: subresources of somebody else's API server, `/healthz`,
//! `/metrics`, `/openapi/v3`, raw bytes for a decoder of your own. For objects, [`Api<K>`](kube::Api) and
//! [`DynamicClient`](crate::DynamicClient) are shorter.
//!
//! # Pitfalls
//! - Nothing is retried. A 429 comes back as an error with
//!   [`retry_after`](crate::Refusal::retry_after).
//! - Names and namespaces are checked to be one path segment, so a name from user input cannot reach another
//!   resource; [`RestRequest::path`] takes what it is given.
//! - [`RestRequest::stream`] must be read to the end or dropped: a connection with an unread answer serves
//!   nobody else.

mod request;
mod response;
#[cfg(test)]
mod tests;
mod watch;

use http::Method;
use kube::Client;

pub(crate) use self::response::send;
pub use self::{
    request::{PatchType, RestRequest},
    response::BodyStream,
    watch::WatchStream,
};
/// Used by the cached client and the event writer of `kubewright-runtime`, which send requests of their own.
#[doc(hidden)]
pub use self::{
    request::{check_segment, encode_segment},
    response::{check, decode, read_all},
};
use crate::error::ApiError;

/// Sends requests to any path of the API server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::kube::client::Body;
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     assert_eq!(request.uri(), "/api/v1/namespaces/shop/pods/cart/status?pretty=true");
/// #     let pod = br#"{"metadata":{"name":"cart"},"status":{"phase":"Running"}}"#.to_vec();
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(pod)))
/// # });
/// # let client = kubewright::kube::Client::new(server, "default");
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright::client::RestClient;
///
/// let core = RestClient::new(client).group_version("v1");
/// let pod: Pod = core
///     .get()
///     .namespace("shop")
///     .resource("pods")
///     .name("cart")
///     .subresource("status")
///     .query("pretty", "true")
///     .json()
///     .await?;
/// assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RestClient {
    client: Client,
    prefix: String,
}

impl RestClient {
    /// A client whose requests begin at the root.
    pub fn new(client: Client) -> Self {
        Self { client, prefix: String::new() }
    }

    /// A client whose requests begin at a group version: `v1`, `apps/v1`. What client-go's
    /// `clientset.AppsV1().RESTClient()` is.
    #[must_use]
    pub fn group_version(&self, api_version: &str) -> Self {
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        Self { client: self.client.clone(), prefix: format!("{root}/{api_version}") }
    }

    /// Begins a GET.
    pub fn get(&self) -> RestRequest {
        self.verb(Method::GET)
    }

    /// Begins a POST.
    pub fn post(&self) -> RestRequest {
        self.verb(Method::POST)
    }

    /// Begins a PUT.
    pub fn put(&self) -> RestRequest {
        self.verb(Method::PUT)
    }

    /// Begins a PATCH of the given sort.
    pub fn patch(&self, patch: PatchType) -> RestRequest {
        self.verb(Method::PATCH).content_type(patch.content_type())
    }

    /// Begins a DELETE.
    pub fn delete(&self) -> RestRequest {
        self.verb(Method::DELETE)
    }

    /// Begins a request with any verb.
    pub fn verb(&self, method: Method) -> RestRequest {
        RestRequest::new(self.client.clone(), method, self.prefix.clone())
    }

    /// The client underneath.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl std::fmt::Debug for RestClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestClient").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// The first thing that went wrong while a request was put together; told when it is sent.
pub(crate) fn not_sent(method: &Method, path: &str, reason: impl Into<String>) -> ApiError {
    ApiError::Request { operation: format!("{method} {path}"), reason: reason.into() }
}
