//! Kubernetes events, as `kubectl describe` shows them.
//!
//! ```
//! # use kubewright::k8s_openapi::api::core::v1::Pod;
//! use kubewright::events::FakeRecorder;
//!
//! # let pod = Pod { metadata: kubewright::kube::api::ObjectMeta {
//! #     name: Some("web".into()), namespace: Some("shop".into()), ..Default::default() }, ..Default::default() };
//! # let fake = FakeRecorder::new();
//! let recorder = fake.recorder("sample-controller");      // in a program: from an EventBroadcaster
//! recorder.normal(&pod, "Synced", "Pod synced successfully");
//! recorder.warning(&pod, "OutOfStock", format!("{} carts are left", 0));
//! # assert_eq!(fake.lines(), ["Normal Synced Pod synced successfully", "Warning OutOfStock 0 carts are left"]);
//! ```
//!
//! - [`EventBroadcaster`]: writes events to the API server, in a task of its own. One per process.
//! - [`Recorder`]: takes events of one component without blocking. Clones are cheap.
//! - [`Regarding`]: objects that an event can be about: every [`kube::Resource`], the
//!   [`Lazy`](kubewright_cache::Lazy) handles of caches, and a [`Reference`] for other objects.
//! - [`FakeRecorder`]: collects events, for tests.
//!
//! # Processing
//! As in client-go's `tools/record`, with its numbers:
//!
//! 1. **Buffer.** 1000 events; while it is full, further ones are dropped and counted. The caller never
//!    waits.
//! 2. **Aggregation.** From the 10th different message on, for the same object, reason and type within ten
//!    minutes, events become one: "(combined from similar events): …".
//! 3. **Counting.** Repeats of the same event raise the count of the first: `kubectl describe` shows `x7 over
//!    16m`.
//! 4. **Rate limit.** 25 events at once per component, object and type, then one every five minutes. Filtered
//!    events are counted, and show in the count of the next one that passes.
//! 5. **Retries.** 12 attempts, ten seconds apart. What the server refuses (4xx, a namespace that is being
//!    deleted) is not retried.
//!
//! # Pitfalls
//! - Events are informational: they are dropped, aggregated, and deleted after an hour. No controller may
//!   depend on one.
//! - Put variable parts (an address, a time) at the end of the message or leave them out: each different
//!   message is an event of its own until they are aggregated.
//! - All users with read access to the namespace's events can read them: no secrets.

mod broadcaster;
mod correlator;
mod fake;
mod lru;
mod metrics;
mod recorder;
#[cfg(test)]
mod tests;
mod writer;

pub use self::{
    broadcaster::{EventBroadcaster, EventBroadcasterBuilder},
    correlator::CorrelatorOptions,
    fake::FakeRecorder,
    metrics::EventMetrics,
    recorder::{EventBuilder, EventType, Recorder},
};
pub use kubewright_core::reference::{Reference, Regarding};
