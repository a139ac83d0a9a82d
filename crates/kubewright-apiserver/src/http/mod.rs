//! The server as a [`tower::Service`]: in process under a `kube::Client`, or behind TLS.
//!
//! A request passes the layers in `layers`, in kube-apiserver's order; `service` puts them together. Behind them the
//! `handler` serves discovery and documents itself and leaves resources to the [registry](crate::registry).
//! `negotiate`, `decode` and `respond` are about the forms of bodies.

mod body;
pub(crate) mod decode;
mod handler;
mod layers;
pub(crate) mod negotiate;
mod request_info;
mod respond;
mod service;
pub(crate) mod tls;

pub(crate) use self::request_info::RequestInfo;
pub use self::{body::ApiBody, service::ApiService};
