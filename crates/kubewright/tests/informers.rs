//! Informers and their factory, on a server without faults.

mod support;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{ApiResource, GroupVersionKind, PartialObjectMeta, Selector};
use kubewright::{
    ObjectKey, Random,
    cache::{
        Event, FactoryError, Form, IndexFn, Indexer, InformerFactory, ListWatch, ReadError, Reflector,
        SharedInformer,
    },
};
use parking_lot::Mutex;
use serde_json::json;
use support::{FakeApi, PlannedFault, Rig, eventually};

fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

fn foo_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("samplecontroller.k8s.io", "v1alpha1", "Foo"))
}

fn put_foo(api: &FakeApi, name: &str) {
    api.put(
        "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos",
        json!({"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
               "metadata": {"namespace": "default", "name": name}, "spec": {"replicas": 1}}),
    );
}

/// The events of a handler, as text.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<String>>>);

impl Received {
    fn handler(&self) -> impl FnMut(Event<ConfigMap>) + Send + 'static {
        let received = Arc::clone(&self.0);
        move |event| {
            let name = event.object().name().to_owned();
            received.lock().push(match event {
                Event::Added { is_in_initial_list: true, .. } => format!("initial {name}"),
                Event::Added { .. } => format!("added {name}"),
                Event::Updated { old, new } if old.same_version(&new) => format!("sync {name}"),
                Event::Updated { .. } => format!("updated {name}"),
                Event::Deleted { .. } => format!("deleted {name}"),
            });
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    async fn is(&self, expected: &[&str]) {
        eventually(&format!("received {expected:?}"), || self.0.lock().len() >= expected.len()).await;
        assert_eq!(self.take(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_request_is_a_list_at_version_0() {
    let api = FakeApi::new();
    let informer = SharedInformer::new(ListWatch::<ConfigMap>::new(api.client()));
    let _running = informer.start();
    informer.synced().await;
    eventually("it watches", || api.requests().len() == 2).await;
    let requests = api.requests();
    assert!(requests[0].contains("limit=500&resourceVersion=0"), "{requests:?}");
    assert!(requests[1].contains("watch=true") && !requests[1].contains("sendInitialEvents"), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_stream_falls_back_to_a_list_at_version_0() {
    let rig = Rig::start(FakeApi::without_streaming()).await;
    let requests = rig.api.requests();
    assert!(requests[0].contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), "{requests:?}");
    assert!(requests[0].contains("allowWatchBookmarks=true"), "{requests:?}");
    assert!(requests[1].contains("limit=500&resourceVersion=0"), "{requests:?}");
    assert!(requests[2].contains("watch=true") && !requests[2].contains("sendInitialEvents"), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn watches_have_a_timeout_of_five_to_ten_minutes() {
    let rig = Rig::start(FakeApi::new()).await;
    let request = rig.api.requests().remove(0);
    let (_, seconds) = request.split_once("timeoutSeconds=").unwrap();
    let seconds: u64 = seconds.split('&').next().unwrap().parse().unwrap();
    assert!((300..600).contains(&seconds), "{request}");
}

#[tokio::test(start_paused = true)]
async fn after_a_paginated_list_at_version_0_later_lists_are_paginated() {
    let api = FakeApi::without_watch_cache();
    for i in 0..1100 {
        api.put_config_map("default", &format!("map-{i:04}"), "1");
    }
    let rig = Rig::start(api).await;
    let lists = |rig: &Rig| -> Vec<String> {
        rig.api.requests().into_iter().filter(|request| !request.contains("watch=")).collect()
    };
    assert_eq!(lists(&rig).len(), 3, "{:?}", lists(&rig));
    rig.api.forget_requests();
    rig.api.end_watches(&support::Ending::Error { code: 410, reason: "Expired", retry_after: None });
    eventually("it has listed again", || lists(&rig).len() == 3).await;
    assert!(lists(&rig)[0].contains("limit=500&resourceVersion="), "{:?}", lists(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_page_size_is_used_for_every_list() {
    let api = FakeApi::without_watch_cache();
    for i in 0..3 {
        api.put_config_map("default", &format!("map-{i}"), "1");
    }
    let store = Indexer::<ConfigMap>::with_metadata_key();
    let reflector = Reflector::new(ListWatch::<ConfigMap>::new(api.client()), store.clone());
    let reflector = reflector.random(Random::seeded(1)).page_size(2);
    let position = reflector.position();
    let running = tokio::spawn(reflector.run());
    eventually("three maps", || store.len() == 3).await;
    eventually("the position is that of the list", || {
        position.resource_version() == api.revision().to_string()
    })
    .await;
    assert_eq!(api.requests_with("limit=2").len(), 2);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_gets_all_cached_objects_and_then_changes() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let rig = Rig::start(api).await;
    let received = Received::default();
    let mut late = rig.informer.on_event(received.handler());
    rig.api.put_config_map("default", "b", "1");
    late.synced().await;
    received.is(&["initial a", "added b"]).await;
    assert!(late.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_synced_when_it_has_handled_the_initial_objects() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let rig = Rig::start(api).await;
    let mut slow = rig.informer.subscribe();
    assert!(rig.informer.has_synced() && !slow.has_synced());
    slow.next().await.unwrap();
    assert!(!slow.has_synced(), "taken is not handled");
    tokio::select! {
        biased;
        _ = slow.next() => unreachable!("there is nothing more"),
        () = std::future::ready(()) => {}
    }
    assert!(slow.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_gets_no_further_events() {
    let rig = Rig::start(FakeApi::new()).await;
    let received = Received::default();
    let handler = rig.informer.on_event(received.handler());
    rig.api.put_config_map("default", "a", "1");
    received.is(&["added a"]).await;
    drop(handler);
    rig.api.put_config_map("default", "b", "1");
    rig.settled().await;
    assert!(received.take().is_empty());
    eventually("nothing waits for it", || rig.informer.pending_events() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn each_handler_resyncs_in_its_own_period_and_without_a_request() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let rig = Rig::start(api).await;
    let (often, seldom, never) = (Received::default(), Received::default(), Received::default());
    let _often = rig.informer.clone().resync(Duration::from_secs(10)).on_event(often.handler());
    let _seldom = rig.informer.clone().resync(Duration::from_secs(25)).on_event(seldom.handler());
    let _never = rig.informer.on_event(never.handler());
    rig.api.forget_requests();
    tokio::time::sleep(Duration::from_millis(50_500)).await;
    let syncs = |received: &Received| received.take().iter().filter(|received| *received == "sync a").count();
    assert_eq!((syncs(&often), syncs(&seldom), syncs(&never)), (5, 2, 0));
    assert!(rig.api.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resync_period_below_a_second_is_raised_to_it() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let rig = Rig::start(api).await;
    let received = Received::default();
    let _handler = rig.informer.clone().resync(Duration::from_millis(1)).on_event(received.handler());
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(received.take(), ["initial a", "sync a", "sync a", "sync a"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_recreated_under_the_same_name_unobserved_is_a_deletion_and_an_addition() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let rig = Rig::start(api).await;
    let received = Received::default();
    let _handler = rig.informer.on_event(received.handler());
    received.is(&["initial a"]).await;
    rig.api.unobserved(|api| {
        api.delete_config_map("default", "a");
        api.put_config_map("default", "a", "2");
    });
    rig.api.compact();
    rig.api.end_watches(&support::Ending::Error { code: 410, reason: "Expired", retry_after: None });
    rig.settled().await;
    received.is(&["deleted a", "added a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_without_changes_keeps_the_same_objects_and_dispatches_no_events() {
    let api = FakeApi::new();
    for i in 0..50 {
        api.put_config_map("default", &format!("map-{i}"), "1");
    }
    let rig = Rig::start(api).await;
    let before = rig.informer.store().list();
    rig.mirror().forget_trail();
    let requests = rig.api.requests().len();
    rig.api.end_watches(&support::Ending::Error { code: 410, reason: "Expired", retry_after: None });
    eventually("it has listed again", || rig.api.requests().len() > requests && rig.api.open_watches() == 1)
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = rig.informer.store().list();
    assert!(rig.mirror().trail().is_empty());
    assert!(
        before.iter().zip(&after).all(|(before, after)| before.ptr_eq(after)),
        "one copy, before and after"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_can_wait_until_the_cache_has_observed_a_write() {
    let rig = Rig::start(FakeApi::new()).await;
    let timeout = Duration::from_secs(5);
    let written = rig.api.put_config_map("default", "a", "1");
    let version = written["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(rig.informer.store().get_by_key(&key("default/a")).is_none(), "the event has not arrived");
    let read = rig.informer.get_at_least(&key("default/a"), version, timeout).await.unwrap();
    assert_eq!(read.unwrap().resource_version(), version);

    rig.api.delete_config_map("default", "a");
    let version = rig.api.revision().to_string();
    assert!(rig.informer.get_at_least(&key("default/a"), &version, timeout).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_write_that_never_arrives_is_a_timeout_with_the_version() {
    let rig = Rig::start(FakeApi::new()).await;
    let timeout = Duration::from_secs(5);
    let error = rig.informer.get_at_least(&key("default/a"), "9999", timeout).await.unwrap_err();
    assert!(
        matches!(&error, ReadError::Timeout { resource_version, .. } if resource_version == "9999"),
        "{error}"
    );
    let error = rig.informer.get_at_least(&key("default/a"), "new", timeout).await.unwrap_err();
    assert!(matches!(error, ReadError::InvalidVersion(_)));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_is_enough_to_observe_a_version() {
    let rig = Rig::start(FakeApi::new()).await;
    rig.api.bookmark(rig.api.revision() + 10);
    let version = (rig.api.revision() + 10).to_string();
    let read = rig.informer.get_at_least(&key("default/none"), &version, Duration::from_secs(5)).await;
    assert!(read.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_index_can_be_added_while_the_informer_runs() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "x");
    let rig = Rig::start(api).await;
    let by_value = IndexFn::new("value", |map: &kubewright::cache::Lazy<ConfigMap>| {
        map.load().map(|map| map.data.as_ref().and_then(|data| data.get("value").cloned()))
    });
    rig.informer.add_index(by_value).unwrap();
    rig.api.put_config_map("default", "b", "x");
    rig.settled().await;
    assert_eq!(rig.informer.store().by_index("value", "x").unwrap().len(), 2);
    assert_eq!(rig.informer.lister().namespace("default").list(&Selector::default()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_dropped_unless_they_are_kept() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let (dropped, _) = ListWatch::<ConfigMap>::new(api.client()).list().await.unwrap();
    assert!(dropped[0].load().unwrap().metadata.managed_fields.is_none());
    let (kept, _) = ListWatch::<ConfigMap>::new(api.client()).keep_managed_fields().list().await.unwrap();
    assert_eq!(kept[0].load().unwrap().metadata.managed_fields.as_ref().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn decoded_objects_are_shared_and_packed_ones_are_decoded_once_while_hot() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    for form in [Form::Decoded, Form::default()] {
        let (objects, _) = ListWatch::<ConfigMap>::new(api.client()).form(form).list().await.unwrap();
        assert!(Arc::ptr_eq(&objects[0].load().unwrap(), &objects[0].load().unwrap()), "{form:?}");
    }
    let cold = ListWatch::<ConfigMap>::new(api.client()).form(Form::Packed { hot: 0 });
    let (objects, _) = cold.list().await.unwrap();
    assert!(!Arc::ptr_eq(&objects[0].load().unwrap(), &objects[0].load().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_transform_changes_objects_and_their_metadata_before_they_are_stored() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let list_watch = ListWatch::<ConfigMap>::new(api.client()).transform(|map: &mut ConfigMap| {
        map.data = None;
        map.metadata.labels = Some([("seen".to_owned(), "yes".to_owned())].into());
    });
    let (objects, _) = list_watch.list().await.unwrap();
    assert_eq!(objects[0].label("seen"), Some("yes"));
    assert!(objects[0].load().unwrap().data.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_factory_has_one_informer_per_kind_and_scope() {
    let api = FakeApi::new();
    let factory = InformerFactory::new(api.client());
    let maps = factory.informer::<ConfigMap>();
    assert!(maps.ptr_eq(&factory.informer::<ConfigMap>()));
    assert!(!maps.ptr_eq(&factory.namespace("shop").informer::<ConfigMap>()));
    let scoped = factory.namespace("shop").labels("app=web");
    assert!(scoped.informer::<ConfigMap>().ptr_eq(&scoped.clone().informer::<ConfigMap>()));
    let _other_kind: SharedInformer<Secret> = factory.informer();
    let foos = factory.dynamic(&foo_resource());
    assert!(foos.ptr_eq(&factory.dynamic(&foo_resource())));
}

#[tokio::test(start_paused = true)]
async fn a_factory_starts_new_informers_waits_for_all_and_stops_all() {
    let api = FakeApi::new();
    api.put_config_map("shop", "a", "1");
    api.put_config_map("other", "b", "1");
    let factory = InformerFactory::new(api.client());
    let shop = factory.namespace("shop").informer::<ConfigMap>();
    factory.start();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(shop.store().len(), 1);
    let all = factory.informer::<ConfigMap>();
    let error = factory.wait_for_sync().await.unwrap_err();
    assert!(matches!(&error, FactoryError::NotStarted(paths) if paths == &["/api/v1/configmaps"]), "{error}");
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(all.store().len(), 2);
    assert_eq!(api.open_watches(), 2);
    factory.shutdown().await;
    assert_eq!(api.open_watches(), 0);
    assert_eq!(all.store().len(), 2, "the content stays readable");
}

#[tokio::test(start_paused = true)]
async fn a_factorys_tweak_and_scope_reach_the_requests() {
    let api = FakeApi::new();
    api.put(
        "/api/v1/namespaces/default/configmaps",
        json!({"kind": "ConfigMap", "apiVersion": "v1",
               "metadata": {"namespace": "default", "name": "a", "labels": {"app": "web"}}}),
    );
    api.put_config_map("default", "b", "1");
    let factory = InformerFactory::new(api.client()).labels("app=web").fields("metadata.name!=zzz");
    factory.tweak(|maps: ListWatch<ConfigMap>| maps.form(Form::Decoded)).unwrap();
    let maps = factory.informer::<ConfigMap>();
    assert!(matches!(factory.tweak(|maps: ListWatch<ConfigMap>| maps), Err(FactoryError::InformerExists(_))));
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(maps.store().list_keys(), [key("default/a")]);
    let request = &api.requests()[0];
    assert!(request.contains("labelSelector=app%3Dweb&fieldSelector=metadata.name%21%3Dzzz"), "{request}");
}

#[tokio::test(start_paused = true)]
async fn dynamic_informers_have_whole_objects_and_metadata_informers_metadata_only() {
    let api = FakeApi::new();
    put_foo(&api, "a");
    let factory = InformerFactory::new(api.client());
    let foos = factory.dynamic(&foo_resource());
    let metas = factory.metadata(&foo_resource());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let foo = foos.store().list()[0].load().unwrap();
    assert_eq!(foo.data["spec"]["replicas"], 1);
    assert_eq!(foo.types.as_ref().unwrap().kind, "Foo");
    let meta = metas.store().list()[0].load().unwrap();
    assert_eq!(meta.metadata.name.as_deref(), Some("a"));
    put_foo(&api, "b");
    eventually("both see the new one", || foos.store().len() == 2 && metas.store().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn list_items_get_the_kind_that_lists_leave_out() {
    let api = FakeApi::without_streaming();
    put_foo(&api, "a");
    let typed = PartialObjectMeta::<ConfigMap>::default();
    assert!(typed.types.is_none());
    let (foos, _) =
        ListWatch::<kube::core::DynamicObject>::dynamic(api.client(), foo_resource()).list().await.unwrap();
    let foo = foos[0].load().unwrap();
    assert_eq!(foo.types.as_ref().unwrap().api_version, "samplecontroller.k8s.io/v1alpha1");
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_kind_that_does_not_exist_yet_starts_when_it_does() {
    let api = FakeApi::new();
    for _ in 0..4 {
        api.plan(PlannedFault::RejectWatch { code: 404, reason: "NotFound", retry_after: None });
        api.plan(PlannedFault::RejectList { code: 404, reason: "NotFound", retry_after: None });
    }
    let factory = InformerFactory::new(api.client()).on_fault(|_| ());
    let foos = factory.dynamic(&foo_resource());
    factory.start();
    put_foo(&api, "a");
    factory.wait_for_sync().await.unwrap();
    assert_eq!(foos.store().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn informers_can_be_removed_and_created_again_at_run_time() {
    let api = FakeApi::new();
    let factory = InformerFactory::new(api.client());
    let foos = factory.dynamic(&foo_resource());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    factory.remove(&foos).await;
    assert_eq!(api.open_watches(), 0);
    let again = factory.dynamic(&foo_resource());
    assert!(!again.ptr_eq(&foos));
    factory.start();
    factory.wait_for_sync().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stopping_an_informer_ends_its_watch_and_its_handlers() {
    let rig = Rig::start(FakeApi::new()).await;
    let mut events = rig.informer.subscribe();
    let api = rig.api.clone();
    rig.stop().await;
    assert_eq!(api.open_watches(), 0);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_guard_stops_the_informer() {
    let api = FakeApi::new();
    let informer = SharedInformer::new(ListWatch::<ConfigMap>::new(api.client()));
    let running = informer.start();
    informer.synced().await;
    drop(running);
    eventually("the watch is closed", || api.open_watches() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_runs() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let rig = Rig::prepare(FakeApi::new());
        for code in [500, 503, 500] {
            rig.api.plan(PlannedFault::RejectList { code, reason: "Planned", retry_after: None });
        }
        rig.api.plan(PlannedFault::RejectStream { code: 422, reason: "Invalid" });
        let started = tokio::time::Instant::now();
        rig.informer.synced().await;
        runs.push((started.elapsed(), rig.api.requests()));
    }
    assert_eq!(runs[0], runs[1]);
}
