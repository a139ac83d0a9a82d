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
//! Data flows in one direction; only writes to the API server lead back.

mod backoff;
pub mod cache;
pub mod client;
mod clock;
pub mod controller;
mod error;
pub mod events;
mod key;
pub mod manager;
mod object;
pub mod prelude;
pub mod queue;
mod random;
pub mod scheme;
mod series;
#[cfg(feature = "logs")]
pub mod telemetry;

pub use backoff::Backoff;
pub use clock::Clock;
pub use error::{Error, Help, Result};
pub use k8s_openapi;
pub use key::{KeyError, ObjectKey};
pub use kube;
#[cfg(feature = "test")]
pub use kubewright_macros::test;
pub use object::Object;
pub use random::Random;
