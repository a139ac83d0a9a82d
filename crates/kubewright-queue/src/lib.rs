#![doc = include_str!("../README.md")]
//!
//! Work queues: from "something happened to this key" to "a worker has it".
//!
//! Event handlers add keys, workers get them. Between the two a queue promises what client-go's `util/workqueue` does:
//!
//! - a key that is added ten times before a worker comes is handed out once;
//! - a key is never in the hands of two workers; if it is added while one has it, it is handed out again afterwards;
//! - a key that was added is handed out, whatever else happens, until the queue is shut down.
//!
//! | queue | use it when |
//! |---|---|
//! | [`WorkQueue`] | work either cannot fail or need not be retried |
//! | [`RateLimitingQueue`] | failed work is retried with back-off: what most controllers want |
//! | [`PriorityQueue`] | and some keys are more urgent than others, such as live changes than an initial list |
//!
//! All three are one type, [`Queue`], with different abilities, and all three can delay keys
//! ([`add_after`](Queue::add_after)). An item that cannot be retried has no `retry`; there is nothing to misuse.
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
//! # For those who know client-go
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
//! - A queue carries keys, not news: by the time a worker has the key, the object may have changed again or be gone. Read
//!   the state when the work begins.
//! - [`forget`](Item::forget) a key when its work succeeds. Otherwise its failures add up over its lifetime, and the
//!   limiter remembers it for ever.
//!
//! # How it is built
//!
//! One `lock` guards the `state`: `arrivals` are sorted into the `slots`, which hold each key once, `order` says who is
//! next, `delays` who has to wait, and `waiters` who wants to be woken. What belongs to others (waking tasks, dropping
//! keys) happens after unlocking. No task and no timer belongs to a queue: while workers wait, one of them keeps the time
//! for delayed keys. The numbers behind these choices are in docs/performance.md, the reasons in docs/decisions/0004-work-queue.md.

mod arrivals;
mod builder;
mod delays;
mod get;
mod item;
mod key;
mod kind;
pub mod limiter;
mod lock;
mod meter;
mod metrics;
mod order;
mod priority;
mod rate_limiting;
mod shared;
mod slots;
mod state;
mod table;
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
