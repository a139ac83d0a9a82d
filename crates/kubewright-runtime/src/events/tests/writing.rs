//! Server errors, full buffers and shutdown.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::support::{Fault, Server, pod, run_writer, scrape};
use crate::events::EventMetrics;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn server_errors_are_retried_every_ten_seconds() {
    let server = Server::new();
    server.inject([Fault::Reset, Fault::code(503, "ServiceUnavailable"), Fault::code(500, "InternalError")]);
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "m");
    sleep(SECOND * 60).await;
    assert_eq!(server.shown(), ["m x1"]);
    let times: Vec<Duration> = server.requests().into_iter().map(|(at, _)| at).collect();
    assert_eq!(times[0], Duration::ZERO);
    assert!(times[1] < SECOND * 10, "the first wait is random: {times:?}");
    let tenths = |from: Duration, to: Duration| to.saturating_sub(from).as_millis().div_ceil(100);
    assert_eq!((tenths(times[1], times[2]), tenths(times[2], times[3])), (100, 100), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() {
    let server = Server::new();
    server.inject([Fault::Refuse(json!({
        "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "slow",
        "details": {"retryAfterSeconds": 33},
    }))]);
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "m");
    sleep(SECOND * 32).await;
    assert!(server.events().is_empty());
    sleep(SECOND * 2).await;
    assert_eq!(server.shown(), ["m x1"]);
}

#[tokio::test(start_paused = true)]
async fn after_twelve_attempts_an_event_is_abandoned_and_the_next_one_is_written() {
    let server = Server::new();
    let metrics = EventMetrics::new();
    server.inject(vec![Fault::Reset; 12]);
    let events = server.broadcaster().metrics(&metrics).start();
    events.recorder("x").normal(&pod("a"), "R", "lost");
    events.recorder("x").normal(&pod("a"), "R", "kept");
    sleep(SECOND * 300).await;
    assert_eq!(server.shown(), ["kept x1"]);
    let text = scrape(&metrics);
    assert!(text.contains(r#"{component="x",result="abandoned"} 1"#), "{text}");
    assert!(text.contains(r#"{component="x",result="written"} 1"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_not_retried() {
    let terminating = Fault::Refuse(json!({
        "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "going",
        "details": {"causes": [{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated"}]},
    }));
    let faults = [
        terminating,
        Fault::code(403, "Forbidden"),
        Fault::code(400, "BadRequest"),
        Fault::code(422, "Invalid"),
        Fault::code(404, "NotFound"),
    ];
    let server = Server::new();
    let metrics = EventMetrics::new();
    server.inject(faults.clone());
    let events = server.broadcaster().metrics(&metrics).start();
    for n in 0..faults.len() {
        events.recorder("x").normal(&pod("a"), format!("R{n}"), "m");
    }
    sleep(SECOND * 60).await;
    assert_eq!(server.requests().len(), faults.len());
    assert!(scrape(&metrics).contains(r#"{component="x",result="refused"} 5"#));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_response_was_lost_is_not_written_twice() {
    let server = Server::new();
    server.inject([Fault::LoseResponse]);
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "m");
    sleep(SECOND * 60).await;
    assert_eq!(server.shown(), ["m x1"]);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_deleted_event_is_created_with_its_count() {
    let server = Server::new();
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "m");
    run_writer().await;
    server.clear();
    sleep(SECOND * 3700).await;
    events.recorder("x").normal(&pod("a"), "R", "m");
    run_writer().await;
    assert_eq!(server.shown(), ["m x2"]);
    assert_eq!(server.events()[0]["firstTimestamp"], "2026-01-01T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_drops_and_counts_and_never_waits() {
    let server = Server::new();
    let metrics = EventMetrics::new();
    let events = server.broadcaster().metrics(&metrics).buffer(10).start();
    let recorder = events.recorder("x");
    let begun = Instant::now();
    for n in 0..30 {
        recorder.normal(&pod(&format!("p{n}")), "R", "m");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    run_writer().await;
    assert_eq!(server.events().len(), 10);
    assert!(scrape(&metrics).contains(r#"{component="x",result="dropped"} 20"#));
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_remaining_events() {
    let server = Server::new();
    let metrics = EventMetrics::new();
    let events = server.broadcaster().metrics(&metrics).start();
    let recorder = events.recorder("x");
    for n in 0..100 {
        recorder.normal(&pod(&format!("p{n}")), "R", "m");
    }
    assert!(events.shutdown(SECOND).await);
    assert_eq!(server.events().len(), 100);
    recorder.normal(&pod("late"), "R", "m");
    assert!(scrape(&metrics).contains(r#"{component="x",result="dropped"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_failing_server() {
    let server = Server::new();
    server.inject([Fault::Reset, Fault::Reset, Fault::LoseResponse]);
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "being retried");
    run_writer().await;
    events.recorder("x").normal(&pod("b"), "R", "never answered");
    let begun = Instant::now();
    assert!(!events.shutdown(SECOND * 5).await);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_broadcaster_writes_remaining_events_in_the_background() {
    let server = Server::new();
    let events = server.broadcaster().start();
    events.recorder("x").normal(&pod("a"), "R", "m");
    drop(events);
    run_writer().await;
    assert_eq!(server.shown(), ["m x1"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_about_an_object_without_a_name_is_refused() {
    let server = Server::new();
    let metrics = EventMetrics::new();
    let events = server.broadcaster().metrics(&metrics).start();
    events.recorder("x").normal(&Pod::default(), "R", "m");
    run_writer().await;
    assert!(server.requests().is_empty());
    assert!(scrape(&metrics).contains(r#"{component="x",result="refused"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn annotations_action_and_related_object_are_written() {
    let server = Server::new();
    let events = server.broadcaster().start();
    let recorder = events.recorder("x");
    recorder.event(&pod("a")).related(&pod("b")).action("Moving").annotation("k", "v").normal("R", "m");
    run_writer().await;
    let event = &server.events()[0];
    assert_eq!(event["related"]["name"], "b");
    assert_eq!(event["action"], "Moving");
    assert_eq!(event["metadata"]["annotations"], json!({"k": "v"}));
}
