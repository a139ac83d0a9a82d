//! The cached client: reads, writes, and reads after writes.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentStatus, ReplicaSet},
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Secret},
};
use kube::api::Patch;
use kubewright::{
    cache::Lazy,
    client::cached::{ClientError, Finalizer, OperationResult},
    prelude::*,
};
use serde_json::json;

use crate::place::Place;

fn set(value: &str) -> impl FnMut(&mut ConfigMap) + Send + use<> {
    let data = BTreeMap::from([("value".to_owned(), value.to_owned())]);
    move |map| map.data = Some(data.clone())
}

pub(crate) async fn every_write_is_seen_by_the_next_read(place: Place) {
    let client = place.cached();
    let maps = client.of::<ConfigMap>();
    for round in 0..10 {
        client.create_or_update(&place.key("m"), set(&round.to_string())).await.unwrap();
        let seen = client.get::<ConfigMap>(&place.key("m")).await.unwrap().unwrap();
        assert_eq!(seen.data.as_ref().unwrap()["value"], round.to_string());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        maps.patch(&place.key("m"), &patch).await.unwrap();
        let seen = maps.handle(&place.key("m")).await.unwrap().unwrap();
        assert_eq!(seen.label("round"), Some(&*round.to_string()));
    }
    client.delete(&*client.get::<ConfigMap>(&place.key("m")).await.unwrap().unwrap()).await.unwrap();
    assert!(client.get::<ConfigMap>(&place.key("m")).await.unwrap().is_none());
}

pub(crate) async fn what_was_written_is_as_the_cache_holds_it(place: Place) {
    let client = place.cached();
    let key = place.key("m");
    let held = async || client.get::<ConfigMap>(&key).await.unwrap().unwrap();
    for (value, patch, operation) in [
        ("1", false, OperationResult::Created),
        ("1", false, OperationResult::Unchanged),
        ("2", false, OperationResult::Updated),
        ("2", true, OperationResult::Unchanged),
        ("3", true, OperationResult::Updated),
    ] {
        let wanted = if patch {
            client.of().create_or_patch(&key, set(value))
        } else {
            client.create_or_update(&key, set(value))
        };
        let written = wanted.await.unwrap();
        assert_eq!(written.operation(), operation);
        assert_eq!(*written, *held().await);
        assert_eq!(written.metadata.managed_fields, None);
    }
    let whole = client.of::<ConfigMap>().update(&*held().await).await.unwrap();
    assert!(whole.metadata.managed_fields.is_some(), "what was not sent is not lost");
}

pub(crate) async fn a_deletion_meant_for_an_object_spares_its_successor(place: Place) {
    let client = place.cached();
    let old = client.create(&place.map("m")).await.unwrap();
    client.delete(&old).await.unwrap();
    let new = client.create(&place.map("m")).await.unwrap();
    client.delete(&old).await.expect("the one that was meant is gone");
    let held =
        client.live().get::<ConfigMap>(&place.key("m")).await.unwrap().expect("the successor is there");
    assert_eq!(held.metadata.uid, new.metadata.uid);
    client
        .update(&{
            let mut map = new.clone();
            map.data = Some(BTreeMap::new());
            map.immutable = Some(false);
            map
        })
        .await
        .unwrap();
    assert!(client.delete(&new).if_unchanged().await.unwrap_err().is_conflict());
}

pub(crate) async fn many_are_deleted_at_once_and_reads_know(place: Place) {
    let client = place.cached();
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = place.map(name);
        map.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        client.create(&map).await.unwrap();
    }
    assert_eq!(
        client.list::<ConfigMap>().namespace(&place.namespace).label("app", "web").await.unwrap().len(),
        2
    );
    client.delete_all::<ConfigMap>().namespace(&place.namespace).label("app", "web").await.unwrap();
    let left = client.list::<ConfigMap>().namespace(&place.namespace).await.unwrap();
    let names: Vec<_> = left.iter().map(Lazy::name).filter(|name| name.len() == 1).collect();
    assert_eq!(names, ["c"]);
}

pub(crate) async fn dry_runs_store_nothing_and_hold_up_no_read(place: Place) {
    let client = place.cached();
    client.dry_run().create(&place.map("m")).await.unwrap();
    assert!(client.get::<ConfigMap>(&place.key("m")).await.unwrap().is_none());
}

pub(crate) async fn apply_takes_what_it_says_and_leaves_the_rest(place: Place) {
    let client = place.cached();
    let wanted = |value: &str| {
        let mut map = place.map("m");
        map.data = Some(BTreeMap::from([("mine".to_owned(), value.to_owned())]));
        map
    };
    client.apply(wanted("1")).await.unwrap();
    let other = client.field_owner("other");
    let mut theirs = place.map("m");
    theirs.data = Some(BTreeMap::from([("theirs".to_owned(), "1".to_owned())]));
    other.apply(theirs).await.unwrap();
    assert!(other.apply(wanted("2")).await.unwrap_err().is_conflict());
    let applied = other.apply(wanted("2")).force().await.unwrap();
    // The other has given up what it no longer says.
    assert_eq!(applied.data.unwrap(), BTreeMap::from([("mine".to_owned(), "2".to_owned())]));
}

fn deployment(place: &Place) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": place.namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    }))
    .expect("a deployment")
}

pub(crate) async fn a_status_is_written_when_it_changes_and_only_then(place: Place) {
    let client = place.cached();
    let kind = client.of::<Deployment>();
    kind.create(&deployment(&place)).await.unwrap();
    let key = place.key("web");
    let replicas = |replicas: i32| move |status: &mut DeploymentStatus| status.replicas = Some(replicas);
    for (wanted, operation) in
        [(3, OperationResult::Updated), (3, OperationResult::Unchanged), (2, OperationResult::Updated)]
    {
        let object = kind.get(&key).await.unwrap().unwrap();
        assert_eq!(kind.set_status(&object, replicas(wanted)).await.unwrap(), operation);
        let status = kind.get(&key).await.unwrap().unwrap().status.clone().unwrap();
        assert_eq!(status.replicas, Some(wanted));
    }
    // On an object that has changed since: read again, and written all the same.
    let old = kind.get(&key).await.unwrap().unwrap();
    kind.patch(&key, &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}))).await.unwrap();
    assert_eq!(kind.set_status(&old, replicas(7)).await.unwrap(), OperationResult::Updated);
    let now = kind.status().get(&key).await.unwrap().unwrap();
    assert_eq!((now.status.unwrap().replicas, now.metadata.labels.unwrap()["a"].as_str()), (Some(7), "b"));
}

pub(crate) async fn a_finalizer_holds_the_object_until_the_clean_up_and_not_its_successor(place: Place) {
    let client = place.cached();
    let maps = client.of::<ConfigMap>();
    client.create(&place.map("m")).await.unwrap();
    assert!(matches!(maps.finalizer(&place.key("m"), "example.com/x").await.unwrap(), Finalizer::Held(_)));
    client.delete(&*maps.get(&place.key("m")).await.unwrap().unwrap()).await.unwrap();
    let held = maps.get(&place.key("m")).await.unwrap().expect("the finalizer holds it");
    assert!(held.metadata.deletion_timestamp.is_some());
    let Finalizer::CleanUp(cleanup) = maps.finalizer(&place.key("m"), "example.com/x").await.unwrap() else {
        panic!("it is to go")
    };
    cleanup.done().await.unwrap();
    assert!(matches!(maps.finalizer(&place.key("m"), "example.com/x").await.unwrap(), Finalizer::Gone));
    client.create(&place.map("m")).await.unwrap();
    let Finalizer::Held(successor) = maps.finalizer(&place.key("m"), "example.com/x").await.unwrap() else {
        panic!("the successor lives")
    };
    assert_ne!(successor.metadata.uid, held.metadata.uid);
}

pub(crate) async fn subresources_of_other_kinds_are_read_and_written(place: Place) {
    let client = place.cached();
    let kind = client.of::<Deployment>();
    kind.create(&deployment(&place)).await.unwrap();
    let (key, scale) = (place.key("web"), kind.subresource("scale").of::<Scale>());
    assert!(scale.get(&place.key("none")).await.unwrap().is_none());
    let mut found = scale.get(&key).await.unwrap().unwrap();
    assert_eq!(found.spec.as_ref().unwrap().replicas, Some(1));

    found.spec.as_mut().unwrap().replicas = Some(3);
    let updated = scale.update(&found).await.unwrap();
    let replicas = async || kind.get(&key).await.unwrap().unwrap().spec.replicas;
    assert_eq!(replicas().await, Some(3), "the next read of the whole object knows");
    assert!(scale.update(&found).await.unwrap_err().is_conflict(), "it was read before the update");

    let patched = scale.patch(&key, &Patch::Merge(json!({"spec": {"replicas": 5}}))).await.unwrap();
    assert_ne!(patched.metadata.resource_version, updated.metadata.resource_version);
    assert_eq!(replicas().await, Some(5));
}

pub(crate) async fn what_somebody_else_controls_is_refused(place: Place) {
    let client = place.cached();
    let other: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "other", "namespace": place.namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    }))
    .unwrap();
    let other = client.create(&other).await.unwrap();
    let uid = other.metadata.uid.clone().unwrap();
    let taken = client.create_or_update(&place.key("child"), |_: &mut Secret| ());
    assert_eq!(taken.controlled_by(&other).await.unwrap().operation(), OperationResult::Created);

    let owner = client.create(&place.map("owner")).await.unwrap();
    let wanted = client.create_or_update(&place.key("child"), |_: &mut Secret| ()).controlled_by(&owner);
    let error = wanted.await.unwrap_err();
    assert!(matches!(error, ClientError::AlreadyControlled { .. }), "{error:?}");
    let namespace = &place.namespace;
    assert_eq!(
        format!("{:?}", Error::from(error)),
        format!(
            "cannot create Secret {namespace}/child for ConfigMap {namespace}/owner\n  \
               caused by: it exists and is controlled by ReplicaSet other (uid {uid})\n  \
               help: choose another name for it, or remove the owner from the existing Secret"
        )
    );
    // Owning it without controlling it is allowed, and the owner must be of its namespace.
    client.create_or_update(&place.key("child"), |_: &mut Secret| ()).owned_by(&owner).await.unwrap();
    let mut stranger = owner;
    stranger.metadata.namespace = Some("elsewhere".to_owned());
    let wanted = client.create_or_update(&place.key("child"), |_: &mut Secret| ()).owned_by(&stranger);
    assert!(matches!(wanted.await.unwrap_err(), ClientError::Owner(_)));
}
