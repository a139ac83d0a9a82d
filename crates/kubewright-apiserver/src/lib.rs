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
pub mod apply;
pub mod authn;
pub mod authz;
mod boot;
mod builder;
pub mod cel;
pub mod clock;
mod components;
pub mod crd;
mod discovery;
pub mod http;
mod identity;
pub mod openapi;
pub mod patch;
pub mod protobuf;
mod random;
pub mod registry;
pub mod schema;
mod server;
pub mod status;
pub mod storage;
pub mod table;
mod watch;

pub use builder::{ApiServerBuilder, StartError};
pub use identity::IdentityError;
pub use server::{ApiServer, RunningServer};
