//! Events: what an operator tells the people who run `kubectl describe`.
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
//! - [`Recorder`]: takes events, from anywhere, at once. As many as there are components; clones are cheap.
//! - [`Regarding`]: what an event can be about: every [`kube::Resource`], the [`Lazy`](kubewright_cache::Lazy) handles of
//!   caches, and a [`Reference`] to whatever else.
//! - [`FakeRecorder`]: keeps them instead, for tests.
//!
//! # What becomes of an event
//! As in client-go's `tools/record`, with its numbers:
//!
//! 1. **Buffer.** 1000 events; when it is full, further ones are dropped and counted. The caller never waits.
//! 2. **Similar ones** are combined: from the 10th different message on, for the same object, reason and type within
//!    ten minutes, there is one event "(combined from similar events): …".
//! 3. **Repeats** of the same event raise the count of the first: `kubectl describe` shows `x7 over 16m`.
//! 4. **Spam** is filtered: 25 at once per component, object and type, then one every five minutes. What is
//!    filtered is still counted, and shows with the next that passes.
//! 5. **Trouble** with the server: 12 tries, ten seconds apart. What the server refuses (4xx, a namespace that is being
//!    deleted) is not tried again.
//!
//! # Pitfalls
//! - Events are for people. They are dropped, combined and forgotten after an hour: no controller may depend on one.
//! - Put what differs (an address, a time) at the end of the message or leave it out: every different message is
//!   another event until they are combined.
//! - Everybody who may read events of a namespace reads them: no secrets.

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
    broadcaster::{Builder, EventBroadcaster},
    correlator::Correlation,
    fake::FakeRecorder,
    metrics::EventMetrics,
    recorder::{About, Recorder},
};
pub use kubewright_core::reference::{Reference, Regarding};
