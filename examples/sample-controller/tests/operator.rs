//! The promises of the sample controller, each on a cluster of its own.

mod support;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::PropagationPolicy;
use kubewright::Result;
use kubewright_cluster::Cluster;
use sample_controller::Foo;
use serde_json::json;
use support::*;

#[tokio::test(start_paused = true)]
async fn a_foo_has_a_deployment_that_it_controls() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn the_deployment_follows_the_replicas_of_its_foo() -> Result<()> {
    let cluster = cluster().await;
    let _operator = started(&cluster).await?;
    for replicas in [2, 5, 1] {
        cluster.apply(&foo("example-foo", "web", Some(replicas))).await?;
        cluster.settled().await?;
        assert_eq!(cluster.get::<Deployment>("default/web").await?.spec.replicas, Some(replicas));
        assert_eq!(available(&cluster, "example-foo").await?, Some(replicas));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_foo_that_says_nothing_of_replicas_leaves_scaling_to_others() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn a_renamed_deployment_is_another_one_and_the_former_stays_with_the_foo() -> Result<()> {
    let cluster = cluster().await;
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "before", Some(2))).await?;
    cluster.settled().await?;
    cluster.apply(&foo("example-foo", "after", Some(3))).await?;
    cluster.settled().await?;

    let owner: Foo = cluster.get("default/example-foo").await?;
    assert_eq!(owner.status.as_ref().unwrap().available_replicas, 3, "it reports the one it asks for");
    for (name, replicas) in [("before", 2), ("after", 3)] {
        let deployment: Deployment = cluster.get(&format!("default/{name}")).await?;
        assert!(is_controlled_by(&deployment, &owner));
        assert_eq!(deployment.spec.replicas, Some(replicas));
    }

    cluster.delete::<Foo>("default/example-foo").await?;
    cluster.settled().await?;
    assert_eq!(names::<Deployment>(&cluster).await?, [""; 0]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deleted_foo_takes_everything_along_whichever_way_it_is_deleted() -> Result<()> {
    let cluster = cluster().await;
    let _operator = started(&cluster).await?;
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        cluster.apply(&foo("example-foo", "web", Some(2))).await?;
        cluster.settled().await?;
        delete::<Foo>(&cluster, "example-foo", how.clone()).await?;
        cluster.settled().await?;
        assert!(cluster.find::<Foo>("default/example-foo").await?.is_none(), "{how:?}");
        assert_eq!(names::<Deployment>(&cluster).await?, [""; 0], "{how:?}");
        assert_eq!(names::<ReplicaSet>(&cluster).await?, [""; 0], "{how:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_comes_back() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn a_deployment_changed_by_hand_is_put_right_and_keeps_what_the_foo_does_not_speak_of() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn a_deployment_that_nobody_controls_is_left_alone_until_it_is_out_of_the_way() -> Result<()> {
    let cluster = cluster().await;
    let _operator = started(&cluster).await?;
    cluster.apply(include_str!("foreign.yaml")).await?;
    cluster.apply(&foo("example-foo", "web", Some(2))).await?;
    cluster.settled().await?;

    let foreign: Deployment = cluster.get("default/web").await?;
    assert!(foreign.metadata.owner_references.is_none());
    assert_eq!((foreign.spec.replicas, image(&foreign)), (Some(1), Some("theirs:1")));
    assert_eq!(available(&cluster, "example-foo").await?, None);
    let told = events(&cluster, "example-foo").await?;
    let message = r#"Resource "web" already exists and is not managed by Foo"#;
    assert_eq!(told, [("Warning".into(), "ErrResourceExists".into(), message.into())]);

    cluster.delete::<Deployment>("default/web").await?;
    cluster.settled().await?;
    let owner: Foo = cluster.get("default/example-foo").await?;
    assert!(is_controlled_by(&cluster.get::<Deployment>("default/web").await?, &owner));
    assert_eq!(available(&cluster, "example-foo").await?, Some(2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_two_foos_that_ask_for_one_name_the_first_has_it() -> Result<()> {
    let cluster = cluster().await;
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
    cluster.settled().await?;
    let second: Foo = cluster.get("default/second").await?;
    assert!(is_controlled_by(&cluster.get::<Deployment>("default/web").await?, &second));
    assert_eq!(available(&cluster, "second").await?, Some(3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_foo_without_a_deployment_name_waits_for_one() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nothing_changes() -> Result<()> {
    let cluster = cluster().await;
    let _operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    cluster.settled().await?;
    let versions = async |cluster: &Cluster| -> Result<_> {
        let foo = cluster.get::<Foo>("default/example-foo").await?.metadata.resource_version;
        Ok((foo, cluster.get::<Deployment>("default/web").await?.metadata.resource_version))
    };
    let before = versions(&cluster).await?;
    cluster.advance(Duration::from_hours(1)).await; // 120 resyncs
    assert_eq!(versions(&cluster).await?, before);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_dies_between_its_writes_is_carried_on_by_the_next() -> Result<()> {
    let cluster = cluster().await;
    let operator = started(&cluster).await?;
    cluster.apply(&foo("example-foo", "web", Some(3))).await?;
    while cluster.find::<Deployment>("default/web").await?.is_none() {
        tokio::task::yield_now().await;
    }
    drop(operator);
    let made = cluster.get::<Deployment>("default/web").await?.metadata.uid;

    let _next = started(&cluster).await?;
    cluster.settled().await?;
    assert_eq!(cluster.get::<Deployment>("default/web").await?.metadata.uid, made);
    assert_eq!(names::<ReplicaSet>(&cluster).await?.len(), 1, "nothing was rolled out twice");
    assert_eq!(available(&cluster, "example-foo").await?, Some(3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operator_may_die_at_any_step() -> Result<()> {
    for steps in (0..200).step_by(5) {
        let cluster = cluster().await;
        let operator = started(&cluster).await?;
        cluster.apply(&foo("example-foo", "web", Some(2))).await?;
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        drop(operator);
        let _next = started(&cluster).await?;
        cluster.settled().await?;
        let deployment: Deployment = cluster.get("default/web").await?;
        assert_eq!(deployment.metadata.generation, Some(1), "after {steps} steps");
        assert_eq!(names::<Deployment>(&cluster).await?.len(), 1, "after {steps} steps");
        assert_eq!(available(&cluster, "example-foo").await?, Some(2), "after {steps} steps");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn replicas_beyond_one_to_ten_are_refused() -> Result<()> {
    let cluster = cluster().await;
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

#[tokio::test(start_paused = true)]
async fn the_rights_in_config_are_enough() -> Result<()> {
    let cluster = cluster().await;
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
