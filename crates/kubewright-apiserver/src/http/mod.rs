//! The server as a `tower::Service`: in process under a `kube::Client`, or behind TLS.
//!
//! A request goes through routing, authentication, impersonation and authorisation, then to discovery or to the
//! registry; the answer is brought into the form that the client accepts.

mod body;
pub mod decode;
mod dispatch;
mod impersonate;
pub mod negotiate;
mod respond;
pub mod route;
mod service;
pub mod tls;

pub use self::{body::ApiBody, service::ApiService};
