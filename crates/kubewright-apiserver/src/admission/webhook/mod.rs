//! Admission webhooks, mutating and validating.
//!
//! Configurations are objects of the cluster, read on every write. Mutating webhooks are called one after another in the
//! order of their configurations' names, and once more if their reinvocation policy asks for it and the object has
//! changed since; validating ones all at once. They are called by a [`Transport`]: TLS by default ([`Https`]).
//!
//! ```
//! use std::sync::Arc;
//! use futures::future::BoxFuture;
//! use kubewright_apiserver::{ApiServer, admission::{Chain, webhook::{Target, Transport, Webhooks}}};
//! use serde_json::{Value, json};
//!
//! /// Answers for all webhooks, without a socket.
//! #[derive(Debug)]
//! struct SaysNo;
//!
//! impl Transport for SaysNo {
//!     fn post<'a>(&'a self, _: &'a Target, review: Vec<u8>) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>> {
//!         Box::pin(async move {
//!             let review: Value = serde_json::from_slice(&review).map_err(|error| error.to_string())?;
//!             let response = json!({"uid": review["request"]["uid"], "allowed": false});
//!             let answer = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
//!             Ok((200, answer.to_string().into_bytes()))
//!         })
//!     }
//! }
//!
//! let webhooks = Webhooks::default().transport(SaysNo);
//! let server = ApiServer::builder().admission(Chain::calling(webhooks)).in_process()?;
//! # Ok::<(), kubewright_apiserver::StartError>(())
//! ```

mod client;
mod hook;
mod https;
mod mutating;
mod review;
mod validating;

pub use self::{
    client::{ClusterServices, ServiceResolver, Target, Transport, Webhooks},
    https::Https,
};
pub(super) use self::{mutating::MutatingAdmissionWebhook, validating::ValidatingAdmissionWebhook};
