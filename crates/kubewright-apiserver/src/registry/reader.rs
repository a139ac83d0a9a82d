//! Read access to a cluster, for code that must not write to it.

use std::sync::Arc;

use jiff::Timestamp;
use kubewright_core::ObjectKey;

use super::{Registry, Types};
use crate::storage::{Object, Snapshot};

/// Reads stored objects and served types: what authenticators, authorizers and admission plugins get of a server.
///
/// Resources are named as the storage names them: `pods`, or `apps/deployments` outside of the core group.
pub trait ObjectReader: Send + Sync {
    /// Returns all stored objects at the newest revision.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Returns the types that are served now.
    fn types(&self) -> Arc<Types>;

    /// Returns the server's time.
    fn now(&self) -> Timestamp;

    /// Returns one object.
    fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.snapshot().get(resource, key)
    }

    /// Returns the objects of a namespace, or of all namespaces, ordered by key.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let collection = self.snapshot().collection(resource);
        collection.range(namespace, None).map(|(_, object)| Arc::clone(object)).collect()
    }
}

impl ObjectReader for Registry {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.storage.snapshot()
    }

    fn types(&self) -> Arc<Types> {
        self.types.load_full()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.storage.get(resource, key)
    }
}
