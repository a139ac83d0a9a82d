//! Guarantees of the cloud manager, each tested on a cluster of its own.

mod support;

use cloud_manager::CloudManager;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, StatefulSet},
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret},
};
use kube::api::PropagationPolicy;
use kubewright::Result;
use kubewright_cluster::Cluster;
use serde_json::json;
use support::*;

#[kubewright_cluster::test(real)]
async fn a_cloud_manager_has_all_parts_and_becomes_ready(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;

    assert_eq!(phase(&cluster).await?, "ready");
    let front: Deployment = cluster.get("default/ake-front").await?;
    let identity: Deployment = cluster.get("default/cm-identity").await?;
    let secret: Secret = cluster.get("default/cm-dbauth").await?;
    let db: StatefulSet = cluster.get("default/cm-db").await?;
    assert_eq!((image(&front), image(&identity)), (Some("nginx:1.20"), Some("busybox:1.32.1")));
    let command = identity.spec.template.spec.as_ref().unwrap().containers[0].command.clone().unwrap();
    assert_eq!(command, ["/bin/sh", "-c", "sleep 60m"]);
    let data = secret.data.as_ref().unwrap();
    assert_eq!((&*data["username"].0, &*data["password"].0), (&b"root"[..], &b"123456"[..]));
    for owned in [is_ours(&cluster, &front), is_ours(&cluster, &identity)] {
        assert!(owned.await?);
    }
    assert!(is_ours(&cluster, &secret).await? && is_ours(&cluster, &db).await?);

    let server = &db.spec.template.spec.as_ref().unwrap().containers[0];
    let password = &server.env.as_ref().unwrap()[0];
    assert_eq!(password.name, "MARIADB_ROOT_PASSWORD");
    let from = password.value_from.as_ref().unwrap().secret_key_ref.as_ref().unwrap();
    assert_eq!((&*from.name, &*from.key), ("cm-dbauth", "password"));
    let claim: PersistentVolumeClaim = cluster.get("default/datadir-cm-db-0").await?;
    assert!(is_ours(&cluster, &claim).await?, "it is deleted with the CloudManager, not with the set");
    let asked = claim.spec.as_ref().unwrap();
    assert_eq!(asked.storage_class_name.as_deref(), Some("local-path"));
    assert_eq!(asked.access_modes.as_deref(), Some(&["ReadWriteOnce".to_owned()][..]));
    assert_eq!(asked.resources.as_ref().unwrap().requests.as_ref().unwrap()["storage"].0, "20Gi");
    assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));

    let expected = ("CloudManager".into(), "Updated".into(), "Update cm.status.phase: ready".into());
    assert!(events(&cluster).await?.contains(&expected));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn each_part_waits_until_the_one_before_is_ready(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    // One Pod at a time: a part without a Pod does not become ready.
    allow_pods(&cluster, 1).await?;
    cluster.apply(SAMPLE).await?;
    let identity = async |cluster: &Cluster| cluster.find::<Deployment>("default/cm-identity").await;
    cluster.eventually("the front is ready and the identity service made", identity).await?;
    cluster.settled().await?;
    assert!(cluster.find::<Secret>("default/cm-dbauth").await?.is_none());
    assert!(cluster.find::<StatefulSet>("default/cm-db").await?.is_none());

    allow_pods(&cluster, 2).await?;
    let db = async |cluster: &Cluster| cluster.find::<StatefulSet>("default/cm-db").await;
    cluster.eventually("the identity service is ready and the database made", db).await?;
    cluster.settled().await?;
    assert_eq!(phase(&cluster).await?, "");

    allow_pods(&cluster, 3).await?;
    until_ready(&cluster).await
}

#[kubewright_cluster::test(nodes = 0)]
async fn no_part_is_created_after_a_front_that_does_not_become_ready(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(SAMPLE).await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, ["ake-front"]);
    assert_eq!(names::<StatefulSet>(&cluster).await?, [""; 0]);
    assert_eq!(phase(&cluster).await?, "");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn the_parts_follow_the_images_and_the_password(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    patch_spec(
        &cluster,
        json!({
            "front": {"deployment": {"image": "nginx:1.27"}},
            "db": {"statefulSet": {"image": "mariadb:11"}, "rootPass": "correct horse"},
        }),
    )
    .await?;
    cluster.settled().await?;

    assert_eq!(image(&cluster.get("default/ake-front").await?), Some("nginx:1.27"));
    let secret: Secret = cluster.get("default/cm-dbauth").await?;
    assert_eq!(secret.data.unwrap()["password"].0, b"correct horse");
    let pod: Pod = cluster.get("default/cm-db-0").await?;
    assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("mariadb:11"));
    assert_eq!(phase(&cluster).await?, "ready");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn renamed_parts_are_recreated_and_the_old_ones_deleted(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    patch_spec(
        &cluster,
        json!({
            "front": {"deployment": {"name": "web"}},
            "db": {"statefulSet": {"name": "maria"}},
        }),
    )
    .await?;
    cluster.settled().await?;

    assert_eq!(names::<Deployment>(&cluster).await?, ["cm-identity", "web"]);
    assert_eq!(names::<StatefulSet>(&cluster).await?, ["maria"]);
    let secrets = names::<Secret>(&cluster).await?;
    assert!(secrets.contains(&"mariaauth".into()) && !secrets.contains(&"cm-dbauth".into()), "{secrets:?}");
    let recorded = events(&cluster).await?;
    for message in [
        r#"Deleted deployment "ake-front""#,
        r#"Deleted statefulSet "cm-db""#,
        r#"Deleted secret "cm-dbauth""#,
    ] {
        assert!(
            recorded.contains(&("CloudManager".into(), "Deleted".into(), message.into())),
            "{message}: {recorded:?}"
        );
    }
    let claims = names::<PersistentVolumeClaim>(&cluster).await?;
    assert_eq!(claims, ["datadir-cm-db-0", "datadir-maria-0"], "data survive a rename");
    assert_eq!(phase(&cluster).await?, "ready");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn only_its_own_children_are_cleaned_up(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(SAMPLE).await?;
    let other = SAMPLE
        .replace("cloudmanager-sample", "other")
        .replace("ake-front", "other-front")
        .replace("cm-identity", "other-identity")
        .replace("cm-db", "other-db");
    cluster.apply(other.as_str()).await?;
    cluster.apply(include_str!("foreign.yaml")).await?;
    cluster.settled().await?;
    patch_spec(&cluster, json!({"front": {"deployment": {"name": "web"}}})).await?;
    cluster.settled().await?;
    let deployments = names::<Deployment>(&cluster).await?;
    assert_eq!(deployments, ["cm-identity", "other-front", "other-identity", "theirs", "web"]);
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_deleted_cloud_manager_deletes_its_parts_with_every_propagation_policy(
    cluster: Cluster,
) -> Result<()> {
    let _operator = started(&cluster).await?;
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        cluster.apply(SAMPLE).await?;
        cluster.settled().await?;
        delete::<CloudManager>(&cluster, "cloudmanager-sample", how.clone()).await?;
        until_none::<Pod>(&cluster).await?;
        until_none::<PersistentVolumeClaim>(&cluster).await?;
        cluster.settled().await?;
        assert!(cluster.find::<CloudManager>("default/cloudmanager-sample").await?.is_none(), "{how:?}");
        assert_eq!(names::<Deployment>(&cluster).await?, [""; 0], "{how:?}");
        assert_eq!(names::<StatefulSet>(&cluster).await?, [""; 0], "{how:?}");
        assert_eq!(names::<Pod>(&cluster).await?, [""; 0], "{how:?}");
        assert_eq!(names::<PersistentVolumeClaim>(&cluster).await?, [""; 0], "{how:?}");
        assert!(cluster.find::<Secret>("default/cm-dbauth").await?.is_none(), "{how:?}");
    }
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn deleted_parts_are_recreated(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    let first = cluster.get::<StatefulSet>("default/cm-db").await?.metadata.uid;
    cluster.delete::<Deployment>("default/ake-front").await?;
    cluster.delete::<Deployment>("default/cm-identity").await?;
    cluster.delete::<Secret>("default/cm-dbauth").await?;
    cluster.delete::<StatefulSet>("default/cm-db").await?;
    cluster.settled().await?;

    assert_eq!(names::<Deployment>(&cluster).await?, ["ake-front", "cm-identity"]);
    assert!(cluster.find::<Secret>("default/cm-dbauth").await?.is_some());
    let db: StatefulSet = cluster.get("default/cm-db").await?;
    assert_ne!(db.metadata.uid, first);
    assert_eq!(db.status.unwrap().ready_replicas, Some(1));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn changed_parts_are_restored(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    let containers = json!([{"name": "front-container", "image": "httpd:2"}]);
    let meddle = json!({"spec": {"replicas": 3, "template": {"spec": {"containers": containers}}}});
    patch::<Deployment>(&cluster, "ake-front", meddle).await?;
    patch::<Secret>(&cluster, "cm-dbauth", json!({"data": {"password": "b29wcw==", "extra": "eA=="}}))
        .await?;
    cluster.settled().await?;

    let front: Deployment = cluster.get("default/ake-front").await?;
    assert_eq!(image(&front), Some("nginx:1.20"));
    assert_eq!(front.spec.replicas, Some(3), "replicas are not part of the spec");
    let data = cluster.get::<Secret>("default/cm-dbauth").await?.data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["password", "username"]);
    assert_eq!(data["password"].0, b"123456");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_part_of_another_controller_is_waited_for(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    let owner = "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner, namespace: default}}";
    cluster.apply(owner).await?;
    let uid = cluster.get::<ConfigMap>("default/owner").await?.metadata.uid.unwrap();
    let foreign =
        include_str!("foreign.yaml").replace("name: theirs\n  namespace", "name: cm-identity\n  namespace");
    cluster.apply(foreign.as_str()).await?;
    let owners = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": true,
    }]);
    patch::<Deployment>(&cluster, "cm-identity", json!({"metadata": {"ownerReferences": owners}})).await?;
    cluster.apply(SAMPLE).await?;
    cluster.settled().await?;

    assert_eq!(image(&cluster.get("default/cm-identity").await?), Some("theirs:1"));
    assert!(cluster.find::<Deployment>("default/ake-front").await?.is_some(), "the part before exists");
    assert!(cluster.find::<StatefulSet>("default/cm-db").await?.is_none(), "the part after does not");
    assert_eq!(phase(&cluster).await?, "");

    cluster.delete::<Deployment>("default/cm-identity").await?;
    until_ready(&cluster).await?;
    assert_eq!(image(&cluster.get("default/cm-identity").await?), Some("busybox:1.32.1"));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_part_without_a_controller_is_adopted(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    let foreign =
        include_str!("foreign.yaml").replace("name: theirs\n  namespace", "name: ake-front\n  namespace");
    cluster.apply(foreign.as_str()).await?;
    cluster.apply(SAMPLE).await?;
    until_ready(&cluster).await?;
    cluster.settled().await?;
    let front: Deployment = cluster.get("default/ake-front").await?;
    assert!(is_ours(&cluster, &front).await?);
    assert_eq!(phase(&cluster).await?, "ready");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_part_whose_owner_is_removed_is_adopted_again(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    let before = parts(&cluster).await?;
    let orphan = || json!({"metadata": {"ownerReferences": null}});
    patch::<Deployment>(&cluster, "ake-front", orphan()).await?;
    patch::<Secret>(&cluster, "cm-dbauth", orphan()).await?;
    cluster.settled().await?;
    assert!(is_ours(&cluster, &cluster.get::<Deployment>("default/ake-front").await?).await?);
    assert!(is_ours(&cluster, &cluster.get::<Secret>("default/cm-dbauth").await?).await?);
    assert_eq!(parts(&cluster).await?, before, "they are the same objects");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn changes_made_while_it_was_not_running_are_reconciled(cluster: Cluster) -> Result<()> {
    let operator = started_with_sample(&cluster).await?;
    drop(operator);
    cluster.delete::<Secret>("default/cm-dbauth").await?;
    let containers = json!([{"name": "front-container", "image": "httpd:2"}]);
    patch::<Deployment>(
        &cluster,
        "ake-front",
        json!({"spec": {"template": {"spec": {"containers": containers}}}}),
    )
    .await?;
    patch_spec(&cluster, json!({"identity": {"deployment": {"name": "renamed"}}})).await?;

    let _next = started(&cluster).await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, ["ake-front", "renamed"]);
    assert_eq!(image(&cluster.get("default/ake-front").await?), Some("nginx:1.20"));
    assert!(cluster.find::<Secret>("default/cm-dbauth").await?.is_some());
    assert_eq!(phase(&cluster).await?, "ready");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn nothing_is_written_without_a_change(cluster: Cluster) -> Result<()> {
    let _operator = started_with_sample(&cluster).await?;
    let manager: CloudManager = cluster.get("default/cloudmanager-sample").await?;
    let front: Deployment = cluster.get("default/ake-front").await?;
    let db: StatefulSet = cluster.get("default/cm-db").await?;
    assert_eq!((front.metadata.generation, db.metadata.generation), (Some(1), Some(1)), "written once");
    // Triggers another reconcile by a change without effect.
    let note = json!({"metadata": {"labels": {"note": "read"}}});
    patch::<CloudManager>(&cluster, "cloudmanager-sample", note).await?;
    cluster.settled().await?;
    let again: CloudManager = cluster.get("default/cloudmanager-sample").await?;
    assert_eq!(again.status, manager.status);
    let after: Deployment = cluster.get("default/ake-front").await?;
    assert_eq!(after.metadata.resource_version, front.metadata.resource_version);
    let after: StatefulSet = cluster.get("default/cm-db").await?;
    assert_eq!(after.metadata.resource_version, db.metadata.resource_version);
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn the_work_of_an_operator_that_crashed_before_the_database_is_completed_by_the_next(
    cluster: Cluster,
) -> Result<()> {
    let operator = started_for(&cluster, 3).await?;
    cluster.apply(SAMPLE).await?;
    let secret = async |cluster: &Cluster| cluster.find::<Secret>("default/cm-dbauth").await;
    cluster.eventually("the password is there", secret).await?;
    drop(operator);
    let made = parts(&cluster).await?;
    assert_eq!(made.len(), 3);

    let _next = started(&cluster).await?;
    until_ready(&cluster).await?;
    let all = parts(&cluster).await?;
    assert!(all.len() == 4 && made.is_subset(&all), "{made:?} of {all:?}");
    Ok(())
}

#[kubewright_cluster::test]
async fn the_work_of_an_operator_that_crashed_between_writes_is_completed_by_the_next(
    cluster: Cluster,
) -> Result<()> {
    // Two Deployments, a Secret, a StatefulSet, the status: crashes before each, and after the last.
    for writes in 0..=5 {
        let operator = started_for(&cluster, writes).await?;
        cluster.apply(SAMPLE).await?;
        cluster.settled().await?;
        drop(operator);
        let made = parts(&cluster).await?;
        assert_eq!(made.len(), writes.min(4) as usize, "killed after {writes} writes");

        let next = started(&cluster).await?;
        until_ready(&cluster).await?;
        cluster.settled().await?;
        let all = parts(&cluster).await?;
        assert!(all.len() == 4 && made.is_subset(&all), "killed after {writes} writes: {made:?} of {all:?}");
        assert_eq!(names::<ReplicaSet>(&cluster).await?.len(), 2, "nothing was rolled out twice");
        cluster.delete::<CloudManager>("default/cloudmanager-sample").await?; // and start over
        cluster.settled().await?;
        next.stop().await?;
    }
    Ok(())
}

#[kubewright_cluster::test]
async fn a_rename_that_a_crash_interrupted_is_completed_by_the_next_operator(cluster: Cluster) -> Result<()> {
    let first = started_with_sample(&cluster).await?;
    first.stop().await?;
    // Three deletions, then a Deployment, a Secret and a StatefulSet; the names alternate.
    for writes in 0..=6 {
        let (front, db) = (format!("front-{writes}"), format!("db-{writes}"));
        let operator = started_for(&cluster, writes).await?;
        let names_of = json!({
            "front": {"deployment": {"name": front}},
            "db": {"statefulSet": {"name": db}},
        });
        patch_spec(&cluster, names_of).await?;
        cluster.settled().await?;
        drop(operator);

        let next = started(&cluster).await?;
        cluster.settled().await?;
        assert_eq!(names::<Deployment>(&cluster).await?, ["cm-identity", &front], "after {writes} writes");
        assert_eq!(names::<StatefulSet>(&cluster).await?, [db.as_str()], "after {writes} writes");
        let secrets = names::<Secret>(&cluster).await?;
        assert!(secrets.contains(&format!("{db}auth")), "after {writes} writes: {secrets:?}");
        assert_eq!(phase(&cluster).await?, "ready", "after {writes} writes");
        next.stop().await?;
    }
    Ok(())
}
