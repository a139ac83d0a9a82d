//! Tests that both ingress managers must pass.

mod support;

use kubewright::{Result, k8s_openapi::api::networking::v1::Ingress};
use kubewright_cluster::Cluster;
use serde_json::json;
use support::*;

#[kubewright_cluster::test(real)]
async fn an_annotated_service_has_an_ingress_that_it_controls_and_others_have_none(
    cluster: Cluster,
) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.serve("quiet", None).await?;
        rig.serve("web", Some("web.example.com")).await?;
        rig.until("an ingress", "web", |ingress| ingress.is_some()).await?;
        let ingress = rig.ingress("web").await?;
        assert_eq!(host(ingress.as_ref()), Some("web.example.com"));
        assert_eq!(rig.backend(ingress.as_ref()), Some(("web", 80)));
        assert_eq!(rig.controller(ingress.as_ref()), Some(("Service", "web")));
        cluster.settled().await?;
        assert!(rig.ingress("quiet").await?.is_none());
        Ok(())
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn the_ingress_follows_the_host_and_the_port_of_its_service(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.serve("web", Some("before.example.com")).await?;
        rig.until("an ingress", "web", |ingress| ingress.is_some()).await?;
        let first = rig.ingress("web").await?.and_then(|ingress| ingress.metadata.uid);

        rig.serve_on("web", Some("after.example.com"), 8080).await?;
        let changed = |ingress: Option<&_>| {
            (host(ingress), rig.backend(ingress)) == (Some("after.example.com"), Some(("web", 8080)))
        };
        rig.until("the new host and port", "web", changed).await?;
        assert_eq!(rig.ingress("web").await?.and_then(|ingress| ingress.metadata.uid), first);
        Ok(())
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn the_ingress_is_deleted_with_the_annotation_and_with_the_service(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.serve("web", Some("a")).await?;
        rig.until("an ingress", "web", |ingress| ingress.is_some()).await?;
        rig.serve("web", None).await?;
        rig.until("no ingress", "web", |ingress| ingress.is_none()).await?;
        rig.serve("web", Some("b")).await?;
        rig.until("an ingress again", "web", |ingress| host(ingress) == Some("b")).await?;
        rig.withdraw("web").await?;
        rig.until("no ingress without its service", "web", |ingress| ingress.is_none()).await
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn a_recreated_service_of_another_name_has_another_ingress_and_the_old_one_is_deleted(
    cluster: Cluster,
) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.serve("before", Some("web.example.com")).await?;
        rig.until("an ingress", "before", |ingress| ingress.is_some()).await?;

        rig.serve("after", Some("web.example.com")).await?;
        rig.withdraw("before").await?;
        rig.until("the other ingress", "after", |ingress| ingress.is_some()).await?;
        rig.until("no ingress of the former name", "before", |ingress| ingress.is_none()).await?;
        assert_eq!(rig.backend(rig.ingress("after").await?.as_ref()), Some(("after", 80)));
        Ok(())
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn a_deleted_or_changed_ingress_is_restored(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.serve("web", Some("a")).await?;
        rig.until("an ingress", "web", |ingress| ingress.is_some()).await?;
        let first = rig.ingress("web").await?.and_then(|ingress| ingress.metadata.uid);
        rig.delete_ingress("web").await?;
        let another =
            |ingress: Option<&Ingress>| ingress.is_some_and(|ingress| ingress.metadata.uid != first);
        rig.until("another ingress", "web", another).await?;

        rig.patch_ingress("web", json!({"spec": {"rules": [{"host": "elsewhere"}]}})).await?;
        rig.until("the right host", "web", |ingress| host(ingress) == Some("a")).await?;
        assert_eq!(rig.backend(rig.ingress("web").await?.as_ref()), Some(("web", 80)));
        rig.patch_ingress("web", json!({"metadata": {"ownerReferences": null}})).await?;
        rig.until("its controller", "web", |ingress| rig.controller(ingress) == Some(("Service", "web")))
            .await
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn an_ingress_of_another_controller_is_left_alone_until_it_is_deleted(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.create_ingress("web", json!([rig.other_owner().await?])).await?;
        rig.serve("web", Some("ours")).await?;
        cluster.settled().await?;
        rig.serve("web", None).await?;
        cluster.settled().await?;
        let theirs = rig.ingress("web").await?;
        assert_eq!((host(theirs.as_ref()), rig.backend(theirs.as_ref())), (None, None));
        assert_eq!(rig.controller(theirs.as_ref()), Some(("ConfigMap", "other-owner")));

        rig.serve("web", Some("ours")).await?;
        rig.delete_ingress("web").await?;
        rig.until("our ingress", "web", |ingress| host(ingress) == Some("ours")).await
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn an_ingress_without_a_controller_is_adopted(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let _operator = rig.started().await?;
        rig.create_ingress("web", json!([])).await?;
        let theirs = rig.ingress("web").await?.and_then(|ingress| ingress.metadata.uid);
        rig.serve("web", Some("ours")).await?;
        rig.until("our host", "web", |ingress| host(ingress) == Some("ours")).await?;
        let adopted = rig.ingress("web").await?;
        assert_eq!(rig.controller(adopted.as_ref()), Some(("Service", "web")));
        assert_eq!(adopted.and_then(|ingress| ingress.metadata.uid), theirs, "it is the same object");
        Ok(())
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn the_work_of_a_crashed_operator_is_completed_by_the_next(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let operator = rig.started_for(1).await?;
        for name in ["one", "two"] {
            rig.serve(name, Some("web.example.com")).await?;
        }
        cluster.settled().await?;
        drop(operator);
        let uids = async || -> Result<_> {
            let (one, two) = (rig.ingress("one").await?, rig.ingress("two").await?);
            Ok([one, two].map(|ingress| ingress.and_then(|ingress| ingress.metadata.uid)))
        };
        let made = uids().await?;
        assert_eq!(made.iter().flatten().count(), 1);

        let _next = rig.started().await?;
        for name in ["one", "two"] {
            rig.until("an ingress", name, |ingress| rig.controller(ingress) == Some(("Service", name)))
                .await?;
        }
        let all = uids().await?;
        assert!(
            made.iter().flatten().all(|made| all.iter().flatten().any(|uid| uid == made)),
            "{made:?} {all:?}"
        );
        Ok(())
    })
    .await
}

#[kubewright_cluster::test(real)]
async fn changes_made_while_it_was_not_running_are_reconciled(cluster: Cluster) -> Result<()> {
    each(&cluster, async |rig| {
        let operator = rig.started().await?;
        for name in ["quiet", "meddled", "damaged"] {
            rig.serve(name, Some("web.example.com")).await?;
            rig.until("an ingress", name, |ingress| ingress.is_some()).await?;
        }
        drop(operator);
        rig.serve("quiet", None).await?;
        rig.patch_ingress("meddled", json!({"spec": {"rules": [{"host": "elsewhere"}]}})).await?;
        rig.delete_ingress("damaged").await?;
        rig.serve("new", Some("web.example.com")).await?;

        let _next = rig.started().await?;
        for name in ["meddled", "damaged", "new"] {
            rig.until("an ingress", name, |ingress| host(ingress) == Some("web.example.com")).await?;
        }
        rig.until("no ingress", "quiet", |ingress| ingress.is_none()).await
    })
    .await
}

#[test]
fn the_builder_needs_at_most_half_the_lines() {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let by_hand = lines(include_str!("../src/by_hand.rs"));
    let with_builder = lines(include_str!("../src/with_builder.rs"));
    assert!(with_builder * 2 <= by_hand, "{with_builder} and {by_hand}");
}
