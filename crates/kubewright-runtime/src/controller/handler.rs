//! Whose keys an event is about.
//!
//! | handler | an event leads to |
//! |---|---|
//! | [`ForObject`] | a reconcile of the object itself |
//! | [`ForOwner`] | a reconcile of its owner: of the one that controls it, or of all |
//! | [`Mapped`] | reconciles of whatever keys a function names |
//!
//! An update is handled for the old object and for the new one, so that an object that moves from one owner to another
//! wakes up both.

use crate::controller::Requests;
use kubewright_cache::{Event, Lazy};
use kubewright_core::{Object, ObjectKey};

/// Turns an event into requests.
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Adds the keys that this event is about.
    fn handle(&self, event: &Event<K>, requests: &Requests);
}

impl<K, F: Fn(&Event<K>, &Requests) + Send + Sync + 'static> EventHandler<K> for F {
    fn handle(&self, event: &Event<K>, requests: &Requests) {
        self(event, requests);
    }
}

/// The object itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForObject;

impl<K: 'static> EventHandler<K> for ForObject {
    fn handle(&self, event: &Event<K>, requests: &Requests) {
        requests.add(event.key());
    }
}

/// The owners of the object, of one kind.
#[derive(Debug, Clone)]
pub struct ForOwner {
    group: String,
    kind: String,
    cluster_scoped: bool,
    controller_only: bool,
}

impl ForOwner {
    /// Owners of kind `O`.
    pub fn of<O: Object>(dyntype: &O::DynamicType) -> Self {
        Self {
            group: O::group(dyntype).into_owned(),
            kind: O::kind(dyntype).into_owned(),
            cluster_scoped: kubewright_core::object::is_cluster_scoped::<O>(),
            controller_only: true,
        }
    }

    /// All owners of the kind, not only the one that controls the object.
    #[must_use]
    pub fn any(mut self) -> Self {
        self.controller_only = false;
        self
    }

    /// The owners live in no namespace. Types say so themselves; kinds known only at run time do not.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.cluster_scoped = true;
        self
    }

    fn owners<K>(&self, object: &Lazy<K>, mut each: impl FnMut(ObjectKey)) {
        for owner in object.owners() {
            // Any version of the group: references outlive the version they were written in.
            let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            if owner.kind != self.kind || group != self.group || (self.controller_only && !owner.controller) {
                continue;
            }
            let namespace = object.namespace().filter(|_| !self.cluster_scoped);
            each(ObjectKey::new(namespace, owner.name));
        }
    }
}

impl<K: 'static> EventHandler<K> for ForOwner {
    fn handle(&self, event: &Event<K>, requests: &Requests) {
        if let Event::Updated { old, new } = event
            && !old.is(new)
        {
            self.owners(old, |key| requests.add(key));
        }
        self.owners(event.object(), |key| requests.add(key));
    }
}

/// The keys that a function names.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<F>(F);

impl<F> Mapped<F> {
    /// The keys that this function names for an object. It is asked for both sides of an update.
    pub fn by<K, I>(map: F) -> Self
    where
        F: Fn(&Lazy<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectKey>,
    {
        Self(map)
    }
}

impl<K: 'static, I, F> EventHandler<K> for Mapped<F>
where
    F: Fn(&Lazy<K>) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    fn handle(&self, event: &Event<K>, requests: &Requests) {
        if let Event::Updated { old, new } = event
            && !old.is(new)
        {
            (self.0)(old).into_iter().for_each(|key| requests.add(key));
        }
        (self.0)(event.object()).into_iter().for_each(|key| requests.add(key));
    }
}
