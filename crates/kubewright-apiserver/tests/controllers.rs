//! Controllers and the cached client of `kubewright` on the embedded server, in process and in virtual time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentStatus},
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, Secret},
};
use kube::api::{Patch, PostParams};
use kubewright::{
    cache::{Caches, Lazy},
    client::{
        CachedClient,
        cached::{Finalizer, Operation},
    },
    prelude::*,
};
use kubewright_apiserver::{ApiServer, authz::Mode};
use serde_json::json;

fn server() -> ApiServer {
    ApiServer::builder().authorization([Mode::AlwaysAllow]).in_process().expect("a server needs nothing")
}

fn client(server: &ApiServer) -> CachedClient {
    let caches = Caches::new(server.client());
    caches.start();
    CachedClient::new(&caches).field_owner("test")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("default".to_owned());
    map
}

fn set(value: &str) -> impl FnMut(&mut ConfigMap) + Send + use<> {
    let data = BTreeMap::from([("value".to_owned(), value.to_owned())]);
    move |map| map.data = Some(data.clone())
}

async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("did not come true: {what}");
}

#[tokio::test(start_paused = true)]
async fn every_write_is_seen_by_the_next_read() {
    let server = server();
    let client = client(&server);
    let maps = client.of::<ConfigMap>();
    for round in 0..10 {
        client.create_or_update(&key("m"), set(&round.to_string())).await.unwrap();
        let seen = client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap();
        assert_eq!(seen.data.as_ref().unwrap()["value"], round.to_string());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        maps.patch(&key("m"), &patch).await.unwrap();
        let seen = maps.handle(&key("m")).await.unwrap().unwrap();
        assert_eq!(seen.label("round"), Some(&*round.to_string()));
    }
    client.delete(&*client.get::<ConfigMap>(&key("m")).await.unwrap().unwrap()).await.unwrap();
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_meant_for_an_object_spares_its_successor() {
    let server = server();
    let client = client(&server);
    let old = client.create(&map("m")).await.unwrap();
    client.delete(&old).await.unwrap();
    let new = client.create(&map("m")).await.unwrap();
    client.delete(&old).await.expect("the one that was meant is gone");
    let held = client.live().get::<ConfigMap>(&key("m")).await.unwrap().expect("the successor is there");
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

#[tokio::test(start_paused = true)]
async fn many_are_deleted_at_once_and_reads_know() {
    let server = server();
    let client = client(&server);
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = map(name);
        map.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        client.create(&map).await.unwrap();
    }
    assert_eq!(client.list::<ConfigMap>().namespace("default").label("app", "web").await.unwrap().len(), 2);
    client.delete_all::<ConfigMap>().namespace("default").label("app", "web").await.unwrap();
    let left = client.list::<ConfigMap>().namespace("default").await.unwrap();
    let names: Vec<_> = left.iter().map(Lazy::name).filter(|name| name.len() == 1).collect();
    assert_eq!(names, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn dry_runs_store_nothing_and_hold_up_no_read() {
    let server = server();
    let client = client(&server);
    client.dry_run().create(&map("m")).await.unwrap();
    assert!(client.get::<ConfigMap>(&key("m")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn apply_takes_what_it_says_and_leaves_the_rest() {
    let server = server();
    let client = client(&server);
    let wanted = |value: &str| {
        let mut map = map("m");
        map.data = Some(BTreeMap::from([("mine".to_owned(), value.to_owned())]));
        map
    };
    client.apply(wanted("1")).await.unwrap();
    let other = client.field_owner("other");
    let mut theirs = map("m");
    theirs.data = Some(BTreeMap::from([("theirs".to_owned(), "1".to_owned())]));
    other.apply(theirs).await.unwrap();
    assert!(other.apply(wanted("2")).await.unwrap_err().is_conflict());
    let applied = other.apply(wanted("2")).force().await.unwrap();
    // The other has given up what it no longer says.
    assert_eq!(applied.data.unwrap(), BTreeMap::from([("mine".to_owned(), "2".to_owned())]));
}

fn deployment() -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    }))
    .expect("a deployment")
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_when_it_changes_and_only_then() {
    let server = server();
    let client = client(&server);
    let kind = client.of::<Deployment>();
    kind.create(&deployment()).await.unwrap();
    let key = key("web");
    let replicas = |replicas: i32| move |status: &mut DeploymentStatus| status.replicas = Some(replicas);
    for (wanted, operation) in [(3, Operation::Updated), (3, Operation::Unchanged), (2, Operation::Updated)] {
        let object = kind.get(&key).await.unwrap().unwrap();
        assert_eq!(kind.set_status(&object, replicas(wanted)).await.unwrap(), operation);
        let status = kind.get(&key).await.unwrap().unwrap().status.clone().unwrap();
        assert_eq!(status.replicas, Some(wanted));
    }
    // On an object that has changed since: read again, and written all the same.
    let old = kind.get(&key).await.unwrap().unwrap();
    kind.patch(&key, &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}))).await.unwrap();
    assert_eq!(kind.set_status(&old, replicas(7)).await.unwrap(), Operation::Updated);
    let now = kind.status().get(&key).await.unwrap().unwrap();
    assert_eq!((now.status.unwrap().replicas, now.metadata.labels.unwrap()["a"].as_str()), (Some(7), "b"));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_the_object_until_the_clean_up_and_not_its_successor() {
    let server = server();
    let client = client(&server);
    let maps = client.of::<ConfigMap>();
    client.create(&map("m")).await.unwrap();
    assert!(matches!(maps.finalizer(&key("m"), "example.com/x").await.unwrap(), Finalizer::Held(_)));
    client.delete(&*maps.get(&key("m")).await.unwrap().unwrap()).await.unwrap();
    let held = maps.get(&key("m")).await.unwrap().expect("the finalizer holds it");
    assert!(held.metadata.deletion_timestamp.is_some());
    let Finalizer::CleanUp(cleanup) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("it is to go")
    };
    cleanup.done().await.unwrap();
    assert!(matches!(maps.finalizer(&key("m"), "example.com/x").await.unwrap(), Finalizer::Gone));
    client.create(&map("m")).await.unwrap();
    let Finalizer::Held(successor) = maps.finalizer(&key("m"), "example.com/x").await.unwrap() else {
        panic!("the successor lives")
    };
    assert_ne!(successor.metadata.uid, held.metadata.uid);
}

/// Counts on the server, by read, add one and write: a lost or doubled step would show in the sum.
#[tokio::test(start_paused = true)]
async fn workers_that_count_together_lose_no_step_and_do_none_twice() {
    const OBJECTS: usize = 20;
    let server = server();
    let conflicts = Arc::new(AtomicUsize::new(0));
    let controller = Controller::of::<ConfigMap>()
        .when(|event: &kubewright::cache::Event<ConfigMap>| event.key().name().starts_with("step-"));
    let controller = controller.workers(8).reconcile({
        let conflicts = Arc::clone(&conflicts);
        move |cx: Context<ConfigMap>| {
            let conflicts = Arc::clone(&conflicts);
            async move {
                if cx.object()?.is_none() {
                    return Ok(Action::done());
                }
                let done = cx.neighbour(&format!("done-of-{}", cx.key().name()));
                if cx.get::<Secret>(&done).await?.is_some() {
                    return Ok(Action::done());
                }
                // Both writes in one: the step is marked in the sum itself.
                let name = cx.key().name().to_owned();
                let total = cx.neighbour("total");
                let counted = cx
                    .client()
                    .create_or_update(&total, |total: &mut ConfigMap| {
                        total.data.get_or_insert_default().insert(name.clone(), "1".to_owned());
                    })
                    .await;
                if let Err(error) = counted {
                    conflicts.fetch_add(1, Ordering::Relaxed);
                    return Err(error.into());
                }
                cx.client().create_or_update(&done, |_: &mut Secret| ()).await?;
                Ok(Action::done())
            }
        }
    });
    let manager = Manager::builder("counter").client(server.client()).signals(false).controller(controller);
    let manager = manager.build().await.unwrap();
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    let api = kube::Api::<ConfigMap>::namespaced(server.client(), "default");
    for number in 0..OBJECTS {
        api.create(&PostParams::default(), &map(&format!("step-{number}"))).await.unwrap();
    }
    eventually("all steps are counted", async || {
        let total = api.get_opt("total").await.unwrap();
        total.and_then(|total| total.data).is_some_and(|data| data.len() == OBJECTS)
    })
    .await;
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn owned_objects_come_back_and_are_adopted_only_once() {
    let server = server();
    let controller = Controller::of::<ConfigMap>()
        .owns::<Secret>()
        .when(|event: &kubewright::cache::Event<ConfigMap>| event.key().name() == "owner")
        .reconcile(|cx: Context<ConfigMap>| async move {
            if let Some(owner) = cx.object()? {
                cx.create_or_update("child", |_: &mut Secret| ()).controlled_by(&*owner).await?;
                cx.event("Synced", "the child is there");
            }
            Ok(Action::done())
        });
    let manager = Manager::builder("owner").client(server.client()).signals(false).controller(controller);
    let manager = manager.build().await.unwrap();
    let (handle, client) = (manager.handle(), manager.client().clone());
    let task = tokio::spawn(manager.run());
    client.create(&map("owner")).await.unwrap();
    let live = client.live();
    let child = async || live.get::<Secret>(&key("child")).await.unwrap();
    eventually("the child", async || child().await.is_some()).await;
    let first = child().await.unwrap();
    client.delete(&*first).await.unwrap();
    eventually("another child", async || {
        child().await.is_some_and(|child| child.metadata.uid != first.metadata.uid)
    })
    .await;
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_elected_manager_works_records_events_and_gives_its_lease_back() {
    let server = server();
    let maps = kube::Api::<ConfigMap>::namespaced(server.client(), "default");
    let leases = kube::Api::<Lease>::namespaced(server.client(), "default");
    let events = kube::Api::<Event>::namespaced(server.client(), "default");
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let manager = async |done: Arc<AtomicUsize>| {
        let controller = Controller::of::<ConfigMap>().reconcile(move |cx: Context<ConfigMap>| {
            done.fetch_add(1, Ordering::Relaxed);
            cx.event("Synced", "seen by the leader");
            async { Ok(Action::done()) }
        });
        Manager::builder("elected")
            .client(server.client())
            .signals(false)
            .leader_election(true)
            .controller(controller)
            .build()
            .await
            .unwrap()
    };
    let (first, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let leader = manager(Arc::clone(&first)).await;
    let handle = leader.handle();
    let leading = tokio::spawn(leader.run());
    eventually("the leader works", async || first.load(Ordering::Relaxed) > 0).await;
    let holder = async || leases.get("elected").await.unwrap().spec.unwrap().holder_identity;
    let held_by = holder().await;
    assert!(held_by.as_ref().is_some_and(|holder| !holder.is_empty()));

    let candidate = manager(Arc::clone(&second)).await;
    let stop = candidate.handle();
    let waiting = tokio::spawn(candidate.run());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(second.load(Ordering::Relaxed), 0, "there is a leader");

    handle.stop();
    leading.await.unwrap().unwrap();
    eventually("the candidate takes over", async || second.load(Ordering::Relaxed) > 0).await;
    assert_ne!(holder().await, held_by);
    stop.stop();
    waiting.await.unwrap().unwrap();

    // Stopping waits for the last events.
    let recorded = events.list(&kube::api::ListParams::default()).await.unwrap();
    let synced = recorded.items.iter().find(|event| event.reason.as_deref() == Some("Synced")).unwrap();
    assert_eq!(synced.message.as_deref(), Some("seen by the leader"));
    assert_eq!(synced.involved_object.name.as_deref(), Some("a"));
}
