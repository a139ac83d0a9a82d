//! The TTL controller: an annotation that tells kubelets how long to cache Secrets and `ConfigMap`s, by cluster size.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use kubewright::{
    cache::Event,
    controller::{Action, Context, Controller, HandlerContext, Watch},
};
use serde_json::json;

use crate::writes::ignore_not_found;

/// The annotation, in seconds.
pub const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// Cluster sizes and seconds. A cluster moves to the next line above the second number, back below the first.
const STEPS: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

/// The seconds for a cluster of this size, coming from the seconds of before. The ranges overlap, so that a cluster on
/// the border does not rewrite all its nodes again and again.
pub fn seconds(nodes: usize, before: u32) -> u32 {
    let mut at = STEPS.iter().position(|step| step.2 == before).unwrap_or(0);
    while nodes > STEPS[at].1 && at + 1 < STEPS.len() {
        at += 1;
    }
    while nodes < STEPS[at].0 && at > 0 {
        at -= 1;
    }
    STEPS[at].2
}

/// The annotation's value that a node should have; `None` when it has it.
pub fn plan(node: &Node, seconds: u32) -> Option<String> {
    let wanted = seconds.to_string();
    let held = node.metadata.annotations.as_ref().and_then(|map| map.get(ANNOTATION));
    (held != Some(&wanted)).then_some(wanted)
}

/// The controller that annotates nodes.
pub fn controller() -> Controller {
    let present = Arc::new(AtomicU32::new(0));
    let resized = {
        let present = Arc::clone(&present);
        // A cluster that has crossed a border concerns every node; any other change only the node itself.
        move |event: &Event<Node>, cx: &HandlerContext| {
            if matches!(event, Event::Updated { .. }) {
                return;
            }
            let nodes = cx.cache::<Node>();
            let wanted = seconds(nodes.len(), present.load(Ordering::Relaxed));
            if present.swap(wanted, Ordering::Relaxed) != wanted {
                cx.add_all(nodes.list().iter().map(|node| node.key().clone()));
            }
        }
    };
    Controller::of::<Node>().named("ttl").watches(Watch::handled(resized)).reconcile(
        move |cx: Context<Node>| {
            let present = Arc::clone(&present);
            async move {
                let wanted = seconds(cx.own_kind().cache().len(), present.load(Ordering::Relaxed));
                if let Some(value) = cx.object()?.and_then(|node| plan(&node, wanted)) {
                    let patch = json!({"metadata": {"annotations": {ANNOTATION: value}}});
                    ignore_not_found(cx.own_kind().patch(cx.key(), &Patch::Merge(patch)).await)?;
                }
                Ok(Action::done())
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_grows_with_the_cluster_and_falls_late() {
        assert_eq!(seconds(3, 0), 0);
        assert_eq!(seconds(101, 0), 15);
        assert_eq!(seconds(95, 15), 15, "a little smaller changes nothing");
        assert_eq!(seconds(89, 15), 0);
        assert_eq!(seconds(5000, 0), 300);
        assert_eq!(seconds(1, 300), 0);
    }

    #[test]
    fn a_node_is_written_once() {
        let mut node = Node::default();
        let value = plan(&node, 0).unwrap();
        node.metadata.annotations = Some([(ANNOTATION.to_owned(), value)].into());
        assert_eq!(plan(&node, 0), None);
    }
}
