//! The cached client: reads, writes, and reads after writes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kubewright::{
    cache::{CacheOptions, Caches, FieldIndex, IndexFn, Lazy},
    client::{CachedClient, cached::Finalizer, cached::OperationResult},
};
use serde_json::json;

use super::*;
use crate::support::PlannedFault;

fn client(api: &FakeApi) -> CachedClient {
    let caches = Caches::new(api.client());
    caches.start();
    CachedClient::new(&caches).field_owner("test")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn value(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str)
}

fn set(wanted: &str) -> impl FnMut(&mut ConfigMap) + Send {
    let wanted = wanted.to_owned();
    move |map| drop(map.data.get_or_insert_default().insert("value".into(), wanted.clone()))
}

#[tokio::test(start_paused = true)]
async fn reads_are_from_the_cache_by_key_namespace_label_and_index() {
    let api = FakeApi::new();
    for (namespace, name, app) in [("a", "one", "web"), ("a", "two", "db"), ("b", "three", "web")] {
        api.put(
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}}),
        );
    }
    let client = client(&api);
    client.of::<ConfigMap>().cache().add_index(&IndexFn::label("by-app", "app")).unwrap();
    let found = client.get::<ConfigMap>(&ObjectKey::namespaced("a", "one")).await.unwrap().unwrap();
    assert_eq!(found.name_any(), "one");
    api.forget_requests();
    let names = |objects: Vec<Lazy<ConfigMap>>| {
        let mut names: Vec<String> = objects.iter().map(|object| object.name().to_owned()).collect();
        names.sort();
        names.join(" ")
    };
    let list = || client.list::<ConfigMap>();
    assert_eq!(names(list().await.unwrap()), "one three two");
    assert_eq!(names(list().namespace("a").await.unwrap()), "one two");
    assert_eq!(names(list().namespace("a").label("app", "web").await.unwrap()), "one");
    assert_eq!(names(list().by_index("by-app", "web").await.unwrap()), "one three");
    assert_eq!(names(list().by_index("by-app", "web").namespace("b").await.unwrap()), "three");
    assert!(list().by_index("nonsense", "x").await.unwrap_err().to_string().contains("nonsense"));
    assert!(client.get::<ConfigMap>(&key("missing")).await.unwrap().is_none());
    assert!(api.requests().is_empty(), "{:?}", api.requests());

    let live = client.live();
    assert_eq!(names(live.list::<ConfigMap>().namespace("a").label("app", "db").await.unwrap()), "two");
    assert!(live.list::<ConfigMap>().by_index("by-app", "web").await.is_err());
    assert_eq!(api.requests().len(), 1);
}

static MAPS_BY_APP: FieldIndex<ConfigMap> = FieldIndex::new("app", |map, values| {
    values.extend(map.label("app"));
    Ok(())
});

#[tokio::test(start_paused = true)]
async fn declared_indexes_owners_and_orphans_are_found_in_the_cache_and_on_the_server() {
    let api = FakeApi::new();
    for (namespace, name, app, owner) in
        [("a", "one", "web", Some("u1")), ("a", "two", "db", None), ("b", "three", "web", Some("u1"))]
    {
        let owners: Vec<_> = owner
            .iter()
            .map(
                |uid| json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true}),
            )
            .collect();
        api.put(
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "namespace": namespace, "name": name, "labels": {"app": app}, "ownerReferences": owners}}),
        );
    }
    let client = client(&api);
    let names = |objects: Vec<Lazy<ConfigMap>>| {
        let mut names: Vec<String> = objects.iter().map(|object| object.name().to_owned()).collect();
        names.sort();
        names.join(" ")
    };
    for client in [&client, &client.live()] {
        let list = || client.list::<ConfigMap>();
        assert_eq!(names(list().by_index(&MAPS_BY_APP, "web").await.unwrap()), "one three");
        assert_eq!(names(list().by_index(&MAPS_BY_APP, "web").namespace("b").await.unwrap()), "three");
        assert_eq!(names(list().controller_uid("u1").await.unwrap()), "one three");
        assert_eq!(names(list().controller_uid("u1").namespace("a").await.unwrap()), "one");
        assert_eq!(names(list().orphans().await.unwrap()), "two");
        assert_eq!(names(list().orphans().namespace("a").await.unwrap()), "two");
        assert_eq!(names(list().orphans().namespace("b").await.unwrap()), "");
        assert_eq!(names(list().controller_uid("u1").label("app", "db").await.unwrap()), "");
    }
    let taken: &'static FieldIndex<ConfigMap> = Box::leak(Box::new(FieldIndex::new("app", |_, _| Ok(()))));
    let error = client.list::<ConfigMap>().by_index(taken, "web").await.unwrap_err();
    assert!(error.to_string().contains("another name"), "two declarations need two names: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_read_observes_the_clients_own_write_and_waits_for_the_watch_instead_of_sending_a_request() {
    let api = FakeApi::new();
    let client = client(&api);
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
    for round in 0..20 {
        let written = client.create_or_update(&key("m"), set(&round.to_string())).await.unwrap();
        assert_eq!(
            written.operation(),
            if round == 0 { OperationResult::Created } else { OperationResult::Updated }
        );
        let seen = client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap();
        assert_eq!(value(&seen), round.to_string());
        assert_eq!(client.list::<ConfigMap>().await.unwrap().len(), 1);
    }
    let map = client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap();
    client.delete(&*map).await.unwrap();
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
    assert!(client.list::<ConfigMap>().await.unwrap().is_empty());
    assert!(api.requests_with("GET /api/v1/namespaces/default/configmaps/m").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_read_goes_to_the_server_when_the_cache_stays_behind_a_write() {
    let api = FakeApi::new();
    let client = client(&api);
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
    // No watch observes the changes from here on.
    api.plan(PlannedFault::SilentWatch);
    api.end_watches(&crate::support::Ending::Clean);
    eventually("the silent watch is open", || api.open_watches() == 1).await;
    client.create_or_update(&key("m"), set("1")).await.unwrap();
    assert_eq!(value(&client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap()), "1");
    assert_eq!(client.list::<ConfigMap>().await.unwrap().len(), 1);
    let map = client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap();
    client.delete(&*map).await.unwrap();
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cache_created_after_a_write_is_not_older_than_the_write() {
    let api = FakeApi::new();
    let client = client(&api);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("m".into());
    map.metadata.namespace = Some("default".into());
    client.create(&map).await.unwrap();
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_object_is_not_written_and_a_patch_has_only_the_changes() {
    let api = FakeApi::new();
    let client = client(&api);
    client.create_or_update(&key("m"), set("1")).await.unwrap();
    api.forget_requests();
    assert_eq!(
        client.create_or_update(&key("m"), set("1")).await.unwrap().operation(),
        OperationResult::Unchanged
    );
    assert_eq!(
        client.create_or_patch(&key("m"), set("1")).await.unwrap().operation(),
        OperationResult::Unchanged
    );
    assert!(api.requests_with("/configmaps/m").is_empty(), "{:?}", api.requests());
    // Another client adds a field that our cache has not observed: a patch leaves it alone.
    api.unobserved(|api| {
        let mut theirs = api.object(MAPS, "m").unwrap();
        theirs["data"]["theirs"] = json!("x");
        api.put(MAPS, theirs);
    });
    assert_eq!(
        client.create_or_patch(&key("m"), set("2")).await.unwrap().operation(),
        OperationResult::Updated
    );
    let stored = api.object(MAPS, "m").unwrap();
    assert_eq!((&stored["data"]["value"], &stored["data"]["theirs"]), (&json!("2"), &json!("x")));
    assert_eq!(api.requests_with("PATCH").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mutate_function_that_fails_or_renames_writes_nothing() {
    let api = FakeApi::new();
    let client = client(&api);
    let failed =
        client.create_or_update(&key("m"), |_: &mut ConfigMap| Err::<(), _>("no colour")).await.unwrap_err();
    assert_eq!(failed.to_string(), "cannot create ConfigMap default/m: no colour");
    let renamed = client
        .create_or_update(&key("m"), |map: &mut ConfigMap| map.metadata.name = Some("other".into()))
        .await
        .unwrap_err();
    assert!(renamed.to_string().contains("name or namespace"), "{renamed}");
    assert!(api.requests_with("POST").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_controller_is_an_error_with_help() {
    let api = FakeApi::new();
    let owners = serde_json::json!([
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "3f", "controller": true},
    ]);
    let secret = |metadata| serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
    api.put(
        "/api/v1/namespaces/default/secrets",
        secret(serde_json::json!({"namespace": "default", "name": "example", "ownerReferences": owners})),
    );
    api.put_config_map("default", "m", "1");
    let client = client(&api);
    let map = client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap();
    let refused = || async {
        let wanted = client.create_or_update(&key("example"), |_: &mut Secret| ());
        Error::from(wanted.controlled_by(&*map).await.unwrap_err())
    };
    assert_eq!(
        format!("{:?}", refused().await),
        "cannot create Secret default/example for ConfigMap default/m\n  \
           caused by: it exists and is controlled by ReplicaSet other (uid 3f)\n  \
           help: choose another name for it, or remove the owner from the existing Secret"
    );
    let error = refused().await.help("rename spec.secretName, or remove the owner from the Secret");
    assert_eq!(
        error.to_string(),
        "cannot create Secret default/example for ConfigMap default/m: \
         it exists and is controlled by ReplicaSet other (uid 3f); \
         rename spec.secretName, or remove the owner from the Secret"
    );
    assert!(!error.is_terminal(), "the other owner may release it");
    assert!(api.requests_with("PUT").is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deleted_object_succeeds_and_does_not_delete_its_successor() {
    let api = FakeApi::new();
    let client = client(&api);
    let old = client.create_or_update(&key("m"), set("1")).await.unwrap().into_inner();
    client.delete(&*old).await.unwrap();
    client.delete(&*old).await.expect("gone already");
    client.create_or_update(&key("m"), set("2")).await.unwrap();
    api.forget_requests();
    // The fake server ignores preconditions; the request must have the uid.
    client.delete(&*old).await.unwrap();
    assert_eq!(api.requests_with("DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_stored_before_work_begins_and_removed_after_the_clean_up() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let client = client(&api);
    let maps = client.of::<ConfigMap>();
    let Finalizer::Held(map) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("it lives")
    };
    assert_eq!(map.finalizers(), ["example.com/x"]);
    assert_eq!(api.object(MAPS, "m").unwrap()["metadata"]["finalizers"], json!(["example.com/x"]));
    // A second call finds it there and writes nothing.
    api.forget_requests();
    assert!(matches!(maps.finalizer(&key("m"), "example.com/x").await.unwrap(), Finalizer::Held(_)));
    assert!(api.requests_with("PATCH").is_empty());

    let mut deleting = api.object(MAPS, "m").unwrap();
    deleting["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    api.put(MAPS, deleting);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let Finalizer::CleanUp(dropped) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("it is to go")
    };
    drop(dropped);
    assert!(api.object(MAPS, "m").is_some(), "it stays until done() is called");
    assert!(matches!(maps.finalizer(&key("m"), "example.com/other").await.unwrap(), Finalizer::Gone));
    let Finalizer::CleanUp(cleanup) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("it is to go")
    };
    cleanup.done().await.unwrap();
    assert!(api.object(MAPS, "m").is_none());
    assert!(matches!(maps.finalizer(&key("m"), "example.com/x").await.unwrap(), Finalizer::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_does_not_touch_the_successor_of_the_same_name() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let client = client(&api);
    let maps = client.of::<ConfigMap>();
    let mut deleting = api.object(MAPS, "m").unwrap();
    deleting["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    deleting["metadata"]["finalizers"] = json!(["example.com/x"]);
    api.put(MAPS, deleting);
    let Finalizer::CleanUp(cleanup) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("it is to go")
    };
    api.delete_config_map("default", "m");
    let mut successor = api.put_config_map("default", "m", "2");
    successor["metadata"]["finalizers"] = json!(["example.com/x"]);
    api.put(MAPS, successor);
    assert!(cleanup.done().await.unwrap_err().is_conflict());
    assert_eq!(api.object(MAPS, "m").unwrap()["metadata"]["finalizers"], json!(["example.com/x"]));
}

#[tokio::test(start_paused = true)]
async fn a_cache_follows_its_options_which_cannot_be_set_later() {
    let api = FakeApi::new();
    for (name, app) in [("one", "web"), ("two", "db")] {
        api.put(
            MAPS,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "long"},
                "metadata": {"namespace": "default", "name": name, "labels": {"app": app}}}),
        );
    }
    let caches = Caches::new(api.client());
    let options = CacheOptions::<ConfigMap>::new().labels("app=web").transform(|map| map.data = None);
    caches.configure(options).unwrap();
    caches.start();
    let client = CachedClient::new(&caches);
    let all = client.list::<ConfigMap>().await.unwrap();
    assert_eq!(all.iter().map(Lazy::name).collect::<Vec<_>>(), ["one"]);
    assert!(all[0].load().unwrap().data.is_none());
    let late = caches.configure(CacheOptions::<ConfigMap>::new()).unwrap_err();
    assert!(late.to_string().contains("ConfigMap"), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_starts_with_a_list_unless_streaming_is_set() {
    let api = FakeApi::new();
    let asked = async |options: CacheOptions<ConfigMap>| {
        api.forget_requests();
        let caches = Caches::new(api.client());
        caches.configure(options).unwrap();
        caches.start();
        CachedClient::new(&caches).list::<ConfigMap>().await.unwrap();
        api.requests_with("sendInitialEvents=true").len()
    };
    assert_eq!(asked(CacheOptions::new()).await, 0);
    assert_eq!(asked(CacheOptions::new().streaming()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn dry_run_and_field_owner_are_sent_and_apply_requires_a_field_owner() {
    let api = FakeApi::new();
    let caches = Caches::new(api.client());
    caches.start();
    let client = CachedClient::new(&caches);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("m".into());
    map.metadata.namespace = Some("default".into());
    let refused = client.apply(map.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("field_owner"), "{refused}");
    client.dry_run().field_owner("me").create(&map).await.unwrap();
    let request = &api.requests_with("POST")[0];
    assert!(request.contains("dryRun=All") && request.contains("fieldManager=me"), "{request}");
}
