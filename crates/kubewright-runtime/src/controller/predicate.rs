//! Which events are worth a reconcile.
//!
//! A predicate sees the whole [`Event`]: what happened, and the object before and after. Any `Fn(&Event<K>) -> bool` is
//! one, and [`and`](Predicate::and), [`or`](Predicate::or), [`not`](Predicate::not) make new ones of them:
//!
//! ```
//! use kubewright::{cache::Event, controller::predicate::{GenerationChanged, LabelChanged, Predicate, object}};
//! use kubewright::k8s_openapi::api::core::v1::Pod;
//!
//! let spec_or_labels = Predicate::<Pod>::or(GenerationChanged, LabelChanged);
//! let only_web = object(|pod: &kubewright::cache::Lazy<Pod>| pod.label("app") == Some("web"));
//! let worth_it = spec_or_labels.and(only_web).and(|event: &Event<Pod>| event.name() != "Deleted");
//! # fn takes(_: impl Predicate<Pod>) {}
//! # takes(worth_it);
//! ```
//!
//! Pitfall: the objects of the initial list come as additions. A predicate that stops additions makes a controller that
//! forgets everything at its start. Those named `…Changed` here stop updates only.

use std::marker::PhantomData;

use kube::core::{Expression, Selector};

use kubewright_cache::{Event, Lazy, matches};
use kubewright_core::Object;

/// Says whether an event is worth a reconcile.
pub trait Predicate<K>: Send + Sync + 'static {
    /// Whether the event passes.
    fn passes(&self, event: &Event<K>) -> bool;

    /// Both.
    fn and<P: Predicate<K>>(self, other: P) -> And<Self, P>
    where
        Self: Sized,
    {
        And(self, other)
    }

    /// Either.
    fn or<P: Predicate<K>>(self, other: P) -> Or<Self, P>
    where
        Self: Sized,
    {
        Or(self, other)
    }

    /// The opposite.
    fn not(self) -> Not<Self>
    where
        Self: Sized,
    {
        Not(self)
    }
}

impl<K, F: Fn(&Event<K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn passes(&self, event: &Event<K>) -> bool {
        self(event)
    }
}

/// Two predicates that must both pass an event; see [`Predicate::and`].
#[derive(Debug, Clone, Copy)]
pub struct And<A, B>(A, B);

/// Two predicates of which one must pass an event; see [`Predicate::or`].
#[derive(Debug, Clone, Copy)]
pub struct Or<A, B>(A, B);

/// The opposite of a predicate; see [`Predicate::not`].
#[derive(Debug, Clone, Copy)]
pub struct Not<A>(A);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for And<A, B> {
    fn passes(&self, event: &Event<K>) -> bool {
        self.0.passes(event) && self.1.passes(event)
    }
}

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Or<A, B> {
    fn passes(&self, event: &Event<K>) -> bool {
        self.0.passes(event) || self.1.passes(event)
    }
}

impl<K, A: Predicate<K>> Predicate<K> for Not<A> {
    fn passes(&self, event: &Event<K>) -> bool {
        !self.0.passes(event)
    }
}

/// Stops updates that change nothing: resyncs, and lists that found the object as it was.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceVersionChanged;

impl<K: 'static> Predicate<K> for ResourceVersionChanged {
    fn passes(&self, event: &Event<K>) -> bool {
        updated(event, |old, new| old.resource_version() != new.resource_version())
    }
}

/// Stops updates that change nothing of what is wanted: status, labels, annotations, finalizers.
///
/// Only for kinds whose generation the server counts: custom resources with a status subresource and most built-in kinds
/// with a spec. A deletion that waits for finalizers counts too.
#[derive(Debug, Clone, Copy, Default)]
pub struct GenerationChanged;

impl<K: 'static> Predicate<K> for GenerationChanged {
    fn passes(&self, event: &Event<K>) -> bool {
        updated(event, |old, new| old.generation() != new.generation())
    }
}

/// Stops updates that change no label.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelChanged;

impl<K: 'static> Predicate<K> for LabelChanged {
    fn passes(&self, event: &Event<K>) -> bool {
        // In the order of the server, which writes maps sorted.
        updated(event, |old, new| !old.labels().eq(new.labels()))
    }
}

/// Stops updates that change no annotation. Annotations are not kept at hand: this decodes both objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotationChanged;

impl<K: Object> Predicate<K> for AnnotationChanged {
    fn passes(&self, event: &Event<K>) -> bool {
        updated(event, |old, new| match (old.load(), new.load()) {
            (Ok(old), Ok(new)) => old.meta().annotations != new.meta().annotations,
            // What cannot be read may have changed.
            _ => true,
        })
    }
}

fn updated<K>(event: &Event<K>, changed: impl Fn(&Lazy<K>, &Lazy<K>) -> bool) -> bool {
    match event {
        Event::Updated { old, new } => changed(old, new),
        _ => true,
    }
}

/// Passes events of objects whose labels match. An update passes when either side does, so that an object that leaves
/// the selection is heard of once more.
#[derive(Debug, Clone)]
pub struct Selected(Vec<Expression>);

impl Selected {
    /// Objects with labels like these.
    pub fn by(selector: &Selector) -> Self {
        Self(selector.clone().into_iter().collect())
    }
}

impl<K: 'static> Predicate<K> for Selected {
    fn passes(&self, event: &Event<K>) -> bool {
        either(event, |object| self.0.iter().all(|expression| matches(object, expression)))
    }
}

/// Passes events of objects that this function says yes to; an update when it does to either side.
pub fn object<K: 'static, F>(select: F) -> ByObject<K, F>
where
    F: Fn(&Lazy<K>) -> bool + Send + Sync + 'static,
{
    ByObject(select, PhantomData)
}

/// A predicate by a function of one object; see [`object`].
#[derive(Debug, Clone, Copy)]
pub struct ByObject<K, F>(F, PhantomData<fn(&K)>);

impl<K: 'static, F: Fn(&Lazy<K>) -> bool + Send + Sync + 'static> Predicate<K> for ByObject<K, F> {
    fn passes(&self, event: &Event<K>) -> bool {
        either(event, &self.0)
    }
}

fn either<K>(event: &Event<K>, yes: impl Fn(&Lazy<K>) -> bool) -> bool {
    match event {
        Event::Updated { old, new } => yes(new) || yes(old),
        _ => yes(event.object()),
    }
}
