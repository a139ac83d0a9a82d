//! Controllers: watch, queue, reconcile.
//!
//! ```text
//!  KindCache ──event──▶ Predicate ──▶ EventHandler ──Request──▶ PriorityQueue ──▶ worker ──Context──▶ Reconciler
//! ```
//!
//! ```no_run
//! use kubewright::prelude::*;
//! use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Secret};
//!
//! async fn reconcile(cx: Context<ConfigMap>) -> Result<Action> {
//!     let Some(map) = cx.object()? else { return Ok(Action::done()) }; // gone
//!     println!("{} has {} entries", cx.key(), map.data.iter().flatten().count());
//!     Ok(Action::done())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<()> {
//!     Manager::builder("example")
//!         .controller(Controller::of::<ConfigMap>().owns::<Secret>().workers(2).reconcile(reconcile))
//!         .run()
//!         .await
//! }
//! ```
//!
//! **Which part do I want?**
//! - [`Controller::of`]: begin here. `owns` and `watches` say what else wakes it up.
//! - [`Watch`]: one kind to watch, through which [predicates](predicate), to whose keys ([handler]).
//! - [`Source`]: other things that wake a controller up: a channel, an informer of your own, any function.
//! - [`Reconciler`]: a closure will do; implement it for a type that has something to remember.
//! - [`Context`]: what a reconciler gets. [`Action`]: what it says at the end.
//! - [`Journal`]: the last reconciles, for whoever asks what happened.
//!
//! # What is promised
//! - A key is never in the hands of two workers. A change during a reconcile leads to another one.
//! - A failed key comes back with back-off (5 ms doubling to 1000 s, per key), a terminal error waits for the next event.
//! - A panic, an error and a time-out are the framework's business: the key is retried, the others go on.
//! - What a reconciler reads is never older than what it has written itself.
//! - Live changes overtake the objects of the initial list and of resyncs.
//!
//! # Pitfalls
//! - Reconcile towards the state, not the event: several changes may have become one, and the object may be gone.
//! - Do not block in a reconciler: it shares threads with the others.

mod action;
mod builder;
mod context;
pub mod handler;
mod journal;
mod metrics;
pub mod predicate;
mod reconciler;
mod record;
mod request;
mod run;
pub mod source;
mod watch;
mod worker;

pub use action::Action;
pub use builder::{Controller, ControllerBuilder};
pub use context::Context;
pub use handler::{EventHandler, HandlerContext};
pub use journal::{Ended, Journal, Reconciled};
pub use metrics::{ControllerMetrics, Totals};
pub use predicate::Predicate;
pub use reconciler::Reconciler;
pub use record::EventSink;
pub use request::{Cause, Request, Requests};
pub use source::Source;
pub use watch::Watch;
