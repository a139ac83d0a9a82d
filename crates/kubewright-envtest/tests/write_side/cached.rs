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
    client::cached::{ClientError, Finalizer, Operation},
    prelude::*,
};
use serde_json::json;

use crate::place::TestEnv;

fn set(value: &str) -> impl FnMut(&mut ConfigMap) + Send + use<> {
    let data = BTreeMap::from([("value".to_owned(), value.to_owned())]);
    move |map| map.data = Some(data.clone())
}

pub(crate) async fn every_write_is_visible_to_the_next_read(env: TestEnv) {
    let client = env.cached();
    let maps = client.of::<ConfigMap>();
    for round in 0..10 {
        client.create_or_update(&env.key("m"), set(&round.to_string())).await.unwrap();
        let seen = client.get::<ConfigMap>(&env.key("m")).await.unwrap().unwrap();
        assert_eq!(seen.data.as_ref().unwrap()["value"], round.to_string());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        maps.patch(&env.key("m"), &patch).await.unwrap();
        let seen = maps.handle(&env.key("m")).await.unwrap().unwrap();
        assert_eq!(seen.label("round"), Some(&*round.to_string()));
    }
    client.delete(&*client.get::<ConfigMap>(&env.key("m")).await.unwrap().unwrap()).await.unwrap();
    assert!(client.get::<ConfigMap>(&env.key("m")).await.unwrap().is_none());
}

pub(crate) async fn written_objects_equal_cached_ones(env: TestEnv) {
    let client = env.cached();
    let key = env.key("m");
    let held = async || client.get::<ConfigMap>(&key).await.unwrap().unwrap();
    for (value, patch, operation) in [
        ("1", false, Operation::Created),
        ("1", false, Operation::Unchanged),
        ("2", false, Operation::Updated),
        ("2", true, Operation::Unchanged),
        ("3", true, Operation::Updated),
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
    assert!(whole.metadata.managed_fields.is_some(), "fields that were not sent are kept");
}

pub(crate) async fn a_delete_with_a_uid_spares_a_recreated_object(env: TestEnv) {
    let client = env.cached();
    let old = client.create(&env.map("m")).await.unwrap();
    client.delete(&old).await.unwrap();
    let new = client.create(&env.map("m")).await.unwrap();
    client.delete(&old).await.expect("the old object is gone");
    let held = client.live().get::<ConfigMap>(&env.key("m")).await.unwrap().expect("the new object exists");
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
    assert!(client.delete(&new).unchanged().await.unwrap_err().is_conflict());
}

pub(crate) async fn a_collection_is_deleted_and_reads_see_it(env: TestEnv) {
    let client = env.cached();
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = env.map(name);
        map.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        client.create(&map).await.unwrap();
    }
    assert_eq!(
        client.list::<ConfigMap>().namespace(&env.namespace).label("app", "web").await.unwrap().len(),
        2
    );
    client.delete_all::<ConfigMap>().namespace(&env.namespace).label("app", "web").await.unwrap();
    let left = client.list::<ConfigMap>().namespace(&env.namespace).await.unwrap();
    let names: Vec<_> = left.iter().map(Lazy::name).filter(|name| name.len() == 1).collect();
    assert_eq!(names, ["c"]);
}

pub(crate) async fn dry_runs_store_nothing_and_delay_no_read(env: TestEnv) {
    let client = env.cached();
    client.dry_run().create(&env.map("m")).await.unwrap();
    assert!(client.get::<ConfigMap>(&env.key("m")).await.unwrap().is_none());
}

pub(crate) async fn apply_owns_the_applied_fields_only(env: TestEnv) {
    let client = env.cached();
    let wanted = |value: &str| {
        let mut map = env.map("m");
        map.data = Some(BTreeMap::from([("mine".to_owned(), value.to_owned())]));
        map
    };
    client.apply(wanted("1")).await.unwrap();
    let other = client.field_owner("other");
    let mut theirs = env.map("m");
    theirs.data = Some(BTreeMap::from([("theirs".to_owned(), "1".to_owned())]));
    other.apply(theirs).await.unwrap();
    assert!(other.apply(wanted("2")).await.unwrap_err().is_conflict());
    let applied = other.apply(wanted("2")).force().await.unwrap();
    // The other manager has given up the field that it no longer applies.
    assert_eq!(applied.data.unwrap(), BTreeMap::from([("mine".to_owned(), "2".to_owned())]));
}

fn deployment(env: &TestEnv) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": env.namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    }))
    .expect("a deployment")
}

pub(crate) async fn a_status_is_written_only_when_it_changes(env: TestEnv) {
    let client = env.cached();
    let kind = client.of::<Deployment>();
    kind.create(&deployment(&env)).await.unwrap();
    let key = env.key("web");
    let replicas = |replicas: i32| move |status: &mut DeploymentStatus| status.replicas = Some(replicas);
    for (wanted, operation) in [(3, Operation::Updated), (3, Operation::Unchanged), (2, Operation::Updated)] {
        let object = kind.get(&key).await.unwrap().unwrap();
        assert_eq!(kind.set_status(&object, replicas(wanted)).await.unwrap(), operation);
        let status = kind.get(&key).await.unwrap().unwrap().status.clone().unwrap();
        assert_eq!(status.replicas, Some(wanted));
    }
    // On an object that has changed since: it is read again and written.
    let old = kind.get(&key).await.unwrap().unwrap();
    kind.patch(&key, &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}))).await.unwrap();
    assert_eq!(kind.set_status(&old, replicas(7)).await.unwrap(), Operation::Updated);
    let now = kind.status().get(&key).await.unwrap().unwrap();
    assert_eq!((now.status.unwrap().replicas, now.metadata.labels.unwrap()["a"].as_str()), (Some(7), "b"));
}

pub(crate) async fn a_finalizer_keeps_the_object_until_clean_up_and_not_a_recreated_one(env: TestEnv) {
    let client = env.cached();
    let maps = client.of::<ConfigMap>();
    client.create(&env.map("m")).await.unwrap();
    assert!(matches!(maps.finalizer(&env.key("m"), "example.com/x").await.unwrap(), Finalizer::Held(_)));
    client.delete(&*maps.get(&env.key("m")).await.unwrap().unwrap()).await.unwrap();
    let held = maps.get(&env.key("m")).await.unwrap().expect("the finalizer holds it");
    assert!(held.metadata.deletion_timestamp.is_some());
    let Finalizer::CleanUp(cleanup) = maps.finalizer(&env.key("m"), "example.com/x").await.unwrap() else {
        panic!("it is being deleted")
    };
    cleanup.done().await.unwrap();
    assert!(matches!(maps.finalizer(&env.key("m"), "example.com/x").await.unwrap(), Finalizer::Gone));
    client.create(&env.map("m")).await.unwrap();
    let Finalizer::Held(successor) = maps.finalizer(&env.key("m"), "example.com/x").await.unwrap() else {
        panic!("the new object is not being deleted")
    };
    assert_ne!(successor.metadata.uid, held.metadata.uid);
}

pub(crate) async fn subresources_of_other_kinds_are_read_and_written(env: TestEnv) {
    let client = env.cached();
    let kind = client.of::<Deployment>();
    kind.create(&deployment(&env)).await.unwrap();
    let (key, scale) = (env.key("web"), kind.subresource("scale").of::<Scale>());
    assert!(scale.get(&env.key("none")).await.unwrap().is_none());
    let mut found = scale.get(&key).await.unwrap().unwrap();
    assert_eq!(found.spec.as_ref().unwrap().replicas, Some(1));

    found.spec.as_mut().unwrap().replicas = Some(3);
    let updated = scale.update(&found).await.unwrap();
    let replicas = async || kind.get(&key).await.unwrap().unwrap().spec.replicas;
    assert_eq!(replicas().await, Some(3), "the next read of the object sees it");
    assert!(scale.update(&found).await.unwrap_err().is_conflict(), "it was read before the update");

    let patched = scale.patch(&key, &Patch::Merge(json!({"spec": {"replicas": 5}}))).await.unwrap();
    assert_ne!(patched.metadata.resource_version, updated.metadata.resource_version);
    assert_eq!(replicas().await, Some(5));
}

pub(crate) async fn an_object_of_another_controller_is_refused(env: TestEnv) {
    let client = env.cached();
    let other: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "other", "namespace": env.namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    }))
    .unwrap();
    let other = client.create(&other).await.unwrap();
    let uid = other.metadata.uid.clone().unwrap();
    let taken = client.create_or_update(&env.key("child"), |_: &mut Secret| ());
    assert_eq!(taken.controlled_by(&other).await.unwrap().operation(), Operation::Created);

    let owner = client.create(&env.map("owner")).await.unwrap();
    let wanted = client.create_or_update(&env.key("child"), |_: &mut Secret| ()).controlled_by(&owner);
    let error = wanted.await.unwrap_err();
    assert!(matches!(error, ClientError::Taken { .. }), "{error:?}");
    let namespace = &env.namespace;
    assert_eq!(
        format!("{:?}", Error::from(error)),
        format!(
            "cannot create Secret {namespace}/child for ConfigMap {namespace}/owner\n  \
               caused by: it exists and is controlled by ReplicaSet other (uid {uid})\n  \
               help: choose another name for it, or remove the owner from the existing Secret"
        )
    );
    // Owning it without controlling it is allowed, and the owner must be in its namespace.
    client.create_or_update(&env.key("child"), |_: &mut Secret| ()).owned_by(&owner).await.unwrap();
    let mut foreign_owner = owner;
    foreign_owner.metadata.namespace = Some("elsewhere".to_owned());
    let wanted = client.create_or_update(&env.key("child"), |_: &mut Secret| ()).owned_by(&foreign_owner);
    assert!(matches!(wanted.await.unwrap_err(), ClientError::Owner(_)));
}
