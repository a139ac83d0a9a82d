//! Event handlers of the workload controllers, besides those for their own objects and children.

use std::time::Duration;

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::Resource;
use kubewright::{
    Object, ObjectKey,
    cache::{Event, FieldIndex, Lazy},
    controller::HandlerContext,
};

use super::selector;
use crate::indexes::{possibly_selecting, selector_value};

/// A kind that selects its children by labels.
pub(crate) trait Selecting: Object + Resource<DynamicType = ()> {
    /// The selector of the object.
    fn selector(&self) -> Option<&LabelSelector>;

    /// The index of the kind by one label of the selector.
    fn index() -> &'static FieldIndex<Self>;
}

macro_rules! selecting {
    ($($kind:ty: |$object:ident| $selector:expr;)*) => {
        $(impl Selecting for $kind {
            fn selector(&self) -> Option<&LabelSelector> {
                let $object = self;
                $selector
            }

            fn index() -> &'static FieldIndex<Self> {
                static INDEX: FieldIndex<$kind> = FieldIndex::new("spec.selector", |object, values| {
                    let loaded = object.load()?;
                    let labels = loaded.selector().and_then(|selector| selector.match_labels.as_ref());
                    selector_value(object, labels, values);
                    Ok(())
                });
                &INDEX
            }
        })*
    };
}
selecting! {
    Deployment: |object| Some(&object.spec.selector);
    ReplicaSet: |object| Some(&object.spec.selector);
    StatefulSet: |object| Some(&object.spec.selector);
    DaemonSet: |object| Some(&object.spec.selector);
    Job: |object| object.spec.as_ref()?.selector.as_ref();
}

/// From this many children on, status changes of children are coalesced.
const LARGE: usize = 11;
/// How long a reconcile of an owner waits for each of its children, and for how many at most.
const WAIT_EACH: Duration = Duration::from_micros(500);
const WAITED_FOR: usize = 200;

/// Enqueues the owner of a Pod. A reconcile looks at all children, so that of a large owner waits a little for the changes
/// of others: its cost per Pod does not grow with the number of Pods.
pub(crate) fn enqueue_owner<K: Object + Resource<DynamicType = ()>>(event: &Event<Pod>, cx: &HandlerContext) {
    let (group, kind) = (K::group(&()), K::kind(&()));
    let enqueue = |pod: &Lazy<Pod>, wait: bool| {
        let Some(owner) = pod.controller() else { return };
        if owner.kind != kind || owner.api_version.split_once('/').map_or("", |(group, _)| group) != group {
            return;
        }
        let key = ObjectKey::new(pod.namespace(), owner.name);
        let children = if wait { cx.cache::<Pod>().count_controlled_by(owner.uid) } else { 0 };
        if children < LARGE {
            cx.add(key);
        } else {
            cx.requests()
                .add_after(key, WAIT_EACH * u32::try_from(children.min(WAITED_FOR)).unwrap_or(u32::MAX));
        }
    };
    match event {
        Event::Added { object, .. } => enqueue(object, true),
        Event::Deleted { object, .. } => enqueue(object, false),
        Event::Updated { old, new } => {
            let same = old.controller().map(|owner| owner.uid) == new.controller().map(|owner| owner.uid);
            if !same {
                enqueue(old, false);
            }
            enqueue(new, same && !new.is_deleting());
        }
    }
}

/// Enqueues the objects that would adopt an orphan.
pub(crate) fn enqueue_adopters<K: Selecting, C: Object>(event: &Event<C>, cx: &HandlerContext) {
    let object = event.object();
    if object.controller().is_some() || matches!(event, Event::Deleted { .. }) {
        return;
    }
    let selects = |owner: &K| {
        owner.selector().is_some_and(|chosen| selector::matches_by(chosen, |key| object.label(key)))
    };
    for owner in possibly_selecting(&cx.cache::<K>(), K::index(), object) {
        if owner.load().is_ok_and(|owner| selects(&owner)) {
            cx.add(owner.key().clone());
        }
    }
}

/// Enqueues all objects of a kind.
pub(crate) fn enqueue_all<K, C: Object>(_: &Event<C>, cx: &HandlerContext)
where
    K: Object + Resource<DynamicType = ()>,
{
    cx.add_all(cx.cache::<K>().list().iter().map(|object| object.key().clone()));
}
