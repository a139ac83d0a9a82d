//! Event handlers: from an event to the keys to reconcile.
//!
//! | handler | an event leads to |
//! |---|---|
//! | [`ForObject`] | a reconcile of the object itself |
//! | [`ForOwner`] | a reconcile of its owner: of the one that controls it, or of all |
//! | [`Mapped`] | reconciles of the keys that a function returns |
//! | [`ByIndex`] | reconciles of the objects that refer to it, by an index |
//!
//! An update is handled for the old object and for the new one, so that an object that moves from one owner to another
//! wakes up both.

use kube::Resource;

use crate::controller::{Requests, source::SourceContext};
use kubewright_cache::{Caches, Event, FieldIndex, KindCache, Lazy};
use kubewright_core::{Object, ObjectKey};
use kubewright_queue::AddOptions;

/// What an event handler works with: the caches to look other objects up in, and the queue to add keys to.
#[derive(Debug, Clone)]
pub struct HandlerContext {
    caches: Caches,
    requests: Requests,
}

impl HandlerContext {
    /// Context for the handlers of a [source](crate::controller::Source) of one's own.
    pub fn new(cx: &SourceContext, requests: Requests) -> Self {
        Self { caches: cx.caches().clone(), requests }
    }

    pub(super) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// The caches of the controller's cluster, with their indexes.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The cache of a kind. It may not have synced yet; the objects that it lacks have an event of their own to come.
    pub fn cache<T: Object + Resource<DynamicType = ()>>(&self) -> KindCache<T> {
        self.caches.of()
    }

    /// Adds a key to the queue; with low priority if the event comes from the initial list or a resync.
    pub fn add(&self, key: ObjectKey) {
        self.requests.add(key);
    }

    /// Adds these keys to the queue.
    pub fn add_all(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        keys.into_iter().for_each(|key| self.add(key));
    }

    /// Adds a key to the queue with these options.
    pub fn add_with(&self, key: ObjectKey, options: AddOptions) {
        self.requests.add_with(key, options);
    }

    /// The queue alone, for handlers that add keys later.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }
}

/// Turns an event into requests.
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Adds the keys that this event is about.
    fn handle(&self, event: &Event<K>, cx: &HandlerContext);
}

impl<K, F: Fn(&Event<K>, &HandlerContext) + Send + Sync + 'static> EventHandler<K> for F {
    fn handle(&self, event: &Event<K>, cx: &HandlerContext) {
        self(event, cx);
    }
}

/// The object itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForObject;

impl<K: 'static> EventHandler<K> for ForObject {
    fn handle(&self, event: &Event<K>, cx: &HandlerContext) {
        cx.add(event.key());
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
    fn handle(&self, event: &Event<K>, cx: &HandlerContext) {
        sides(event, |object| self.owners(object, |key| cx.add(key)));
    }
}

/// The keys that a function returns.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<F>(F);

impl<F> Mapped<F> {
    /// The keys that this function returns for an object. It is called for both sides of an update.
    pub fn by<K, I>(map: F) -> Self
    where
        F: Fn(&Lazy<K>, &HandlerContext) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectKey>,
    {
        Self(map)
    }
}

impl<K: 'static, I, F> EventHandler<K> for Mapped<F>
where
    F: Fn(&Lazy<K>, &HandlerContext) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    fn handle(&self, event: &Event<K>, cx: &HandlerContext) {
        sides(event, |object| cx.add_all((self.0)(object, cx)));
    }
}

/// The objects that refer to the object: those that have its key in an index.
#[derive(Debug)]
pub struct ByIndex<O: 'static>(&'static FieldIndex<O>);

impl<O> ByIndex<O> {
    /// The objects of kind `O` whose values in this index are keys, as [`ObjectKey::as_str`] has them.
    pub fn new(index: &'static FieldIndex<O>) -> Self {
        Self(index)
    }
}

impl<K: 'static, O: Object + Resource<DynamicType = ()>> EventHandler<K> for ByIndex<O> {
    fn handle(&self, event: &Event<K>, cx: &HandlerContext) {
        match cx.cache::<O>().by_index(self.0, event.key().as_str()) {
            Ok(referring) => cx.add_all(referring.iter().map(|object| object.key().clone())),
            Err(error) => {
                tracing::error!(%error, "an event cannot be mapped to the objects that refer to its object");
            }
        }
    }
}

/// Calls a function for the object of an event, and for the old one of an update.
fn sides<K>(event: &Event<K>, mut each: impl FnMut(&Lazy<K>)) {
    if let Event::Updated { old, new } = event
        && !old.is(new)
    {
        each(old);
    }
    each(event.object());
}
