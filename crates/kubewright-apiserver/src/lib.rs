//! An embedded Kubernetes-compatible API server.
//!
//! It answers kubectl, kube-rs and client-go as a stock kube-apiserver does, starts in milliseconds, and runs in the
//! process of a test, without sockets, or on TLS. [`ApiServer::builder`] starts one.
//!
//! # Layers
//!
//! A request passes these layers, in kube-apiserver's order. Each is a file of its own in `http/layers`; the list in
//! `http/service.rs` puts them together.
//!
//! ```text
//!  request
//!     │  http/tls.rs               TLS, client certificate (or an in-process client)
//!     ▼
//!  panic                           a panic becomes a 500
//!  request info                    method, path and query → RequestInfo
//!  authentication                  authn::Authenticator → User, or 401
//!     (audit)
//!  impersonation                   Impersonate-* headers → another User, or 403
//!     (priority and fairness)
//!  authorization                   authz: RequestInfo and User → 403
//!  body                            read up to the limit, or 413
//!     │
//!     ▼
//!  handler   (http/handler)        discovery and documents, or type, scope and content negotiation
//!     │      (aggregator)
//!     ▼
//!  verb      (registry/verbs)      decode, default, admission::Chain (mutating), validate,
//!     │                            admission::Chain (validating)
//!     ▼
//!  storage   (kubewright-storage)  one revision per write
//!     │
//!     ▼
//!  watch                           the history of writes, to every watching client
//! ```
//!
//! In brackets: places for layers that do not exist yet. `RequestInfo` and [`authn::User`] travel in the request's
//! extensions.
//!
//! A component knows those below it only. [`registry::Registry`] is the served types, the storage and the verbs; it knows
//! nothing of HTTP, users' rights or plugins. Authenticators, authorizers and admission plugins read the cluster through
//! [`registry::ObjectReader`]; a write takes the admission along that it has to pass.
//!
//! # Extension points
//!
//! - [`authn::RequestAuthenticator`]: users by other credentials than certificates and tokens.
//! - [`authz::Authorize`]: decisions before those of the modes.
//! - [`admission::Plugin`] and [`admission::RemotePlugin`]: rules for writes.
//! - `kubewright_core::Clock`: the time of all timestamps.
//!
//! # Schemas
//!
//! Decoding, patches, defaulting, validation and field ownership are pure functions over JSON values and schemas, in the
//! crate `kubewright-schema`; [`crd`] has those of custom resource definitions, and the crate `kubewright-cel` the
//! expressions of `x-kubernetes-validations` and admission policies.

pub mod admission;
pub mod authn;
pub mod authz;
mod boot;
mod builder;
mod clock;
mod components;
pub mod crd;
mod discovery;
pub mod http;
mod identity;
mod openapi;
pub mod registry;
mod server;
pub mod status;
mod table;
mod watch;

use kubewright_cel as cel;
use kubewright_schema::{self as schema, apply, patch, protobuf};
use kubewright_storage as storage;

pub use builder::{ApiServerBuilder, StartError};
pub use identity::IdentityError;
pub use server::{ApiServer, RunningServer};

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
