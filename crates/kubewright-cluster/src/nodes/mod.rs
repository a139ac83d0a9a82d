//! Simulated nodes, in the manner of kwok: a scheduler that binds pods, and a kubelet that lets them run.
//!
//! Nothing is executed. A pod that is bound to a simulated node becomes `Running` and ready, a pod of a job `Succeeded`,
//! and a deleted pod goes, all with the statuses, conditions and events that a real kubelet writes. What should go wrong
//! is said by annotations on the pod (or on the template of its owner):
//!
//! | annotation | what happens |
//! |---|---|
//! | `sim.kubewright.dev/start-delay: 5s` | so long until the containers run |
//! | `sim.kubewright.dev/run-duration: 30s` | the containers end after so long; pods of jobs do after a second |
//! | `sim.kubewright.dev/exit-code: "3"` | with this code |
//! | `sim.kubewright.dev/crash-loop: "true"` | the containers end at once with code 1 and are restarted with back-off |
//! | `sim.kubewright.dev/image-pull-error: "true"` | the image cannot be pulled |
//! | `sim.kubewright.dev/not-ready: "true"` | the pod runs and never becomes ready |
//! | `sim.kubewright.dev/stop-duration: 10s` | so long, but not longer than its grace period, until a deleted pod has ended |
//!
//! Only nodes with the annotation `sim.kubewright.dev/node` are simulated; pods on others are left alone.
//!
//! # Pitfalls
//! - The scheduler knows node selectors, required node affinity, taints, resource requests, host ports and unbound claims. It
//!   does not know preemption, pod affinity and topology spread.
//! - Readiness probes are not run; their `initialDelaySeconds` is kept.

mod heartbeat;
mod kubelet;
mod node;
pub(crate) mod placement;
mod requests;
mod scheduler;
mod script;

use kubewright::manager::ManagerBuilder;

use crate::ControllerContext;

pub use node::NodeTemplate;

/// The annotation of a node that is simulated.
pub const SIMULATED: &str = "sim.kubewright.dev/node";

/// Adds the scheduler, the kubelets and this many nodes to a manager.
///
/// The nodes are registered when the manager starts and kept alive: their leases, and the heartbeats in their
/// conditions.
pub fn register(
    manager: ManagerBuilder,
    cluster: &ControllerContext,
    nodes: u32,
    template: NodeTemplate,
) -> ManagerBuilder {
    manager
        .controller(scheduler::reconcile::controller(cluster))
        .controller(kubelet::reconcile::controller(cluster))
        .runnable(heartbeat::runnable(nodes, template))
}
