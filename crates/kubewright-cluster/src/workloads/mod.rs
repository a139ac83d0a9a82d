//! The workload controllers: Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`, Job, `CronJob`.
//!
//! [`controllers`] gives them all; a [`Manager`](kubewright::manager::Manager) runs them. Each kind has a folder here. What
//! a controller decides is a plain function from objects to a list of writes, with the time handed in; what it then
//! does is a thin reconciler around it.
//!
//! They do what kube-controller-manager's do, down to the order of conditions, the two writes that complete a job and
//! the texts of events. Where upstream remembers in memory what it expects to see, these read through the cached client,
//! which is never behind one's own writes; where it remembers failures, these count them from the objects.
//!
//! # Pitfalls
//! - Hashes in names are those of one release of Kubernetes: see `hash.rs`. Nobody should depend on their value; in another
//!   release a template has another hash.
//! - Without nodes nothing runs: pods stay pending until somebody writes their status. [`nodes`](crate::nodes) does.

mod claim;
mod cronjob;
mod daemonset;
mod deployment;
mod dump;
mod exec;
mod hash;
mod history;
mod job;
mod percent;
pub(crate) mod pods;
mod quantity;
mod replicaset;
mod selector;
mod statefulset;
pub(crate) mod step;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod wake;

use std::sync::Arc;

use kubewright::controller::{Controller, EventSink};

/// How many objects of a kind are worked on at the same time.
const WORKERS: usize = 5;

/// All workload controllers. `events` gives each component of the cluster its recorder, by name.
///
/// ```
/// # use std::sync::Arc;
/// use kubewright::{controller::EventSink, k8s_openapi::api::core::v1::ObjectReference, manager::Manager};
///
/// struct Silence;
/// impl EventSink for Silence {
///     fn record(&self, _: &ObjectReference, _: bool, _: &str, _: &str) {}
/// }
///
/// let mut manager = Manager::builder("kube-controller-manager");
/// for controller in kubewright_cluster::workloads::controllers(|_component| Arc::new(Silence)) {
///     manager = manager.controller(controller);
/// }
/// ```
pub fn controllers(events: impl Fn(&str) -> Arc<dyn EventSink>) -> Vec<Controller> {
    vec![
        deployment::reconcile::controller(events("deployment-controller")),
        replicaset::reconcile::controller(events("replicaset-controller")),
        statefulset::reconcile::controller(events("statefulset-controller")),
        daemonset::reconcile::controller(events("daemonset-controller")),
        job::reconcile::controller(events("job-controller")),
        job::reconcile::ttl_controller(),
        cronjob::reconcile::controller(events("cronjob-controller")),
    ]
}
