//! What a `ResourceQuota` counts: which objects of a namespace use how much of what is limited.
//!
//! A quota names its resources in four ways: a plain kind (`pods`, `services`), a count of any kind
//! (`count/deployments.apps`), a sum over pods (`requests.cpu`, `limits.memory`, `cpu`) and a sum over volume claims
//! (`requests.storage`, or of one class). [`tracked`] says which objects a quota must be shown, [`used`] adds them up.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service},
    apimachinery::pkg::api::resource::Quantity,
};
use kubewright_apiserver::registry::quantity;

use super::{pod_usage, scope};
use crate::{objects::milli_value, pod};

/// The suffix by which a storage class limits its own claims.
const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";

/// Plain names that are counts of core kinds, as quotas have named them from the beginning.
const PLAIN_COUNTS: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// A kind whose objects a quota counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    /// The plural, as in `deployments`.
    pub plural: String,
    /// The group; empty for the core group.
    pub group: String,
}

/// The objects of a namespace, as far as its quotas look at them.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// All pods.
    pub pods: Vec<Pod>,
    /// All services.
    pub services: Vec<Service>,
    /// All volume claims.
    pub claims: Vec<PersistentVolumeClaim>,
    /// How many objects of each other kind there are.
    pub counts: BTreeMap<Counted, usize>,
}

/// The kind that a resource name counts, if it counts objects.
pub fn counted(resource: &str) -> Option<Counted> {
    if let Some(named) = resource.strip_prefix("count/") {
        let (plural, group) = named.split_once('.').unwrap_or((named, ""));
        return Some(Counted { plural: plural.to_owned(), group: group.to_owned() });
    }
    PLAIN_COUNTS.contains(&resource).then(|| Counted { plural: resource.to_owned(), group: String::new() })
}

/// The kinds of which a quota needs the number of objects.
pub fn tracked(quota: &ResourceQuota) -> BTreeSet<Counted> {
    hard(quota).keys().filter_map(|resource| counted(resource)).collect()
}

/// The status that a quota should have; `None` when it has it.
pub fn plan(quota: &ResourceQuota, contents: &Contents, now: Timestamp) -> Option<ResourceQuotaStatus> {
    let wanted = ResourceQuotaStatus {
        hard: Some(hard(quota).clone()).filter(|hard| !hard.is_empty()),
        used: Some(used(quota, contents, now)).filter(|used| !used.is_empty()),
    };
    (quota.status.as_ref() != Some(&wanted)).then_some(wanted)
}

fn hard(quota: &ResourceQuota) -> &BTreeMap<String, Quantity> {
    static NONE: BTreeMap<String, Quantity> = BTreeMap::new();
    quota.spec.as_ref().and_then(|spec| spec.hard.as_ref()).unwrap_or(&NONE)
}

/// What is used of every resource that the quota limits.
pub fn used(quota: &ResourceQuota, contents: &Contents, now: Timestamp) -> BTreeMap<String, Quantity> {
    let scopes = scope::of(quota);
    let pods: Vec<&Pod> = contents.pods.iter().filter(|pod| scope::covers_pod(&scopes, pod)).collect();
    let running: Vec<&Pod> = pods.iter().copied().filter(|pod| counts(pod, now)).collect();
    let claims: Vec<&PersistentVolumeClaim> =
        contents.claims.iter().filter(|claim| scope::covers_claim(&scopes, claim)).collect();
    let amount = |resource: &str| match resource {
        "pods" => units(running.len()),
        "count/pods" => units(pods.len()),
        "count/persistentvolumeclaims" | "persistentvolumeclaims" => units(claims.len()),
        "requests.storage" => claims.iter().map(|claim| requested(claim)).sum(),
        // Other kinds are in no scope.
        _ if resource.contains(CLASS_SUFFIX) => of_class(resource, &claims),
        "services.nodeports" if scopes.is_empty() => contents.services.iter().map(node_ports).sum(),
        "services.loadbalancers" if scopes.is_empty() => {
            units(contents.services.iter().filter(|service| service_type(service) == "LoadBalancer").count())
        }
        _ => match counted(resource) {
            Some(kind) if scopes.is_empty() => units(contents.counts.get(&kind).copied().unwrap_or(0)),
            Some(_) => 0,
            None => running.iter().map(|pod| pod_usage::of(pod, resource)).sum(),
        },
    };
    let text = |resource: &str, most: &Quantity| {
        let binary = most.0.ends_with('i') || resource.contains("memory") || resource.contains("storage");
        Quantity(quantity::format(amount(resource), binary && counted(resource).is_none()))
    };
    hard(quota).iter().map(|(resource, most)| (resource.clone(), text(resource, most))).collect()
}

fn units(count: usize) -> i128 {
    i128::try_from(count).unwrap_or(i128::MAX / 1000) * 1000
}

/// A pod takes from the quota until it has finished, or should be gone and nobody says that it is.
fn counts(pod: &Pod, now: Timestamp) -> bool {
    let meta = &pod.metadata;
    let overdue = match (&meta.deletion_timestamp, meta.deletion_grace_period_seconds) {
        (Some(at), Some(grace)) => at.0 + SignedDuration::from_secs(grace) < now,
        _ => false,
    };
    !pod::is_terminal(pod) && !overdue
}

fn requested(claim: &PersistentVolumeClaim) -> i128 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let asked = milli_value(requests.and_then(|requests| requests.get("storage")));
    let allocated = claim.status.as_ref().and_then(|status| status.allocated_resources.as_ref());
    // A claim that grows is charged for what it already got.
    asked.max(milli_value(allocated.and_then(|allocated| allocated.get("storage"))))
}

fn of_class(resource: &str, claims: &[&PersistentVolumeClaim]) -> i128 {
    let Some((class, what)) = resource.split_once(CLASS_SUFFIX) else { return 0 };
    let of_class = claims.iter().filter(|claim| {
        claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) == Some(class)
    });
    match what {
        "requests.storage" => of_class.map(|claim| requested(claim)).sum(),
        "persistentvolumeclaims" => units(of_class.count()),
        _ => 0,
    }
}

fn service_type(service: &Service) -> &str {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()).unwrap_or_default()
}

fn node_ports(service: &Service) -> i128 {
    let Some(spec) = &service.spec else { return 0 };
    let ports = spec.ports.as_deref().unwrap_or_default();
    match service_type(service) {
        "LoadBalancer" if spec.allocate_load_balancer_node_ports == Some(false) => {
            units(ports.iter().filter(|port| port.node_port.is_some_and(|number| number != 0)).count())
        }
        "NodePort" | "LoadBalancer" => units(ports.len()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-08-01T00:00:00Z".parse().unwrap()
    }

    fn quota(spec: &Value) -> ResourceQuota {
        serde_json::from_value(json!({"metadata": {"name": "q"}, "spec": spec})).unwrap()
    }

    fn pod(spec: &Value, status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec, "status": status})).unwrap()
    }

    fn used_text(spec: &Value, contents: &Contents) -> Value {
        serde_json::to_value(used(&quota(spec), contents, now())).unwrap()
    }

    #[test]
    fn a_finished_pod_is_an_object_but_no_longer_a_pod() {
        let done = pod(&json!({"containers": []}), &json!({"phase": "Succeeded"}));
        let mut contents = Contents { pods: vec![done], ..Contents::default() };
        let deployments = Counted { plural: "deployments".into(), group: "apps".into() };
        contents.counts.insert(deployments, 1);
        let spec = json!({"hard": {"count/deployments.apps": "1", "count/pods": "2", "pods": "1"}});
        assert_eq!(
            used_text(&spec, &contents),
            json!({"count/deployments.apps": "1", "count/pods": "1", "pods": "0"})
        );
    }

    #[test]
    fn compute_is_summed_in_the_notation_of_the_resource() {
        let container = |cpu: &str, memory: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": "1Gi"}}});
        let a = pod(&json!({"containers": [container("100m", "512Mi")]}), &json!({}));
        let b = pod(&json!({"containers": [container("900m", "512Mi")]}), &json!({"phase": "Running"}));
        let contents = Contents { pods: vec![a, b], ..Contents::default() };
        let spec = json!({"hard": {"requests.cpu": "4", "memory": "8Gi", "limits.memory": "8Gi", "limits.cpu": "1"}});
        assert_eq!(
            used_text(&spec, &contents),
            json!({"requests.cpu": "1", "memory": "1Gi", "limits.memory": "2Gi", "limits.cpu": "0"})
        );
    }

    #[test]
    fn scopes_leave_other_pods_and_other_kinds_out() {
        let best_effort = pod(&json!({"containers": [{"name": "c"}]}), &json!({}));
        let short = pod(&json!({"containers": [{"name": "c"}], "activeDeadlineSeconds": 5}), &json!({}));
        let mut contents = Contents { pods: vec![best_effort, short], ..Contents::default() };
        contents.counts.insert(Counted { plural: "secrets".into(), group: String::new() }, 4);
        let spec = json!({"hard": {"pods": "5", "secrets": "5"}, "scopes": ["NotTerminating"]});
        assert_eq!(used_text(&spec, &contents), json!({"pods": "1", "secrets": "0"}));
    }

    #[test]
    fn claims_are_summed_over_all_and_by_class() {
        let claim = |class: &str, size: &str| -> PersistentVolumeClaim {
            serde_json::from_value(json!({
                "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}},
            }))
            .unwrap()
        };
        let contents =
            Contents { claims: vec![claim("gold", "1Gi"), claim("tin", "2Gi")], ..Contents::default() };
        let spec = json!({"hard": {
            "requests.storage": "9Gi", "persistentvolumeclaims": "9",
            "gold.storageclass.storage.k8s.io/requests.storage": "9Gi",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "9",
        }});
        assert_eq!(
            used_text(&spec, &contents),
            json!({
                "requests.storage": "3Gi", "persistentvolumeclaims": "2",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            })
        );
    }

    #[test]
    fn services_are_counted_by_what_they_take() {
        let service = |kind: &str| -> Service {
            serde_json::from_value(json!({"spec": {"type": kind, "ports": [{"port": 1}, {"port": 2}]}}))
                .unwrap()
        };
        let contents = Contents {
            services: ["ClusterIP", "NodePort", "LoadBalancer"].map(service).into(),
            ..Contents::default()
        };
        let spec = json!({"hard": {"services.nodeports": "9", "services.loadbalancers": "9"}});
        assert_eq!(
            used_text(&spec, &contents),
            json!({"services.nodeports": "4", "services.loadbalancers": "1"})
        );
    }

    #[test]
    fn a_quota_is_written_once() {
        let mut held = quota(&json!({"hard": {"pods": "1"}}));
        let contents = Contents::default();
        held.status = plan(&held, &contents, now());
        assert!(held.status.is_some());
        assert_eq!(plan(&held, &contents, now()), None);
        assert!(tracked(&held).contains(&Counted { plural: "pods".into(), group: String::new() }));
    }
}
