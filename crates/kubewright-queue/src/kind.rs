//! The three kinds of queue, and what each can do.

use std::time::Duration;

use super::{
    key::WorkKey,
    limiter::{ItemExponentialFailure, RateLimiter, Unlimited, default_controller_limiter},
    order::{ByPriority, Fifo, Order},
};

/// What sets one kind of queue apart from another: [`Plain`], [`RateLimited`] or [`Prioritised`].
///
/// Sealed: the kinds are these three.
pub trait Kind: Behaviour {}

/// Queues whose items can be retried: [`RateLimited`] and [`Prioritised`].
///
/// Sealed.
pub trait Retrying: Kind {}

/// First in, first out, with delays. The kind of a [`WorkQueue`](super::WorkQueue).
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

/// The same, with a rate limiter for retries. The kind of a [`RateLimitingQueue`](super::RateLimitingQueue).
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

/// The inside of [`Kind`], out of reach for other crates.
pub trait Behaviour: 'static {
    /// Who is next.
    type Order: Order;

    /// The limiter of a queue that is built without one.
    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>>;
}

/// What is said about the place of a key that is added to a queue of this kind.
pub(super) type Urgency<K> = <<K as Behaviour>::Order as Order>::Urgency;

/// The place of a key in a queue of this kind.
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

    /// As in controller-runtime, per key only: a bucket over all keys would hold up the important ones because of the
    /// others.
    fn default_limiter<T: WorkKey>() -> Box<dyn RateLimiter<T>> {
        Box::new(ItemExponentialFailure::new(Duration::from_millis(5), Duration::from_secs(1000)))
    }
}
