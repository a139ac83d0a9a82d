//! Guarantees of clients and caches against a real API server. Skipped if it is not installed (`make real`
//! builds it).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use kubewright::{
    ObjectKey,
    cache::{Event, ListWatch, SharedInformer},
    client::Clients,
};
use kubewright_envtest::{Binaries, ControlPlane};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_read_side_works_on_a_real_server() {
    let Some(binaries) = Binaries::find() else {
        eprintln!("no real API server on this machine: `make real` builds one");
        return;
    };
    let plane = ControlPlane::builder().start(&binaries).await.unwrap();
    discovery_finds_every_kind_by_its_short_name(&plane).await;
    for streaming in [true, false] {
        an_informer_receives_every_change(plane.client(), streaming).await;
    }
    a_read_after_a_write_is_never_older(plane.client()).await;
}

fn map(name: &str, team: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            labels: Some(BTreeMap::from([("team".into(), team.into())])),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn namespace(client: &Client, name: &str) -> Api<ConfigMap> {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    Api::namespaced(client.clone(), name)
}

async fn discovery_finds_every_kind_by_its_short_name(plane: &ControlPlane) {
    let clients = Clients::from_config(plane.config()).unwrap();
    let served = clients.discovery().resources().await.unwrap();
    assert!(served.failures.is_empty(), "{:?}", served.failures);
    for (word, kind) in [("deploy", "Deployment"), ("cm", "ConfigMap"), ("crd", "CustomResourceDefinition")] {
        assert_eq!(clients.mapper().find(word).await.unwrap().kind, kind);
    }
    let found = clients.dynamic().find("ns").await.unwrap().get("default").await.unwrap();
    assert_eq!(found.types.unwrap().kind, "Namespace");
}

async fn next<K>(events: &mut mpsc::UnboundedReceiver<Event<K>>) -> Event<K> {
    timeout(TIMEOUT, events.recv()).await.expect("an event in time").expect("the handler is there")
}

async fn an_informer_receives_every_change(client: Client, streaming: bool) {
    let name = format!("follows-{streaming}");
    let maps = namespace(&client, &name).await;
    for i in 0..20 {
        maps.create(&PostParams::default(), &map(&format!("old-{i}"), "red")).await.unwrap();
    }
    maps.create(&PostParams::default(), &map("other", "blue")).await.unwrap();

    let selected = ListWatch::<ConfigMap>::new(client).namespace(&name).labels("team=red");
    let informer = SharedInformer::new(selected.streaming(streaming));
    let (sender, mut events) = mpsc::unbounded_channel();
    let _told = informer.on_event(move |event| drop(sender.send(event)));
    let running = informer.start();
    timeout(TIMEOUT, informer.synced()).await.unwrap();
    assert_eq!(informer.store().len(), 20);
    for _ in 0..20 {
        assert!(matches!(next(&mut events).await, Event::Added { is_in_initial_list: true, .. }));
    }

    maps.create(&PostParams::default(), &map("new", "red")).await.unwrap();
    let added = next(&mut events).await;
    assert!(
        matches!(&added, Event::Added { object, is_in_initial_list: false } if object.name() == "new"),
        "{added:?}"
    );

    let data = Patch::Merge(json!({"data": {"k": "v"}}));
    maps.patch("new", &PatchParams::default(), &data).await.unwrap();
    let updated = next(&mut events).await;
    let Event::Updated { old, new } = updated else { panic!("{updated:?}") };
    assert!(old.load().unwrap().data.is_none());
    assert_eq!(new.load().unwrap().data.as_ref().unwrap()["k"], "v");

    // It no longer matches the selector, which is a deletion for this informer.
    let repainted = Patch::Merge(json!({"metadata": {"labels": {"team": "blue"}}}));
    maps.patch("new", &PatchParams::default(), &repainted).await.unwrap();
    let gone = next(&mut events).await;
    assert!(matches!(&gone, Event::Deleted { object, .. } if object.name() == "new"), "{gone:?}");

    maps.delete("old-7", &DeleteParams::default()).await.unwrap();
    let gone = next(&mut events).await;
    assert!(
        matches!(&gone, Event::Deleted { object, final_state_unknown: false } if object.name() == "old-7"),
        "{gone:?}"
    );
    assert_eq!(informer.store().len(), 19);
    drop(running);
}

async fn a_read_after_a_write_is_never_older(client: Client) {
    let maps = namespace(&client, "own-writes").await;
    let informer = SharedInformer::new(ListWatch::<ConfigMap>::new(client).namespace("own-writes"));
    let _running = informer.start();
    timeout(TIMEOUT, informer.synced()).await.unwrap();
    maps.create(&PostParams::default(), &map("a", "red")).await.unwrap();
    let key: ObjectKey = "own-writes/a".parse().unwrap();
    for i in 0..50 {
        let patch = Patch::Merge(json!({"data": {"i": i.to_string()}}));
        let written = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
        let version = written.metadata.resource_version.unwrap();
        let read = informer.get_at_least(&key, &version, TIMEOUT).await.unwrap().unwrap();
        assert_eq!(read.load().unwrap().data.as_ref().unwrap()["i"], i.to_string());
    }
}
