//! Kinds of queues and their abilities.

use std::time::Duration;

use super::{
    key::WorkKey,
    limiter::{ItemExponentialFailure, RateLimiter, Unlimited, default_controller_limiter},
    order::{ByPriority, Fifo, Order},
};

/// Kind of a queue: [`Plain`], [`RateLimited`] or [`Prioritised`].
///
/// Sealed.
pub trait Kind: Behaviour {}

/// Queues whose items can be retried: [`RateLimited`] and [`Prioritised`].
///
/// Sealed.
pub trait Retrying: Kind {}

/// First in, first out, with delays. The kind of a [`WorkQueue`](super::WorkQueue).
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

/// First in, first out, with delays and a rate limiter for retries. The kind of a [`RateLimitingQueue`](super::RateLimitingQueue).
#[derive(Debug, Clone, Copy)]
pub enum RateLimited {}

/// Highest priority first, with a rate limiter for retries. The kind of a [`PriorityQueue`](super::PriorityQueue).
#[derive(Debug, Clone, Copy)]
pub enum Prioritised {}

impl Kind for Plain {}
impl Kind for RateLimited {}
impl Kind for Prioritised {}
impl Retrying for RateLimited {}
impl Retrying for Prioritised {}

/// Private part of [`Kind`].
pub trait Behaviour: 'static {
    /// Order of the ready keys.
    type Order: Order;

    /// Creates the limiter of a queue that is built without one.
    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>>;
}

/// Priority of an addition to a queue of this kind.
pub(super) type Urgency<K> = <<K as Behaviour>::Order as Order>::Urgency;

/// Place of a key in the order of a queue of this kind.
pub(super) type Rank<K> = <<K as Behaviour>::Order as Order>::Rank;

impl Behaviour for Plain {
    type Order = Fifo;

    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>> {
        Box::new(Unlimited)
    }
}

impl Behaviour for RateLimited {
    type Order = Fifo;

    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>> {
        Box::new(default_controller_limiter())
    }
}

impl Behaviour for Prioritised {
    type Order = ByPriority;

    /// Per key only, as in controller-runtime: a bucket over all keys would delay keys of high priority.
    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>> {
        Box::new(ItemExponentialFailure::new(Duration::from_millis(5), Duration::from_secs(1000)))
    }
}
