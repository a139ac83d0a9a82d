//! The workload controllers: Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`, Job, `CronJob`.
//!
//! [`register`] adds them to a [`Manager`](kubewright::manager::Manager), which runs them. Each kind has a folder here. What
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
mod handlers;
mod hash;
mod history;
mod job;
mod percent;
mod quantity;
mod replicaset;
mod selector;
mod statefulset;
pub(crate) mod step;
#[cfg(test)]
pub(crate) mod testing;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

/// How many objects of a kind are worked on at the same time.
const WORKERS: usize = 5;

/// Adds the workload controllers to a manager.
pub fn register(manager: ManagerBuilder, cluster: &ControllerContext) -> ManagerBuilder {
    manager
        .controller(deployment::reconcile::controller(cluster))
        .controller(replicaset::reconcile::controller(cluster))
        .controller(statefulset::reconcile::controller(cluster))
        .controller(daemonset::reconcile::controller(cluster))
        .controller(job::reconcile::controller(cluster))
        .controller(job::reconcile::ttl_controller())
        .controller(cronjob::reconcile::controller(cluster))
}
