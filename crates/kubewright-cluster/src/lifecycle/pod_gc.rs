//! Pods that nobody else would clean up: a sweep every twenty seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod, PodCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};

use kubewright::{
    client::{ApiStatus, CachedClient, ClientError},
    manager::{RunContext, Runnable, Stage, runnable_fn},
};
use tokio::time::{Instant, MissedTickBehavior};

use crate::{ControllerContext, pod};

/// The time between two sweeps.
pub const PERIOD: Duration = Duration::from_secs(20);
/// How many finished pods may stay.
pub const FINISHED_LIMIT: usize = 12_500;
/// How long a node has to be gone before its pods are.
pub const QUARANTINE: Duration = Duration::from_secs(40);

/// A pod that goes, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// The pod.
    pub pod: Pod,
    /// The status to write first, when the pod has not finished.
    pub status: Option<Pod>,
}

/// What a sweep finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sweep {
    /// Pods to delete, with grace period zero.
    pub remove: Vec<Removal>,
    /// Nodes that pods name and that are not there. They have to be missing in the sweeps of a whole
    /// [`QUARANTINE`] before they count as gone.
    pub missing: BTreeSet<String>,
}

/// Plans a sweep. `nodes` are the nodes that there are, `gone` those that have been missing for long enough.
pub fn plan(pods: &[&Pod], nodes: &BTreeSet<String>, gone: &BTreeSet<String>, now: Timestamp) -> Sweep {
    let mut sweep = Sweep::default();
    let mut finished: Vec<&Pod> = pods.iter().copied().filter(|pod| pod::is_terminal(pod)).collect();
    if finished.len() > FINISHED_LIMIT {
        finished.sort_by_key(|pod| {
            let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (created, pod.metadata.name.clone())
        });
        let excess = finished.len() - FINISHED_LIMIT;
        sweep
            .remove
            .extend(finished[..excess].iter().map(|pod| Removal { pod: (*pod).clone(), status: None }));
    }
    for pod in pods {
        match pod::node(pod) {
            None if pod.metadata.deletion_timestamp.is_some() => sweep.remove.push(removal(pod, None)),
            Some(node) if !nodes.contains(node) => {
                sweep.missing.insert(node.to_owned());
                if gone.contains(node) {
                    sweep.remove.push(removal(pod, Some(orphaned(pod, now))));
                }
            }
            _ => {}
        }
    }
    sweep
}

fn orphaned(pod: &Pod, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByPodGC".to_owned()),
        message: Some("PodGC: node no longer exists".to_owned()),
        last_transition_time: Some(Time(now)),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// A pod that has not finished fails before it goes, so that its controller does not count it as running.
fn removal(pod: &Pod, condition: Option<PodCondition>) -> Removal {
    let status = (!pod::is_terminal(pod)).then(|| {
        let mut failed = pod.clone();
        let status = failed.status.get_or_insert_default();
        status.phase = Some("Failed".to_owned());
        if let Some(condition) = condition {
            let conditions = status.conditions.get_or_insert_default();
            conditions.retain(|held| held.type_ != condition.type_);
            conditions.push(condition);
        }
        failed
    });
    Removal { pod: pod.clone(), status }
}

/// The sweeps, as a manager runs them.
pub fn runnable(cluster: &ControllerContext) -> impl Runnable {
    let (pods, nodes) = (cluster.caches().of::<Pod>(), cluster.caches().of::<Node>());
    runnable_fn("pod-garbage-collector", Stage::Elected, move |cx: RunContext| async move {
        // Since when each node has been missing.
        let mut missing: BTreeMap<String, Instant> = BTreeMap::new();
        let mut ticks = tokio::time::interval_at(Instant::now() + PERIOD, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = cx.stop().cancelled() => return Ok(()),
                _ = ticks.tick() => {}
            }
            if !pods.has_synced() || !nodes.has_synced() {
                continue;
            }
            let loaded: Vec<Arc<Pod>> = pods.list().iter().filter_map(|pod| pod.load().ok()).collect();
            let borrowed: Vec<&Pod> = loaded.iter().map(AsRef::as_ref).collect();
            let present = nodes.list().iter().map(|node| node.name().to_owned()).collect();
            let long = missing.iter().filter(|(_, since)| since.elapsed() >= QUARANTINE);
            let gone = long.map(|(name, _)| name.clone()).collect();
            let sweep = plan(&borrowed, &present, &gone, cx.clock().now());
            missing.retain(|name, _| sweep.missing.contains(name));
            for name in sweep.missing {
                missing.entry(name).or_insert_with(Instant::now);
            }
            for removal in &sweep.remove {
                if let Err(error) = remove(cx.client(), removal).await {
                    tracing::warn!(%error, "a lost pod cannot be removed; trying again in the next sweep");
                }
            }
        }
    })
}

async fn remove(client: &CachedClient, removal: &Removal) -> Result<(), ClientError> {
    if let Some(failed) = &removal.status {
        match client.of::<Pod>().status().update(failed).await {
            // Whoever changed it meanwhile may have done better; the next sweep sees.
            Err(error) if error.is_conflict() || error.is_not_found() => return Ok(()),
            answer => drop(answer?),
        }
    }
    client.delete(&removal.pod).grace_seconds(0).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: Option<&str>, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-08-01T00:00:00Z".parse().unwrap()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_terminating_pod_without_a_node_fails_and_goes() {
        let mut held = pod("a", None, "Pending");
        assert_eq!(plan(&[&held], &set(&[]), &set(&[]), now()), Sweep::default());
        held.metadata.deletion_timestamp = Some(Time(now()));
        let sweep = plan(&[&held], &set(&[]), &set(&[]), now());
        let status = sweep.remove[0].status.as_ref().unwrap().status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Failed"));
    }

    #[test]
    fn pods_of_a_node_that_stays_away_go_with_it() {
        let (here, lost) = (pod("a", Some("n1"), "Running"), pod("b", Some("n2"), "Running"));
        let first = plan(&[&here, &lost], &set(&["n1"]), &set(&[]), now());
        assert_eq!((first.remove.len(), first.missing), (0, set(&["n2"])));
        let second = plan(&[&here, &lost], &set(&["n1"]), &set(&["n2"]), now());
        let failed = second.remove[0].status.as_ref().unwrap();
        assert_eq!(failed.metadata.name.as_deref(), Some("b"));
        let conditions = failed.status.as_ref().unwrap().conditions.as_ref().unwrap();
        assert_eq!(conditions[0].reason.as_deref(), Some("DeletionByPodGC"));
    }

    #[test]
    fn of_too_many_finished_pods_the_oldest_go() {
        let pods: Vec<Pod> =
            (0..FINISHED_LIMIT + 2).map(|n| pod(&format!("p{n:06}"), Some("n"), "Succeeded")).collect();
        let pods: Vec<&Pod> = pods.iter().collect();
        let sweep = plan(&pods, &set(&["n"]), &set(&[]), now());
        let names: Vec<_> = sweep.remove.iter().map(|r| r.pod.metadata.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["p000000", "p000001"]);
        assert!(sweep.remove.iter().all(|removal| removal.status.is_none()));
    }
}
