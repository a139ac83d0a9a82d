//! Framework to write, test and run Kubernetes operators.
//!
//! Read the modules in the order in which data flows:
//!
//! ```text
//!  API server ──list/watch──▶ Reflector ──deltas──▶ DeltaFifo ──pop──▶ Indexer (the cache)
//!      ▲                                                                   │ notify
//!      │ writes                                                            ▼
//!   Reconciler ◀──key── Worker ◀── WorkQueue ◀──key── EventHandler ◀─ Predicate ◀─ SharedInformer
//! ```
//!
//! Data flows in one direction; only writes to the API server lead back. Each part is a crate of its own, so
//! that cargo refuses a dependency against the direction; this crate re-exports them under the paths that
//! operators use.

pub mod client;
pub mod prelude;

pub use k8s_openapi;
pub use kube;
pub use kubewright_cache as cache;
pub use kubewright_client::scheme;
pub use kubewright_core::{Backoff, Clock, KeyError, Object, ObjectKey, Random};
#[cfg(feature = "test")]
pub use kubewright_macros::test;
pub use kubewright_queue as queue;
#[cfg(feature = "logs")]
pub use kubewright_runtime::telemetry;
pub use kubewright_runtime::{Error, Help, Result, controller, events, manager};
