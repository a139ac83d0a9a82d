//! Clients of a Kubernetes API server: typed, dynamic, raw, discovery, and the cached client of controllers.
//!
//! The first four are those of [`kubewright_client`], over one transport, and read from the server each time.
//! [`cached`] is the one that controllers use: it reads from caches and is never older than its own writes.

pub use kubewright_client::*;
pub use kubewright_runtime::client as cached;
pub use kubewright_runtime::client::{CachedClient, ClientError, KindClient};
