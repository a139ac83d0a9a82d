//! Lifecycle controllers of a cluster in virtual time.

use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{
        ConfigMap, Event, Namespace, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
    },
    rbac::v1::ClusterRole,
};
use kubewright_cluster::{Cluster, HarnessError};

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn cluster() -> Cluster {
    let start = "2026-08-01T00:00:00Z".parse().expect("a time");
    Cluster::builder().virtual_time(start).start().await.expect("a cluster starts")
}

fn config_map(name: &str, owner: Option<(&str, &str, &str)>) -> String {
    let owners = owner.map_or(String::new(), |(kind, name, uid)| {
        format!("\n  ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {name}, uid: {uid}}}]")
    });
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: default{owners}\n")
}

fn uid_of(object: &impl kube::Resource) -> String {
    object.meta().uid.clone().expect("objects of the server have a uid")
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_owners_is_collected_from_the_top() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(&config_map("a", None)).await?;
    for (name, above) in [("b", "a"), ("c", "b"), ("d", "c")] {
        let owner: ConfigMap = cluster.get(&format!("default/{above}")).await?;
        cluster.apply(&config_map(name, Some(("ConfigMap", above, &uid_of(&owner))))).await?;
    }
    cluster.settled().await?;
    assert!(cluster.find::<ConfigMap>("default/d").await?.is_some());
    cluster.delete::<ConfigMap>("default/a").await?;
    cluster.settled().await?;
    for name in ["b", "c", "d"] {
        assert!(cluster.find::<ConfigMap>(&format!("default/{name}")).await?.is_none(), "{name}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_existed_is_collected() -> Outcome {
    let cluster = cluster().await;
    cluster
        .apply(&config_map("lost", Some(("Secret", "none", "11111111-2222-3333-4444-555555555555"))))
        .await?;
    cluster.settled().await?;
    assert!(cluster.find::<ConfigMap>("default/lost").await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_an_unserved_kind_keeps_its_dependents() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(&config_map("kept", Some(("Widget", "w", "11111111-2222-3333-4444-555555555555")))).await?;
    cluster.advance(Duration::from_mins(10)).await;
    assert!(cluster.find::<ConfigMap>("default/kept").await?.is_some(), "its owner may exist");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_deleted_with_its_content_and_can_be_recreated() -> Outcome {
    let cluster = cluster().await;
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
    cluster.apply(namespace).await?;
    cluster.apply("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}").await?;
    cluster.apply("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}").await?;
    cluster.settled().await?;
    let first: Namespace = cluster.get("shop").await?;
    cluster.delete::<Namespace>("shop").await?;
    cluster.settled().await?;
    assert!(cluster.find::<Namespace>("shop").await?.is_none());
    cluster.apply(namespace).await?;
    cluster.settled().await?;
    let second: Namespace = cluster.get("shop").await?;
    assert_ne!(uid_of(&first), uid_of(&second));
    assert!(cluster.find::<Secret>("shop/s").await?.is_none());
    assert!(cluster.find::<ServiceAccount>("shop/default").await?.is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_default_service_account_is_recreated() -> Outcome {
    let cluster = cluster().await;
    cluster.settled().await?;
    let before: ServiceAccount = cluster.get("default/default").await?;
    cluster.delete::<ServiceAccount>("default/default").await?;
    cluster.settled().await?;
    let after: ServiceAccount = cluster.get("default/default").await?;
    assert_ne!(uid_of(&before), uid_of(&after));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_token_secret_authenticates_until_it_is_deleted() -> Outcome {
    let cluster = cluster().await;
    cluster
        .apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: default}}")
        .await?;
    cluster
        .apply(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: tok\n  namespace: default\n  annotations:\n    \
             kubernetes.io/service-account.name: robot\ntype: kubernetes.io/service-account-token\n",
        )
        .await?;
    cluster.settled().await?;
    let secret: Secret = cluster.get("default/tok").await?;
    let token = String::from_utf8(secret.data.unwrap()["token"].0.clone())?;
    let registry = cluster.server().registry();
    let user = registry.authenticator.token(registry, &token).expect("the token is good");
    assert_eq!(user.name, "system:serviceaccount:default:robot");
    cluster.advance(Duration::from_hours(2)).await;
    assert!(registry.authenticator.token(registry, &token).is_some(), "it does not expire");
    cluster.delete::<Secret>("default/tok").await?;
    cluster.settled().await?;
    assert!(registry.authenticator.token(registry, &token).is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn rules_of_a_new_role_are_aggregated() -> Outcome {
    let cluster = cluster().await;
    cluster
        .apply(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: widgets-view\n  labels:\n    \
             rbac.authorization.k8s.io/aggregate-to-view: \"true\"\nrules:\n- apiGroups: [example.com]\n  \
             resources: [widgets]\n  verbs: [get, list, watch]\n",
        )
        .await?;
    cluster.settled().await?;
    let has = |role: &ClusterRole| {
        role.rules.iter().flatten().any(|rule| rule.resources.iter().flatten().any(|r| r == "widgets"))
    };
    assert!(has(&cluster.get::<ClusterRole>("view").await?));
    assert!(has(&cluster.get::<ClusterRole>("admin").await?), "through another aggregated role");
    cluster.delete::<ClusterRole>("widgets-view").await?;
    cluster.settled().await?;
    assert!(!has(&cluster.get::<ClusterRole>("admin").await?));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn events_are_deleted_after_an_hour() -> Outcome {
    let cluster = cluster().await;
    cluster
        .apply(
            "apiVersion: v1\nkind: Event\nmetadata: {name: e, namespace: default}\n\
             involvedObject: {kind: Pod, name: p, namespace: default}\nreason: Tested\nmessage: hello\ntype: Normal\n",
        )
        .await?;
    cluster.advance(Duration::from_mins(50)).await;
    assert!(cluster.find::<Event>("default/e").await?.is_some());
    cluster.advance(Duration::from_mins(15)).await;
    assert!(cluster.find::<Event>("default/e").await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_node_are_deleted() -> Outcome {
    let cluster = cluster().await;
    cluster
        .apply(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n\
             spec: {nodeName: nowhere, containers: [{name: c, image: nginx}]}\n",
        )
        .await?;
    cluster.advance(Duration::from_secs(30)).await;
    assert!(cluster.find::<Pod>("default/p").await?.is_some(), "the node may register late");
    cluster.advance(Duration::from_mins(2)).await;
    assert!(cluster.find::<Pod>("default/p").await?.is_none());
    Ok(())
}

const CLASS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gold}\n\
                     provisioner: example.com/disk\nreclaimPolicy: Delete\nvolumeBindingMode: ";
const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n\
                     spec: {accessModes: [ReadWriteOnce], storageClassName: gold, resources: {requests: {storage: 1Gi}}}\n";

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_to_a_provisioned_volume_and_deleted_with_it() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(&format!("{CLASS}Immediate\n")).await?;
    cluster.apply(CLAIM).await?;
    cluster.settled().await?;
    let claim: PersistentVolumeClaim = cluster.get("default/data").await?;
    assert_eq!(phase(&claim), "Bound");
    let condition = &claim.status.as_ref().unwrap().conditions.as_ref().unwrap()[0];
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("Unused", "True"));
    let name = claim.spec.unwrap().volume_name.unwrap();
    assert!(cluster.find::<PersistentVolume>(&name).await?.is_some());
    cluster.delete::<PersistentVolumeClaim>("default/data").await?;
    cluster.settled().await?;
    assert!(cluster.find::<PersistentVolumeClaim>("default/data").await?.is_none());
    assert!(cluster.find::<PersistentVolume>(&name).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_for_a_consumer_is_bound_when_its_pod_is_scheduled() -> Outcome {
    let cluster = cluster().await;
    cluster.apply(&format!("{CLASS}WaitForFirstConsumer\n")).await?;
    cluster.apply(CLAIM).await?;
    cluster.settled().await?;
    assert_eq!(phase(&cluster.get("default/data").await?), "Pending");
    cluster
        .apply("{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}}")
        .await?;
    cluster
        .apply(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec:\n  nodeName: n1\n  \
             containers: [{name: c, image: nginx}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n",
        )
        .await?;
    cluster.settled().await?;
    assert_eq!(phase(&cluster.get("default/data").await?), "Bound");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_error_names_a_missing_object() {
    let cluster = cluster().await;
    let error = cluster.get::<ConfigMap>("default/none").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no ConfigMap default/none");
    assert!(matches!(cluster.get::<ConfigMap>("a/b/c").await, Err(HarnessError::Key(_))));
    assert!(matches!(cluster.apply("kind: [").await, Err(HarnessError::Manifest(_))));
}
