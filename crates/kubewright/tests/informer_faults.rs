//! Faults that a cache survives. After each, server, cache and handler agree, and no deletion was missed.

mod support;

use std::time::Duration;

use serde_json::json;
use support::{Ending, FakeApi, PlannedFault, Rig, eventually};
use tokio::time::Instant;

/// Three objects, of which one will be deleted unobserved, one changed and one left alone.
fn server() -> FakeApi {
    seeded(FakeApi::new())
}

fn seeded(api: FakeApi) -> FakeApi {
    for name in ["changed", "deleted", "same"] {
        api.put_config_map("default", name, "1");
    }
    api
}

/// Changes that the current watch does not observe.
fn gap(api: &FakeApi) {
    api.unobserved(|api| {
        api.put_config_map("default", "changed", "2");
        api.delete_config_map("default", "deleted");
        api.put_config_map("default", "new", "1");
    });
}

fn sorted(mut trail: Vec<String>) -> Vec<String> {
    trail.sort();
    trail
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_cleanly_is_resumed_from_the_last_version_at_once() {
    let rig = Rig::start(server()).await;
    rig.mirror().forget_trail();
    rig.api.forget_requests();
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    let version = rig.informer.last_sync_resource_version();
    let ended = Instant::now();
    rig.api.end_watches(&Ending::Clean);
    rig.settled().await;
    assert!(ended.elapsed() < Duration::from_millis(50), "no back-off: {:?}", ended.elapsed());
    assert_eq!(rig.api.requests().len(), 1, "no list: {:?}", rig.api.requests());
    assert!(rig.api.requests()[0].contains(&format!("resourceVersion={version}")));
    assert_eq!(sorted(rig.mirror().trail()), ["+default/new", "-default/deleted", "~default/changed"]);
    assert!(rig.faults().is_empty(), "{:?}", rig.faults());
}

#[tokio::test(start_paused = true)]
async fn a_watch_interrupted_in_a_line_or_reset_is_resumed_from_the_last_version() {
    for ending in [Ending::MidLine, Ending::Reset] {
        let rig = Rig::start(server()).await;
        rig.api.forget_requests();
        tokio::time::sleep(Duration::from_mins(1)).await;
        gap(&rig.api);
        rig.api.end_watches(&ending);
        rig.settled().await;
        assert_eq!(rig.api.requests().len(), 1, "{ending:?}: {:?}", rig.api.requests());
        assert_eq!(rig.faults().len(), 1, "{ending:?}: {:?}", rig.faults());
    }
}

#[tokio::test(start_paused = true)]
async fn after_410_it_relists_at_the_last_version_and_reports_deletions() {
    for api in [FakeApi::new(), FakeApi::without_streaming()] {
        let rig = Rig::start(seeded(api)).await;
        rig.mirror().forget_trail();
        rig.api.forget_requests();
        gap(&rig.api);
        let version = rig.informer.last_sync_resource_version();
        rig.api.compact();
        rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
        rig.settled().await;
        assert_eq!(sorted(rig.mirror().trail()), ["+default/new", "-default/deleted?", "~default/changed"]);
        let again = &rig.api.requests()[0];
        assert!(again.contains(&format!("resourceVersion={version}")), "{again}");
        assert!(!again.contains("limit="), "a list at a version is not paged: {again}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_last_version_has_expired_for_lists_too_it_lists_the_newest_at_once() {
    let rig = Rig::start(seeded(FakeApi::without_streaming())).await;
    gap(&rig.api);
    rig.api.forget_requests();
    rig.api.plan(PlannedFault::RejectList { code: 410, reason: "Expired", retry_after: None });
    rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
    rig.settled().await;
    let lists = rig.api.requests();
    assert!(lists[0].contains("resourceVersion="), "{lists:?}");
    assert!(!lists[1].contains("resourceVersion=") && !lists[1].contains("watch="), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_rejected_with_500_leads_to_a_relist_after_a_back_off() {
    let rig = Rig::start(server()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    rig.api.plan(PlannedFault::RejectWatch { code: 500, reason: "InternalError", retry_after: None });
    let ended = Instant::now();
    rig.api.end_watches(&Ending::Clean);
    rig.settled().await;
    assert!(ended.elapsed() >= Duration::from_millis(800), "{:?}", ended.elapsed());
    assert_eq!(rig.faults().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_with_a_500_event_leads_to_a_relist() {
    let rig = Rig::start(server()).await;
    gap(&rig.api);
    rig.api.end_watches(&Ending::Error { code: 500, reason: "InternalError", retry_after: None });
    rig.settled().await;
    assert!(rig.mirror().trail().contains(&"-default/deleted?".to_owned()), "{:?}", rig.mirror().trail());
}

#[tokio::test(start_paused = true)]
async fn after_429_it_waits_for_retry_after_and_watches_again_without_a_list() {
    let rig = Rig::start(server()).await;
    rig.api.forget_requests();
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    rig.api.plan(PlannedFault::RejectWatch { code: 429, reason: "TooManyRequests", retry_after: Some(17) });
    let ended = Instant::now();
    rig.api.end_watches(&Ending::Clean);
    rig.settled().await;
    assert!(ended.elapsed() >= Duration::from_secs(17), "{:?}", ended.elapsed());
    assert!(
        rig.api.requests().iter().all(|request| request.contains("watch=true")),
        "{:?}",
        rig.api.requests()
    );
    assert!(!rig.api.requests().iter().any(|request| request.contains("sendInitialEvents")));
}

#[tokio::test(start_paused = true)]
async fn when_connections_are_refused_it_backs_off_and_watches_again_without_a_list() {
    let rig = Rig::start(server()).await;
    rig.api.forget_requests();
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    for _ in 0..5 {
        rig.api.plan(PlannedFault::RefuseWatchConnection);
    }
    rig.api.end_watches(&Ending::Reset);
    rig.settled().await;
    assert_eq!(rig.api.requests().len(), 6);
    assert!(rig.api.requests().iter().all(|request| request.contains("watch=true")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_within_a_second_without_an_event_leads_to_a_relist() {
    let rig = Rig::start(server()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    rig.api.forget_requests();
    rig.api.plan(PlannedFault::EndWatch(Ending::Clean));
    rig.api.end_watches(&Ending::Clean);
    rig.settled().await;
    assert_eq!(rig.api.requests_with("sendInitialEvents").len(), 1, "{:?}", rig.api.requests());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_between_pages_deletes_nothing_and_is_retried() {
    let api = FakeApi::without_streaming();
    for i in 0..1200 {
        api.put_config_map("default", &format!("map-{i:04}"), "1");
    }
    let rig = Rig::start(api).await;
    rig.mirror().forget_trail();
    gap_in_large_list(&rig.api);
    // The list at the last version is rejected, so the next one is at the newest version and paginated.
    rig.api.plan(PlannedFault::RejectList { code: 410, reason: "Expired", retry_after: None });
    rig.api.plan(PlannedFault::RejectNextPage { code: 500, reason: "InternalError" });
    rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
    rig.settled().await;
    let deletions: Vec<_> =
        rig.mirror().trail().into_iter().filter(|received| received.starts_with('-')).collect();
    assert_eq!(deletions, ["-default/map-0700?"], "each deletion once, and only real ones");
}

fn gap_in_large_list(api: &FakeApi) {
    api.unobserved(|api| {
        api.put_config_map("default", "map-0001", "2");
        api.delete_config_map("default", "map-0700");
    });
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_while_being_read_are_listed_again_without_pages() {
    let api = FakeApi::without_streaming();
    for i in 0..1200 {
        api.put_config_map("default", &format!("map-{i:04}"), "1");
    }
    let rig = Rig::start(api).await;
    rig.api.forget_requests();
    gap_in_large_list(&rig.api);
    rig.api.plan(PlannedFault::RejectList { code: 410, reason: "Expired", retry_after: None });
    rig.api.plan(PlannedFault::RejectNextPage { code: 410, reason: "Expired" });
    rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
    rig.settled().await;
    let last = rig.api.requests().into_iter().rfind(|request| !request.contains("watch=")).unwrap();
    assert!(!last.contains("limit=") && !last.contains("continue="), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_an_interrupted_body_is_retried() {
    let rig = Rig::start(seeded(FakeApi::without_streaming())).await;
    gap(&rig.api);
    rig.api.plan(PlannedFault::CutList);
    rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
    rig.settled().await;
    assert!(rig.faults().iter().any(|fault| fault.contains("ends in the middle")), "{:?}", rig.faults());
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_retried_until_it_is_renewed() {
    let rig = Rig::start(server()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    for _ in 0..3 {
        rig.api.plan(PlannedFault::RejectWatch { code: 401, reason: "Unauthorized", retry_after: None });
        rig.api.plan(PlannedFault::RejectList { code: 401, reason: "Unauthorized", retry_after: None });
    }
    rig.api.end_watches(&Ending::Clean);
    rig.settled().await;
    assert!(rig.faults().iter().all(|fault| fault.contains("401 Unauthorized")), "{:?}", rig.faults());
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_to_lower_versions_is_followed() {
    for api in [FakeApi::new(), FakeApi::without_streaming()] {
        let rig = Rig::start(seeded(api)).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        gap(&rig.api);
        rig.api.restore(5);
        rig.settled().await;
        assert!(rig.informer.last_sync_resource_version().parse::<u64>().unwrap() < 100);
        rig.api.put_config_map("default", "later", "1");
        rig.settled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn duplicate_and_out_of_order_bookmarks_do_not_move_the_version_back() {
    let rig = Rig::start(server()).await;
    let revision = rig.api.revision();
    for bookmark in [revision + 50, revision + 50, revision - 2, revision + 40] {
        rig.api.bookmark(bookmark);
    }
    let expected = (revision + 50).to_string();
    eventually("the bookmark counts", || rig.informer.last_sync_resource_version() == expected).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.informer.last_sync_resource_version(), expected);
    assert!(rig.faults().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_reported_once_and_does_not_affect_others() {
    let rig = Rig::start(server()).await;
    let collection = "/api/v1/namespaces/default/configmaps";
    rig.api.put(
        collection,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "odd"},
               "data": {"value": ["s3cret"]}}),
    );
    rig.api.put_config_map("default", "after", "1");
    rig.settled().await;
    let odd = rig.informer.store().get_by_key(&"default/odd".parse().unwrap()).unwrap();
    for _ in 0..3 {
        let error = odd.load().unwrap_err();
        assert_eq!((error.key.to_string().as_str(), error.path.as_str()), ("default/odd", ".data.value"));
    }
    assert_eq!(rig.faults().len(), 1, "{:?}", rig.faults());
    assert!(rig.faults()[0].contains("ConfigMap default/odd"), "{:?}", rig.faults());
    assert!(!rig.faults()[0].contains("s3cret"), "{:?}", rig.faults());
    rig.api.delete_config_map("default", "odd");
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_cached_is_skipped_and_the_version_advances() {
    let rig = Rig::start(server()).await;
    let revision = rig.api.revision();
    rig.api.send_line(&json!({"type": "ADDED", "object": {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "default", "name": "stray", "resourceVersion": (revision + 1).to_string()},
    }}));
    let expected = (revision + 1).to_string();
    eventually("the version advances", || rig.informer.last_sync_resource_version() == expected).await;
    assert_eq!(rig.faults().len(), 1);
    assert!(
        rig.faults()[0].contains("default/stray") && rig.faults()[0].contains("Secret"),
        "{:?}",
        rig.faults()
    );
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_index_function_is_reported_and_does_not_affect_other_objects_and_indexes() {
    let rig = Rig::start(server()).await;
    let by_value = kubewright::cache::IndexFn::new("value", |map: &kubewright::cache::Lazy<_>| {
        let map: std::sync::Arc<k8s_openapi::api::core::v1::ConfigMap> =
            map.load().map_err(|error| error.to_string())?;
        let value = map.data.as_ref().and_then(|data| data.get("value").cloned());
        if value.as_deref() == Some("bad") { Err("a bad value".to_owned()) } else { Ok(value) }
    });
    rig.informer.add_index(by_value).unwrap();
    rig.api.put_config_map("default", "same", "bad");
    rig.api.put_config_map("default", "good", "2");
    rig.settled().await;
    assert!(
        rig.faults()[0].contains("\"value\" has no entry for default/same: a bad value"),
        "{:?}",
        rig.faults()
    );
    let store = rig.informer.store();
    assert_eq!(store.index_keys("value", "2").unwrap(), ["default/good".parse().unwrap()]);
    assert_eq!(store.by_index("namespace", "default").unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_gets_the_next_event_and_the_others_all_of_theirs() {
    let rig = Rig::start(server()).await;
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let _panicking = rig.informer.on_event(move |event| {
        assert!(event.key().name() != "changed", "boom");
        sender.send(event.key().to_string()).unwrap();
    });
    for _ in 0..2 {
        received.recv().await.unwrap();
    }
    rig.api.put_config_map("default", "changed", "2");
    rig.api.put_config_map("default", "later", "1");
    assert_eq!(received.recv().await.unwrap(), "default/later");
    rig.settled().await;
    eventually("the panic is reported", || rig.faults().len() == 2).await;
    assert!(rig.faults()[0].contains("default/changed: boom"), "{:?}", rig.faults());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_never_returns_does_not_block_others() {
    let api = server();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let rig = Rig::start(api).await;
    let stuck = rig.informer.on_event(move |_| {
        // Blocks the thread until the test ends and the sender is dropped.
        let _ = held.recv();
    });
    for i in 0..100 {
        rig.api.put_config_map("default", "changed", &i.to_string());
        rig.api.put_config_map("default", &format!("new-{i}"), "1");
    }
    rig.api.delete_config_map("default", "deleted");
    rig.settled().await;
    assert!(rig.informer.pending_events() <= 103, "one entry per object: {}", rig.informer.pending_events());
    drop(release);
    drop(stuck);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_changes_of_one_object_behind_a_slow_handler_are_one_event() {
    let rig = Rig::start(server()).await;
    let mut slow = rig.informer.subscribe();
    for _ in 0..3 {
        slow.next().await.unwrap();
    }
    for i in 0..100_000u32 {
        rig.api.put_config_map("default", "changed", &i.to_string());
        if i % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    rig.settled().await;
    assert_eq!(rig.informer.pending_events(), 1);
    let last = slow.next().await.unwrap();
    assert_eq!(last.object().load().unwrap().data.as_ref().unwrap()["value"], "99999");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_initial_events_that_never_ends_falls_back_to_a_list() {
    let api = server();
    api.plan(PlannedFault::SilentWatch);
    let started = Instant::now();
    let rig = Rig::start(api).await;
    assert!(started.elapsed() >= Duration::from_secs(30) && started.elapsed() < Duration::from_secs(32));
    assert_eq!(rig.api.requests()[1].split('?').next(), Some("GET /api/v1/configmaps"));
    assert!(rig.api.requests()[1].contains("resourceVersion=0"), "{:?}", rig.api.requests());
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_is_replaced() {
    let rig = Rig::start(server()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    gap(&rig.api);
    rig.api.plan(PlannedFault::SilentWatch);
    rig.api.end_watches(&Ending::Clean);
    tokio::time::sleep(Duration::from_mins(12)).await;
    rig.settled().await;
    assert!(rig.faults().iter().any(|fault| fault.contains("nothing arrived")), "{:?}", rig.faults());
}
