//! Outcomes of the built-in controllers, compared with the real ones: each test runs in process and, where
//! the programs are installed, on kube-apiserver with kube-controller-manager.
#![cfg(feature = "real")]

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::Job,
    core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, ResourceQuota},
    policy::v1::PodDisruptionBudget,
    rbac::v1::ClusterRole,
};
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams},
};
use kubewright_cluster::{Cluster, HarnessError};
use serde_json::{Value, json};

type Outcome = Result<(), HarnessError>;

/// A workload of `nginx` with further fields in its spec.
fn workload(kind: &str, name: &str, more: Value) -> Value {
    let api = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let pod = json!({"containers": [{"name": "c", "image": "nginx:1"}]});
    let mut spec = json!({"template": {"metadata": {"labels": {"app": name}}, "spec": pod}});
    if kind == "Job" {
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
    } else {
        spec["selector"] = json!({"matchLabels": {"app": name}});
    }
    let Value::Object(more) = more else { panic!("a spec is an object") };
    for (key, value) in more {
        spec[key] = value;
    }
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The true conditions in order, each with its reason.
fn true_conditions(conditions: &Value) -> Vec<String> {
    let text = |condition: &Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    let holds = conditions.as_array().into_iter().flatten().filter(|condition| condition["status"] == "True");
    holds.map(|condition| format!("{} {}", text(condition, "type"), text(condition, "reason"))).collect()
}

async fn all<K>(cluster: &Cluster) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api = Api::<K>::namespaced(cluster.client(), "default");
    api.list(&ListParams::default()).await.expect("it is listed").items
}

#[kubewright_cluster::test(real)]
async fn a_rolling_update_ends_with_one_set_of_pods_and_a_second_revision(cluster: Cluster) -> Outcome {
    let mut web = workload("Deployment", "web", json!({"replicas": 3}));
    cluster.apply(web.to_string()).await?;
    cluster.settled().await?;
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    cluster.apply(web.to_string()).await?;
    cluster.settled().await?;

    let mut sets: BTreeMap<String, (Option<i32>, Option<i32>)> = BTreeMap::new();
    for set in all::<ReplicaSet>(&cluster).await {
        let revision =
            set.metadata.annotations.unwrap_or_default()["deployment.kubernetes.io/revision"].clone();
        let ready = set.status.and_then(|status| status.ready_replicas);
        sets.insert(revision, (set.spec.replicas, ready));
    }
    assert_eq!(sets, BTreeMap::from([("1".into(), (Some(0), None)), ("2".into(), (Some(3), Some(3)))]));
    let web: Deployment = cluster.get("default/web").await?;
    let status = web.status.unwrap_or_default();
    assert_eq!(status.observed_generation, web.metadata.generation);
    assert_eq!((status.updated_replicas, status.available_replicas), (Some(3), Some(3)));
    let conditions = true_conditions(&json!(status.conditions));
    assert_eq!(conditions, ["Available MinimumReplicasAvailable", "Progressing NewReplicaSetAvailable"]);
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_job_completes_or_fails_at_its_backoff_limit(cluster: Cluster) -> Outcome {
    cluster.apply(workload("Job", "good", json!({"completions": 3, "parallelism": 2})).to_string()).await?;
    let mut bad = workload("Job", "bad", json!({"backoffLimit": 0}));
    bad["spec"]["template"]["metadata"]["annotations"] = json!({"sim.kubewright.dev/exit-code": "3"});
    cluster.apply(bad.to_string()).await?;
    let ended = async |cluster: &Cluster, name: &str| {
        let job: Job = cluster.get(name).await?;
        let conditions = job.status.clone().unwrap_or_default().conditions.unwrap_or_default();
        let over =
            conditions.iter().any(|c| c.status == "True" && (c.type_ == "Complete" || c.type_ == "Failed"));
        Ok::<_, HarnessError>(over.then_some((job.status.unwrap_or_default(), conditions)))
    };
    let good = cluster.eventually("the good job ends", async |c| ended(c, "default/good").await);
    let (status, conditions) = good.await?;
    assert_eq!((status.succeeded, status.failed), (Some(3), None));
    let expected = ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"];
    assert_eq!(true_conditions(&json!(conditions)), expected);
    let bad = cluster.eventually("the bad job ends", async |c| ended(c, "default/bad").await);
    let (status, conditions) = bad.await?;
    assert_eq!((status.succeeded, status.failed), (None, Some(1)));
    let expected = ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"];
    assert_eq!(true_conditions(&json!(conditions)), expected);
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_finished_job_is_deleted_with_its_pods_after_its_ttl(cluster: Cluster) -> Outcome {
    cluster.apply(workload("Job", "brief", json!({"ttlSecondsAfterFinished": 0})).to_string()).await?;
    cluster
        .eventually("the job is gone", async |cluster| {
            Ok(cluster.find::<Job>("default/brief").await?.is_none().then_some(()))
        })
        .await?;
    cluster.settled().await?;
    assert!(all::<Pod>(&cluster).await.is_empty());
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn claims_are_deleted_as_the_retention_policy_says(cluster: Cluster) -> Outcome {
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut db = workload(
        "StatefulSet",
        "db",
        json!({
            "replicas": 2, "serviceName": "db", "volumeClaimTemplates": [claim],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        }),
    );
    let claims = async |cluster: &Cluster| -> Vec<String> {
        all::<PersistentVolumeClaim>(cluster)
            .await
            .into_iter()
            .filter_map(|claim| claim.metadata.name)
            .collect()
    };
    cluster.apply(db.to_string()).await?;
    cluster.settled().await?;
    assert_eq!(claims(&cluster).await, ["data-db-0", "data-db-1"]);
    db["spec"]["replicas"] = json!(1);
    cluster.apply(db.to_string()).await?;
    cluster.settled().await?;
    assert_eq!(claims(&cluster).await, ["data-db-0"]);
    cluster.delete::<StatefulSet>("default/db").await?;
    cluster.settled().await?;
    assert!(claims(&cluster).await.is_empty());
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn every_node_runs_a_daemon_pod(cluster: Cluster) -> Outcome {
    cluster.apply(workload("DaemonSet", "agent", json!({})).to_string()).await?;
    cluster.settled().await?;
    let agent: DaemonSet = cluster.get("default/agent").await?;
    let status = agent.status.unwrap_or_default();
    assert_eq!((status.desired_number_scheduled, status.number_ready), (3, 3));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn orphans_are_kept_and_foreground_deletion_waits_for_dependents(cluster: Cluster) -> Outcome {
    for name in ["kept", "gone"] {
        cluster.apply(workload("Deployment", name, json!({"replicas": 1})).to_string()).await?;
    }
    cluster.settled().await?;
    let api = Api::<Deployment>::namespaced(cluster.client(), "default");
    api.delete("kept", &DeleteParams::orphan()).await.expect("it is deleted");
    api.delete("gone", &DeleteParams::foreground()).await.expect("it is deleted");
    cluster.settled().await?;
    assert!(all::<Deployment>(&cluster).await.is_empty());
    let sets = all::<ReplicaSet>(&cluster).await;
    assert_eq!(sets.len(), 1);
    assert!(sets[0].metadata.name.as_deref().unwrap_or_default().starts_with("kept-"));
    assert_eq!(sets[0].metadata.owner_references, None);
    assert_eq!(all::<Pod>(&cluster).await.len(), 1, "and so is its pod");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn budgets_and_quotas_have_the_same_status(cluster: Cluster) -> Outcome {
    cluster
        .apply(
            "
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},
 spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: all}, spec: {hard: {pods: '10', count/configmaps: '5', services: '1'}}}
",
        )
        .await?;
    // Objects created before the first sync are not counted by admission, and by the real controller only
    // minutes later.
    cluster.settled().await?;
    cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await?;
    cluster.apply(workload("Deployment", "web", json!({"replicas": 3})).to_string()).await?;
    cluster.settled().await?;
    let budget: PodDisruptionBudget = cluster.get("default/web").await?;
    let status = json!(budget.status);
    let counts =
        ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"].map(|key| &status[key]);
    assert_eq!(counts, [3, 3, 2, 1].map(Value::from).each_ref());
    assert_eq!(true_conditions(&status["conditions"]), ["DisruptionAllowed SufficientPods"]);
    let used = cluster
        .eventually("the quota has counted", async |cluster| {
            let quota: ResourceQuota = cluster.get("default/all").await?;
            let used = quota.status.and_then(|status| status.used).unwrap_or_default();
            let used: BTreeMap<String, String> =
                used.into_iter().map(|(name, amount)| (name, amount.0)).collect();
            Ok((used.get("pods").map(String::as_str) == Some("3")).then_some(used))
        })
        .await?;
    // Each namespace has the ConfigMap of the server's certificate, and this one the Service of the server.
    assert_eq!((used["count/configmaps"].as_str(), used["services"].as_str()), ("2", "1"));
    Ok(())
}

#[kubewright_cluster::test(real, nodes = 0)]
async fn an_aggregated_role_has_the_rules_of_the_selected_roles(cluster: Cluster) -> Outcome {
    let role = |name: &str, label: &str, resource: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": name, "labels": {"part": label}},
               "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]})
    };
    let sum = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "sum"},
                     "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    for object in [role("b", "yes", "secrets"), role("a", "yes", "pods"), role("c", "no", "nodes"), sum] {
        cluster.apply(object.to_string()).await?;
    }
    cluster.settled().await?;
    let sum: ClusterRole = cluster.get("sum").await?;
    let resources: Vec<_> =
        sum.rules.into_iter().flatten().filter_map(|rule| rule.resources).flatten().collect();
    assert_eq!(resources, ["pods", "secrets"]);
    Ok(())
}

#[kubewright_cluster::test(real, nodes = 0)]
async fn a_namespace_is_deleted_with_its_content(cluster: Cluster) -> Outcome {
    cluster
        .apply(
            "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: shop}}
",
        )
        .await?;
    cluster.settled().await?;
    assert!(cluster.find::<ConfigMap>("shop/kube-root-ca.crt").await?.is_some());
    cluster.delete::<Namespace>("shop").await?;
    cluster.settled().await?;
    assert!(cluster.find::<Namespace>("shop").await?.is_none());
    assert!(cluster.find::<ConfigMap>("shop/a").await?.is_none());
    Ok(())
}

/// Names contain hashes of templates, which differ between releases of the real controller.
#[kubewright_cluster::test(real, nodes = 1)]
async fn sets_and_revisions_have_the_same_names(cluster: Cluster) -> Outcome {
    let resources = json!({"requests": {"cpu": "0.1", "memory": "64Mi"}, "limits": {"memory": "1Gi"}});
    let probe = json!({"httpGet": {"port": "http"}});
    let pod = json!({
        "containers": [{
            "name": "c", "image": "nginx:1", "args": ["<a> & b"], "resources": resources, "readinessProbe": probe,
            "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "100Ti"}}],
        "tolerations": [{"operator": "Exists"}],
    });
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        cluster.apply(&workload(kind, "plain", json!({})).to_string()).await?;
        let template = json!({"metadata": {"labels": {"app": "rich"}}, "spec": pod});
        cluster.apply(&workload(kind, "rich", json!({"template": template})).to_string()).await?;
    }
    cluster.settled().await?;
    let names = |metas: Vec<kube::core::ObjectMeta>| {
        let mut names: Vec<String> = metas.into_iter().filter_map(|meta| meta.name).collect();
        names.sort();
        names
    };
    let sets = all::<ReplicaSet>(&cluster).await.into_iter().map(|set| set.metadata).collect();
    let revisions = all::<ControllerRevision>(&cluster).await.into_iter().map(|set| set.metadata).collect();
    assert_eq!(names(sets), ["plain-9b698457d", "rich-664bd988bd"]);
    let wanted = ["plain-58bdfd9865", "plain-9b698457d", "rich-664bd988bd", "rich-79b87848b8"];
    assert_eq!(names(revisions), wanted);
    Ok(())
}
