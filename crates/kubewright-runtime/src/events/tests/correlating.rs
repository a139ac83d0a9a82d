//! Aggregation, counting and rate limits.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use tokio::time::sleep;

use super::{
    super::CorrelatorOptions,
    support::{Server, pod, run_writer, scrape},
};
use crate::events::EventMetrics;

#[tokio::test(start_paused = true)]
async fn seven_times_the_same_shows_as_x7_over_16m() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let recorder = events.recorder("kubelet").on_host("node-1");
    for minute in 0..7 {
        if minute > 0 {
            sleep(Duration::from_secs(160)).await;
        }
        recorder.warning(&pod("web"), "BackOff", "Back-off restarting failed container");
        run_writer().await;
    }
    let all = server.events();
    let [event] = &all[..] else { panic!("{all:?}") };
    assert_eq!(event["count"], 7);
    assert_eq!(event["firstTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(event["lastTimestamp"], "2026-01-01T00:16:00Z");
    assert_eq!((&event["type"], &event["reason"]), (&"Warning".into(), &"BackOff".into()));
    assert_eq!(event["source"], serde_json::json!({"component": "kubelet", "host": "node-1"}));
    assert_eq!(event["reportingComponent"], "kubelet");
    assert_eq!(event["reportingInstance"], "node-1");
    let object = &event["involvedObject"];
    assert_eq!((&object["kind"], &object["uid"]), (&"Pod".into(), &"uid-web".into()));
    assert!(event["metadata"]["name"].as_str().unwrap().starts_with("web."));
    let requests: Vec<String> = server.requests().into_iter().map(|(_, request)| request).collect();
    assert_eq!(requests[0], "POST /api/v1/namespaces/shop/events");
    assert!(requests[1].starts_with("PATCH /api/v1/namespaces/shop/events/web."), "{}", requests[1]);
}

#[tokio::test(start_paused = true)]
async fn objects_reasons_types_and_components_are_counted_separately() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let (one, two) = (events.recorder("one"), events.recorder("two"));
    for _ in 0..2 {
        one.normal(&pod("a"), "R", "m");
        one.normal(&pod("b"), "R", "m");
        one.normal(&pod("a"), "S", "m");
        one.warning(&pod("a"), "R", "m");
        two.normal(&pod("a"), "R", "m");
        one.normal(&pod("a"), "R", "n");
    }
    run_writer().await;
    assert_eq!(server.shown(), ["m x2", "m x2", "m x2", "m x2", "m x2", "n x2"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_recreated_has_its_own_count() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let mut again = pod("a");
    again.metadata.uid = Some("another".into());
    events.recorder("x").normal(&pod("a"), "R", "m");
    events.recorder("x").normal(&again, "R", "m");
    run_writer().await;
    assert_eq!(server.shown(), ["m x1", "m x1"]);
}

#[tokio::test(start_paused = true)]
async fn similar_messages_are_aggregated_from_the_tenth_on() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let recorder = events.recorder("x");
    for n in 1..=12 {
        recorder.normal(&pod("a"), "Failed", format!("try {n}"));
        sleep(Duration::from_secs(1)).await;
    }
    let shown = server.shown();
    assert_eq!(shown.len(), 10, "{shown:?}");
    assert_eq!(shown[8], "try 9 x1");
    assert_eq!(shown[9], "(combined from similar events): try 12 x3");
}

#[tokio::test(start_paused = true)]
async fn aggregation_starts_over_after_ten_quiet_minutes() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let recorder = events.recorder("x");
    for n in 1..=9 {
        recorder.normal(&pod("a"), "Failed", format!("try {n}"));
    }
    sleep(Duration::from_secs(601)).await;
    recorder.normal(&pod("a"), "Failed", "try 10");
    run_writer().await;
    assert_eq!(server.shown().last().unwrap(), "try 10 x1");
}

#[tokio::test(start_paused = true)]
async fn more_than_25_at_once_are_filtered_and_counted_into_the_next_that_passes() {
    let server = Server::new();
    let metrics = EventMetrics::new();
    let events = server.broadcaster().metrics(&metrics).start();
    let recorder = events.recorder("x");
    for _ in 0..40 {
        recorder.normal(&pod("a"), "R", "m");
    }
    recorder.normal(&pod("b"), "R", "m");
    recorder.warning(&pod("a"), "R", "m");
    run_writer().await;
    assert_eq!(server.shown(), ["m x25", "m x1", "m x1"], "others are not affected");
    assert!(scrape(&metrics).contains(r#"kubewright_events_total{component="x",result="filtered"} 15"#));

    sleep(Duration::from_secs(299)).await;
    recorder.normal(&pod("a"), "R", "m");
    run_writer().await;
    assert_eq!(server.shown()[0], "m x25");
    sleep(Duration::from_secs(1)).await;
    recorder.normal(&pod("a"), "R", "m");
    recorder.normal(&pod("a"), "R", "m");
    run_writer().await;
    assert_eq!(server.shown()[0], "m x42", "one token was refilled");
}

#[tokio::test(start_paused = true)]
async fn the_options_are_respected() {
    let server = Server::new();
    let options = CorrelatorOptions {
        burst: 3,
        refill_interval: Duration::ZERO,
        max_similar: 2,
        cache_size: 1,
        ..CorrelatorOptions::default()
    };
    let events = server.broadcaster().correlator_options(options).start();
    let recorder = events.recorder("x");
    for n in 0..30 {
        recorder.normal(&pod("a"), "R", format!("{n}"));
    }
    run_writer().await;
    assert_eq!(server.shown(), ["0 x1", "(combined from similar events): 29 x29"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_cluster_scoped_objects_are_in_default() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let mut node = Node::default();
    node.metadata.name = Some("node-1".into());
    events.recorder("x").normal(&node, "Ready", "m");
    let mut odd = node.clone();
    odd.metadata.name = Some("system:node".into());
    events.recorder("x").normal(&odd, "Ready", "m");
    run_writer().await;
    assert_eq!(server.requests()[0].1, "POST /api/v1/namespaces/default/events");
    let name = server.events()[1]["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name.len(), 36, "{name}: names of events are DNS names");
}
