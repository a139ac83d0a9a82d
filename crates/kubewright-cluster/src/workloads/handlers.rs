//! Event handlers of the workload controllers, besides those for their own objects and children.

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::Resource;
use kubewright::{
    Object,
    cache::{Event, FieldIndex},
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
