//! Who wakes a controller up, besides its own objects and their children.

use std::sync::{Arc, OnceLock};

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kubewright::{
    Object,
    cache::{Event, KindCache},
    controller::{EventHandler, Requests},
};

use super::selector;

/// A kind that chooses its children by labels.
pub(crate) trait Selecting: Object {
    /// By which labels.
    fn selector(&self) -> Option<&LabelSelector>;
}

macro_rules! selecting {
    ($($kind:ty),*) => {
        $(impl Selecting for $kind {
            fn selector(&self) -> Option<&LabelSelector> {
                Some(&self.spec.selector)
            }
        })*
    };
}
selecting!(Deployment, ReplicaSet, StatefulSet, DaemonSet);

impl Selecting for Job {
    fn selector(&self) -> Option<&LabelSelector> {
        self.spec.as_ref()?.selector.as_ref()
    }
}

/// The cache of a controller's own kind, for handlers. It is known from the first reconcile on; before that there is
/// no object that could be woken up.
pub(crate) struct Known<K: Object>(Arc<OnceLock<KindCache<K>>>);

impl<K: Object> Known<K> {
    /// Not known yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(OnceLock::new()))
    }

    /// Makes it known.
    pub(crate) fn is(&self, cache: impl FnOnce() -> KindCache<K>) {
        self.0.get_or_init(cache);
    }

    /// Wakes up those who would adopt an object that is nobody's.
    pub(crate) fn orphans<C: Object>(&self) -> impl EventHandler<C> + use<K, C>
    where
        K: Selecting,
    {
        let known = Self(self.0.clone());
        move |event: &Event<C>, requests: &Requests| {
            let object = event.object();
            if object.controller().is_some() || matches!(event, Event::Deleted { .. }) {
                return;
            }
            let (Some(cache), Some(namespace)) = (known.0.get(), object.namespace()) else { return };
            for owner in cache.in_namespace(namespace) {
                let matches = |owner: &K| {
                    owner
                        .selector()
                        .is_some_and(|chosen| selector::matches_by(chosen, |key| object.label(key)))
                };
                if owner.load().is_ok_and(|owner| matches(&owner)) {
                    requests.add(owner.key().clone());
                }
            }
        }
    }

    /// Wakes up everyone.
    pub(crate) fn everyone<C: Object>(&self) -> impl EventHandler<C> + use<K, C> {
        let known = Self(self.0.clone());
        move |_: &Event<C>, requests: &Requests| {
            for object in known.0.get().map(KindCache::list).unwrap_or_default() {
                requests.add(object.key().clone());
            }
        }
    }
}
