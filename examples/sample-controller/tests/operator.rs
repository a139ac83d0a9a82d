//! Guarantees of the sample controller, each tested on a cluster of its own.

mod support;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::PropagationPolicy;
use kubewright::Result;
use kubewright_cluster::Cluster;
use sample_controller::Foo;
use serde_json::json;
use support::*;

#[kubewright_cluster::test(real)]
async fn a_foo_has_a_deployment_that_it_controls(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(include_str!("../config/samples/foo.yaml")).await?;
    cluster.settled().await?;

    let foo: Foo = cluster.get("default/example-foo").await?;
    assert_eq!(foo.status.as_ref().unwrap().available_replicas, 1);
    let deployment: Deployment = cluster.get("default/example-foo").await?;
    assert!(is_controlled_by(&deployment, &foo));
    assert_eq!(deployment.spec.replicas, Some(1));
    assert_eq!(image(&deployment), Some("nginx:latest"));
    let labels = deployment.spec.template.metadata.as_ref().unwrap().labels.clone().unwrap();
    assert_eq!(Some(&labels), deployment.spec.selector.match_labels.as_ref());
    assert_eq!((&*labels["app"], &*labels["controller"]), ("nginx", "example-foo"));
    let events = events(&cluster, "example-foo").await?;
    assert!(
        events.contains(&("Normal".into(), "Synced".into(), "Foo synced successfully".into())),
        "{events:?}"
    );
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn the_deployment_follows_the_replicas_of_its_foo(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    for replicas in [2, 5, 1] {
        cluster.apply(&foo("example-foo", "web", Some(replicas))).await?;
        cluster.settled().await?;
        assert_eq!(cluster.get::<Deployment>("default/web").await?.spec.replicas, Some(replicas));
        assert_eq!(available(&cluster, "example-foo").await?, Some(replicas));
    }
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_foo_without_replicas_leaves_scaling_to_other_clients(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", None)).await?;
    cluster.settled().await?;
    assert_eq!(available(&cluster, "example-foo").await?, Some(1), "the server's default");

    patch::<Deployment>(&cluster, "web", json!({"spec": {"replicas": 4}})).await?;
    cluster.settled().await?;
    assert_eq!(cluster.get::<Deployment>("default/web").await?.spec.replicas, Some(4));
    assert_eq!(available(&cluster, "example-foo").await?, Some(4));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_changed_name_creates_another_deployment_and_keeps_the_old_one(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "before", Some(2))).await?;
    cluster.settled().await?;
    cluster.apply(&foo("example-foo", "after", Some(3))).await?;
    cluster.settled().await?;

    let owner: Foo = cluster.get("default/example-foo").await?;
    assert_eq!(owner.status.as_ref().unwrap().available_replicas, 3, "it reports the specified one");
    for (name, replicas) in [("before", 2), ("after", 3)] {
        let deployment: Deployment = cluster.get(&format!("default/{name}")).await?;
        assert!(is_controlled_by(&deployment, &owner));
        assert_eq!(deployment.spec.replicas, Some(replicas));
    }

    cluster.delete::<Foo>("default/example-foo").await?;
    until_none::<Deployment>(&cluster).await
}

#[kubewright_cluster::test(real)]
async fn a_deleted_foo_deletes_its_deployment_with_every_propagation_policy(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        cluster.apply(&foo("example-foo", "web", Some(2))).await?;
        cluster.settled().await?;
        delete::<Foo>(&cluster, "example-foo", how.clone()).await?;
        until_none::<ReplicaSet>(&cluster).await?;
        cluster.settled().await?;
        assert!(cluster.find::<Foo>("default/example-foo").await?.is_none(), "{how:?}");
        assert_eq!(names::<Deployment>(&cluster).await?, [""; 0], "{how:?}");
        assert_eq!(names::<ReplicaSet>(&cluster).await?, [""; 0], "{how:?}");
    }
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_deleted_deployment_is_recreated(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;
    let first = cluster.get::<Deployment>("default/web").await?.metadata.uid;

    cluster.delete::<Deployment>("default/web").await?;
    cluster.settled().await?;
    assert_ne!(cluster.get::<Deployment>("default/web").await?.metadata.uid, first);
    assert_eq!(available(&cluster, "example-foo").await?, Some(2));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_changed_deployment_is_restored_and_keeps_other_fields(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;

    let meddle = json!({
        "metadata": {"annotations": {"team": "shop"}},
        "spec": {"replicas": 7, "template": {"spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "nginx", "image": "httpd:2"}],
        }}},
    });
    patch::<Deployment>(&cluster, "web", meddle).await?;
    cluster.settled().await?;

    let deployment: Deployment = cluster.get("default/web").await?;
    assert_eq!((deployment.spec.replicas, image(&deployment)), (Some(2), Some("nginx:latest")));
    assert_eq!(deployment.metadata.annotations.as_ref().unwrap()["team"], "shop");
    let pod = deployment.spec.template.spec.unwrap();
    assert_eq!(pod.termination_grace_period_seconds, Some(5));
    assert_eq!(available(&cluster, "example-foo").await?, Some(2));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_deployment_whose_owner_is_removed_is_left_alone(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;
    patch::<Deployment>(&cluster, "web", json!({"metadata": {"ownerReferences": null}})).await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    cluster.settled().await?;
    assert_eq!(cluster.get::<Deployment>("default/web").await?.spec.replicas, Some(2));
    let events = events(&cluster, "example-foo").await?;
    assert!(events.iter().any(|(_, reason, _)| reason == "ErrResourceExists"), "{events:?}");

    cluster.delete::<Foo>("default/example-foo").await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, ["web"], "an object of another owner is kept");
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn changes_made_while_it_was_not_running_are_reconciled(cluster: Cluster) -> Result<()> {
    let operator = started(&cluster).await?;
    for name in ["damaged", "meddled", "changed"] {
        cluster.apply(&foo(name, name, Some(1))).await?;
    }
    cluster.settled().await?;
    drop(operator);
    cluster.delete::<Deployment>("default/damaged").await?;
    patch::<Deployment>(&cluster, "meddled", json!({"spec": {"replicas": 4}})).await?;
    cluster.apply(&foo("changed", "changed", Some(2))).await?;
    cluster.apply(&foo("new", "new", Some(3))).await?;

    let _next = started(&cluster).await?;
    cluster.settled().await?;
    for (name, replicas) in [("damaged", 1), ("meddled", 1), ("changed", 2), ("new", 3)] {
        let deployment: Deployment = cluster.get(&format!("default/{name}")).await?;
        assert_eq!(deployment.spec.replicas, Some(replicas), "{name}");
        until_available(&cluster, name, replicas).await?;
    }
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_deployment_without_a_controller_is_left_alone_until_it_is_deleted(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(include_str!("foreign.yaml")).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;

    let foreign: Deployment = cluster.get("default/web").await?;
    assert!(foreign.metadata.owner_references.is_none());
    assert_eq!((foreign.spec.replicas, image(&foreign)), (Some(1), Some("theirs:1")));
    assert_eq!(available(&cluster, "example-foo").await?, None);
    let events = events(&cluster, "example-foo").await?;
    let message = r#"Resource "web" already exists and is not managed by Foo"#;
    assert_eq!(events, [("Warning".into(), "ErrResourceExists".into(), message.into())]);

    cluster.delete::<Deployment>("default/web").await?;
    until_available(&cluster, "example-foo", 2).await?;
    let owner: Foo = cluster.get("default/example-foo").await?;
    assert!(is_controlled_by(&cluster.get::<Deployment>("default/web").await?, &owner));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn of_two_foos_with_one_deployment_name_the_first_controls_it(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("first", "web", Some(1))).await?;
    cluster.settled().await?;
    cluster.apply(&foo("second", "web", Some(3))).await?;
    cluster.settled().await?;
    let first: Foo = cluster.get("default/first").await?;
    let deployment: Deployment = cluster.get("default/web").await?;
    assert!(is_controlled_by(&deployment, &first));
    assert_eq!(deployment.spec.replicas, Some(1));
    assert_eq!(events(&cluster, "second").await?[0].1, "ErrResourceExists");

    cluster.delete::<Foo>("default/first").await?;
    until_available(&cluster, "second", 3).await?;
    let second: Foo = cluster.get("default/second").await?;
    assert!(is_controlled_by(&cluster.get::<Deployment>("default/web").await?, &second));
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn a_foo_without_a_deployment_name_waits_for_one(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "", Some(1))).await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, [""; 0]);
    assert_eq!(available(&cluster, "example-foo").await?, None);

    cluster.apply(&foo("example-foo", "web", Some(1))).await?;
    cluster.settled().await?;
    assert_eq!(available(&cluster, "example-foo").await?, Some(1));
    Ok(())
}

#[kubewright_cluster::test]
async fn nothing_is_written_without_a_change(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    cluster.settled().await?;
    let versions = async |cluster: &Cluster| -> Result<_> {
        let foo = cluster.get::<Foo>("default/example-foo").await?.metadata.resource_version;
        Ok((foo, cluster.get::<Deployment>("default/web").await?.metadata.resource_version))
    };
    let before = versions(&cluster).await?;
    cluster.advance(Duration::from_mins(10)).await; // 20 resyncs
    assert_eq!(versions(&cluster).await?, before);
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn the_work_of_an_operator_that_crashed_after_its_first_write_is_completed_by_the_next(
    cluster: Cluster,
) -> Result<()> {
    let operator = started_for(&cluster, 1).await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    cluster.settled().await?;
    drop(operator);
    let made: Deployment = cluster.get("default/web").await?;
    assert_eq!(available(&cluster, "example-foo").await?, None, "created and not reported");

    let _next = started(&cluster).await?;
    until_available(&cluster, "example-foo", 3).await?;
    assert_eq!(cluster.get::<Deployment>("default/web").await?.metadata.uid, made.metadata.uid);
    Ok(())
}

#[kubewright_cluster::test]
async fn the_work_of_an_operator_that_crashed_between_writes_is_completed_by_the_next(
    cluster: Cluster,
) -> Result<()> {
    // Before it creates the Deployment, before it writes the status, and after; then before it scales it, and
    // after.
    for (writes, replicas) in [(0, 2), (1, 2), (2, 2), (0, 3), (1, 4), (2, 5)] {
        let operator = started_for(&cluster, writes).await?;
        cluster.apply(&foo("example-foo", "web", Some(replicas))).await?;
        cluster.settled().await?;
        let made = cluster.find::<Deployment>("default/web").await?;
        drop(operator);

        let next = started(&cluster).await?;
        cluster.settled().await?;
        let deployment: Deployment = cluster.get("default/web").await?;
        if let Some(made) = made {
            assert_eq!(deployment.metadata.uid, made.metadata.uid, "killed after {writes} writes");
        }
        assert_eq!(deployment.spec.replicas, Some(replicas), "killed after {writes} writes");
        assert_eq!(available(&cluster, "example-foo").await?, Some(replicas), "killed after {writes} writes");
        assert_eq!(names::<ReplicaSet>(&cluster).await?.len(), 1, "nothing was rolled out twice");
        next.stop().await?;
        if writes < 2 && replicas == 2 {
            cluster.delete::<Foo>("default/example-foo").await?; // and start over
            cluster.settled().await?;
        }
    }
    Ok(())
}

#[kubewright_cluster::test(real)]
async fn replicas_out_of_range_are_refused(cluster: Cluster) -> Result<()> {
    let _operator = started(&cluster).await?;
    for (replicas, taken) in [(0, false), (1, true), (10, true), (11, false)] {
        let answer = cluster.apply(&foo("example-foo", "web", Some(replicas))).await;
        assert_eq!(answer.is_ok(), taken, "{replicas}");
        if let Err(refused) = answer {
            assert!(refused.to_string().contains("spec.replicas"), "{refused}");
        }
    }
    Ok(())
}

#[kubewright_cluster::test]
async fn the_rbac_rules_in_config_suffice(cluster: Cluster) -> Result<()> {
    cluster.apply(include_str!("../config/crd.yaml")).await?;
    cluster.apply(include_str!("../config/rbac.yaml")).await?;
    let operator = operator_of_a_pod(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    cluster.settled().await?;
    assert_eq!(available(&cluster, "example-foo").await?, Some(3));
    assert_eq!(events(&cluster, "example-foo").await?[0].1, "Synced");
    delete::<Foo>(&cluster, "example-foo", PropagationPolicy::Foreground).await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, [""; 0]);
    operator.abort();
    Ok(())
}
