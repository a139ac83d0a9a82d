//! An embedded API server that Kubernetes clients cannot tell from the real one.
//!
//! The modules here are pure functions over JSON values and schemas: no sockets, no storage, no clock.
//!
//! ```text
//!  body ──decode──▶ value ──patch / apply──▶ value ──prune, default, validate──▶ value with managedFields
//!                     │            │                       │
//!                     └────────────┴──── schema ───────────┘
//! ```
//!
//! - [`schema`]: what a type looks like, built-in or from a CRD, and everything that needs only that.
//! - [`patch`]: JSON patch, merge patch and strategic merge patch.
//! - [`apply`]: server-side apply and the managedFields of every other write.
//! - [`crd`]: custom resource definitions and the objects of the types they define.
//! - [`cel`]: the expression language of `x-kubernetes-validations`.

pub mod apply;
pub mod patch;
pub mod schema;

pub mod cel;
pub mod crd;
