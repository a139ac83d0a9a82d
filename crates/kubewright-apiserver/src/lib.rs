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

pub mod admission;
pub mod authn;
pub mod authz;
mod boot;
pub mod clock;
pub mod discovery;
pub mod http;
pub mod random;
pub mod registry;
mod server;
pub mod status;
pub mod storage;
pub mod table;
pub mod watch;

pub use server::{ApiServer, Builder, RunningServer, StartError};
