//! An embedded Kubernetes-compatible API server.
//!
//! It answers kubectl, kube-rs and client-go as a stock kube-apiserver does, starts in milliseconds, and runs either
//! in the process of a test, without sockets, or on TLS for everybody else.
//!
//! Read the modules in the order in which a request flows:
//!
//! ```text
//!  request ─▶ http ─▶ authn ─▶ authz ─▶ registry (admission, strategies, semantics) ─▶ storage
//!                                          │                                             │
//!  answer  ◀─ http ◀─ table ◀──────────────┘                         watch ◀── history ◀─┘
//! ```
//!
//! What fields mean is decided by pure functions over JSON values and schemas, without sockets, storage or clock; the
//! registry reaches them through [`registry::semantics`]:
//!
//! ```text
//!  body ──decode──▶ value ──patch / apply──▶ value ──prune, default, validate──▶ value with managedFields
//!                     │            │                       │
//!                     └────────────┴──── schema ───────────┘
//! ```
//!
//! - [`schema`]: what a type looks like, built-in or from a CRD, and everything that needs only that.
//! - [`protobuf`]: the other form of built-in objects on the wire.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch.
//! - [`apply`]: server-side apply and the `managedFields` of every other write.
//! - [`crd`]: custom resource definitions and the objects of the types they define.
//! - [`cel`]: the expression language of `x-kubernetes-validations`.

pub mod admission;
pub mod authn;
pub mod authz;
mod boot;
pub mod clock;
pub mod crd;
pub mod discovery;
pub mod http;
mod identity;
pub mod openapi;
pub mod random;
pub mod registry;
mod server;
pub mod status;
pub mod table;
pub mod watch;

use kubewright_cel as cel;
use kubewright_schema::{self as schema, apply, patch, protobuf};
use kubewright_storage as storage;

pub use identity::IdentityError;
pub use server::{ApiServer, Builder, RunningServer, StartError};

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
