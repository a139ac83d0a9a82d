#![doc = include_str!("../README.md")]
//!
//! Rate-limited work queues.
//!
//! Event handlers add keys, workers get them. The guarantees are those of client-go's `util/workqueue`:
//!
//! - a key that is added ten times before a worker comes is handed out once;
//! - a key is never handed out to two workers at once; if it is added while it is in flight, it is handed out again afterwards;
//! - a key that was added is handed out, until the queue is shut down.
//!
//! | queue | use it when |
//! |---|---|
//! | [`WorkQueue`] | work either cannot fail or need not be retried |
//! | [`RateLimitingQueue`] | failed work is retried with back-off: what most controllers want |
//! | [`PriorityQueue`] | and some keys are more urgent than others, such as live changes than an initial list |
//!
//! All three are one type, [`Queue`], with different abilities, and all three can delay keys
//! ([`add_after`](Queue::add_after)). Items of queues without a limiter have no `retry`.
//!
//! ```
//! use kubewright::{ObjectKey, queue::RateLimitingQueue};
//!
//! # async fn sync(key: &ObjectKey) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let queue = RateLimitingQueue::<ObjectKey>::named("ingress-manager");
//!
//! queue.add(ObjectKey::namespaced("default", "web")); // in an event handler
//! # queue.shut_down();
//!
//! while let Some(item) = queue.get().await {           // in each worker; the guard is Done when it is dropped
//!     match sync(item.key()).await {
//!         Ok(()) => item.forget(),
//!         Err(error) if item.requeues() < 10 => item.retry(error),
//!         Err(error) => item.give_up(error),
//!     }
//! }
//! # }
//! ```
//!
//! # Coming from client-go
//!
//! | Go | here |
//! |---|---|
//! | `Add`, `AddAfter`, `AddRateLimited` | [`add`](Queue::add), [`add_after`](Queue::add_after), [`add_rate_limited`](Queue::add_rate_limited) or [`Item::retry`] |
//! | `Get` and `defer Done` | [`get`](Queue::get); the [`Item`] is a guard |
//! | `Forget`, `NumRequeues` | [`Item::forget`], [`Item::requeues`], also on the queue |
//! | `Len`, `ShutDown`, `ShutDownWithDrain`, `ShuttingDown` | [`len`](Queue::len), [`shut_down`](Queue::shut_down), [`shut_down_with_drain`](Queue::shut_down_with_drain), [`is_shutting_down`](Queue::is_shutting_down) |
//! | `AddWithOpts` of the priority queue | [`add_with`](Queue::add_with) |
//! | `DefaultTypedControllerRateLimiter` and the others | [`limiter`] |
//! | `MetricsProvider` | [`QueueMetrics`] |
//!
//! # Pitfalls
//!
//! - Hold the item while you work. `let key = queue.get().await?.key().clone();` drops the guard in the same line, and
//!   the key may be handed out to another worker while you are at it.
//! - A queue carries keys, not events: by the time a worker has the key, the object may have changed again or be gone. Read
//!   the state when the work begins.
//! - [`forget`](Item::forget) a key when its work succeeds. Otherwise its failures add up over its lifetime, and stay in
//!   the memory of the limiter.
//!
//! # How it is built
//!
//! One mutex guards the `state`: `slots` hold each key once, `order` holds the ready keys, `delays` those that wait for their
//! time, and `waiters` the tasks blocked in `get`. Tasks are woken and keys dropped after unlocking, because both run code of
//! the caller. A queue has no task and no timer of its own: one of the waiters sleeps until the earliest deadline. The reasons
//! are in docs/decisions/0004-work-queue.md.

mod builder;
mod delays;
mod get;
mod item;
mod key;
mod kind;
pub mod limiter;
mod meter;
mod metrics;
mod order;
mod priority;
mod rate_limiting;
mod shared;
mod slots;
mod state;
mod waiters;
mod work_queue;

pub use builder::QueueBuilder;
pub use get::Get;
pub use item::Item;
pub use key::WorkKey;
pub use kind::{Kind, Plain, Prioritised, RateLimited, Retrying};
pub use metrics::QueueMetrics;
pub use priority::{AddOptions, LOW_PRIORITY, PriorityQueue};
pub use rate_limiting::RateLimitingQueue;
pub use work_queue::{Queue, WorkQueue};
