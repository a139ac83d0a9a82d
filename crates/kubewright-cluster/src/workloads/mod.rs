//! The workload controllers: Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`, Job, `CronJob`.
//!
//! Each kind has a folder. What a controller decides is a plain function from objects to a list of writes, with the
//! time handed in; what it then does is a thin reconciler around it.

mod claim;
mod cronjob;
mod daemonset;
mod deployment;
mod hash;
mod history;
mod job;
mod percent;
mod pods;
mod replicaset;
mod selector;
mod statefulset;
mod step;
#[cfg(test)]
mod testing;
