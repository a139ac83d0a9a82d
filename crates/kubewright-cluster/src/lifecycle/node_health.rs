//! The node lifecycle controller: conditions of nodes that do not report turn unknown, taints follow the conditions.
//!
//! A kubelet renews its Lease; when it has not for fifty seconds, nobody knows how the node is. The `Ready` condition
//! then decides two taints, one that keeps new pods away and one that drives running pods off when their patience is
//! over.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, NodeCondition, Pod, Taint, Toleration},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kubewright::{
    Error, ObjectKey,
    cache::{Event, Lazy},
    controller::{Action, Context, Controller, Watch},
};

use crate::{indexes::PODS_BY_NODE, pod};

/// How long a node may be silent.
pub const GRACE: SignedDuration = SignedDuration::from_secs(50);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Conditions that a silent node no longer vouches for.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A condition, the status that is trouble, and the taint that follows.
const TAINTED: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// When a node was last heard of: its Lease, its `Ready` condition, or its creation.
pub fn last_heard(node: &Node, lease: Option<&Lease>) -> Option<Timestamp> {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref()).map(|time| time.0);
    let beat = condition(node, "Ready").and_then(|c| c.last_heartbeat_time.as_ref()).map(|time| time.0);
    let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
    renewed.max(beat).or(created)
}

/// The conditions of a node that has been silent for too long; `None` when it has not, or they say so already.
pub fn silenced(node: &Node, lease: Option<&Lease>, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let heard = last_heard(node, lease)?;
    if now < heard + GRACE {
        return None;
    }
    let old = node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let mut conditions = old.clone();
    for kind in CONDITIONS {
        let held = conditions.iter_mut().find(|condition| condition.type_ == kind);
        match held {
            Some(held) if held.status == "Unknown" => {}
            Some(held) => {
                "Unknown".clone_into(&mut held.status);
                held.reason = Some("NodeStatusUnknown".to_owned());
                held.message = Some("Kubelet stopped posting node status.".to_owned());
                held.last_transition_time = Some(Time(now));
            }
            None => conditions.push(NodeCondition {
                type_: kind.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some("NodeStatusNeverUpdated".to_owned()),
                message: Some("Kubelet never posted node status.".to_owned()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(Time(now)),
            }),
        }
    }
    (conditions != old).then_some(conditions)
}

/// The taints that a node should have; `None` when it has them. Taints of others stay.
pub fn taints(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let spec = node.spec.clone().unwrap_or_default();
    let old = spec.taints.unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (kind, trouble, key) in TAINTED {
        if condition(node, kind).is_some_and(|condition| condition.status == trouble) {
            wanted.push((key, "NoSchedule"));
            if kind == "Ready" {
                wanted.push((key, "NoExecute"));
            }
        }
    }
    // A node that has said nothing yet keeps the taint that it was created with.
    let unheard = condition(node, "Ready").is_none();
    if spec.unschedulable == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let ours =
        |taint: &Taint| taint.key == UNSCHEDULABLE || TAINTED.iter().any(|(_, _, key)| taint.key == *key);
    let stays = |taint: &Taint| {
        !ours(taint)
            || (unheard && taint.key == NOT_READY)
            || wanted.iter().any(|(key, effect)| taint.key == *key && taint.effect == *effect)
    };
    let mut taints: Vec<Taint> = old.iter().filter(|taint| stays(taint)).cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            let since = (effect == "NoExecute").then_some(Time(now));
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: since,
                value: None,
            });
        }
    }
    (taints != old).then_some(taints)
}

/// When a pod has to leave its node because of the node's `NoExecute` taints: `None` for never.
pub fn evicted_at(pod: &Pod, taints: &[Taint], now: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let mut earliest: Option<Timestamp> = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let tolerating: Vec<&Toleration> =
            tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        let since = taint.time_added.as_ref().map_or(now, |time| time.0);
        let until = if tolerating.is_empty() {
            since
        } else {
            let limits = tolerating.iter().filter_map(|toleration| toleration.toleration_seconds);
            let Some(seconds) = limits.min() else { continue };
            since + SignedDuration::from_secs(seconds.max(0))
        };
        earliest = Some(earliest.map_or(until, |held| held.min(until)));
    }
    earliest
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |value: &Option<String>| value.as_deref().is_none_or(str::is_empty);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key = if any(&toleration.key) { exists } else { toleration.key.as_ref() == Some(&taint.key) };
    let effect = any(&toleration.effect) || toleration.effect.as_ref() == Some(&taint.effect);
    let value = exists
        || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    key && effect && value
}

/// The namespace of the nodes' Leases.
const LEASES: &str = "kube-node-lease";

/// The node lifecycle controller, for clusters whose nodes report.
pub fn controller() -> Controller {
    Controller::of::<Node>()
        .named("node-lifecycle")
        .index(&PODS_BY_NODE)
        .watches(Watch::mapped(|lease: &Lazy<Lease>| {
            (lease.namespace() == Some(LEASES)).then(|| ObjectKey::cluster(lease.name()))
        }))
        .watches(Watch::mapped(node_of).when(may_be_evicted))
        .reconcile(watch_over)
}

fn node_of(pod: &Lazy<Pod>) -> Option<ObjectKey> {
    pod.load().ok().and_then(|pod| pod::node(&pod).map(ObjectKey::cluster))
}

/// Whether a Pod came to a node, or tolerates other taints than before: what decides whether it may stay.
fn may_be_evicted(event: &Event<Pod>) -> bool {
    match event {
        Event::Added { .. } => true,
        Event::Updated { old, new } => match (old.load(), new.load()) {
            (Ok(old), Ok(new)) => {
                let tolerations = |pod: &Pod| pod.spec.as_ref().map(|spec| spec.tolerations.clone());
                pod::node(&old) != pod::node(&new) || tolerations(&old) != tolerations(&new)
            }
            _ => true,
        },
        Event::Deleted { .. } => false,
    }
}

async fn watch_over(cx: Context<Node>) -> Result<Action, Error> {
    let Some(node) = cx.object()? else { return Ok(Action::done()) };
    let lease = cx.get::<Lease>(&ObjectKey::namespaced(LEASES, cx.key().name())).await?;
    let now = cx.clock().now();
    let mut node = (*node).clone();
    if let Some(conditions) = silenced(&node, lease.as_deref(), now) {
        node.status.get_or_insert_default().conditions = Some(conditions);
        node = cx.own_kind().status().update(&node).await?;
    }
    if let Some(wanted) = taints(&node, now) {
        node.spec.get_or_insert_default().taints = Some(wanted);
        node = cx.own_kind().update(&node).await?;
    }
    let mut next = last_heard(&node, lease.as_deref()).map(|heard| heard + GRACE).filter(|at| *at > now);
    let tainted = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    if tainted.iter().any(|taint| taint.effect == "NoExecute") {
        for pod in cx.list::<Pod>().by_index(&PODS_BY_NODE, cx.key().name()).await? {
            if pod.is_deleting() {
                continue;
            }
            let pod = pod.load()?;
            match evicted_at(&pod, &tainted, now) {
                Some(at) if at <= now => cx.delete(&*pod).await?,
                Some(at) => next = Some(next.map_or(at, |held| held.min(at))),
                None => {}
            }
        }
    }
    let wait = next.and_then(|at| std::time::Duration::try_from(at.duration_since(now)).ok());
    Ok(wait.map_or(Action::done(), Action::requeue_after))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_785_542_400 + seconds).unwrap()
    }

    fn node(ready: Option<&str>, taints: &Value) -> Node {
        let conditions = ready.map(
            |status| json!([{"type": "Ready", "status": status, "lastHeartbeatTime": at(0).to_string()}]),
        );
        serde_json::from_value(json!({
            "metadata": {"name": "n", "creationTimestamp": at(0).to_string()},
            "spec": {"taints": taints}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn lease(seconds: i64) -> Lease {
        serde_json::from_value(json!({"spec": {"renewTime": at(seconds).to_string()}})).unwrap()
    }

    fn names(taints: &[Taint]) -> Vec<(&str, &str)> {
        taints.iter().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect()
    }

    #[test]
    fn a_node_is_unknown_when_its_lease_is_old() {
        let node = node(Some("True"), &json!(null));
        assert_eq!(silenced(&node, Some(&lease(30)), at(60)), None);
        let conditions = silenced(&node, Some(&lease(0)), at(60)).unwrap();
        assert_eq!(conditions.len(), 4);
        assert_eq!(conditions[0].reason.as_deref(), Some("NodeStatusUnknown"));
        assert_eq!(conditions[1].reason.as_deref(), Some("NodeStatusNeverUpdated"));
    }

    #[test]
    fn taints_follow_the_ready_condition_and_leave_others_alone() {
        let theirs =
            json!([{"key": "gpu", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]);
        let ready = taints(&node(Some("True"), &theirs), at(0)).unwrap();
        assert_eq!(names(&ready), [("gpu", "NoSchedule")]);
        let unknown = taints(&node(Some("Unknown"), &theirs), at(0)).unwrap();
        assert_eq!(
            names(&unknown),
            [("gpu", "NoSchedule"), (UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
        );
        assert_eq!(taints(&node(None, &theirs), at(0)), None, "a new node keeps the taint it came with");
        let mut cordoned = node(Some("True"), &json!(null));
        cordoned.spec.as_mut().unwrap().unschedulable = Some(true);
        assert_eq!(names(&taints(&cordoned, at(0)).unwrap()), [(UNSCHEDULABLE, "NoSchedule")]);
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates() {
        let pod = |tolerations: Value| -> Pod {
            serde_json::from_value(json!({"spec": {"containers": [], "tolerations": tolerations}})).unwrap()
        };
        let taint = [Taint {
            key: UNREACHABLE.into(),
            effect: "NoExecute".into(),
            time_added: Some(Time(at(0))),
            value: None,
        }];
        assert_eq!(evicted_at(&pod(json!([])), &taint, at(5)), Some(at(0)));
        let patient = json!([{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
        assert_eq!(evicted_at(&pod(patient), &taint, at(5)), Some(at(300)));
        let daemon = json!([{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}]);
        assert_eq!(evicted_at(&pod(daemon), &taint, at(5)), None);
        assert_eq!(evicted_at(&pod(json!([])), &[], at(5)), None);
    }
}
