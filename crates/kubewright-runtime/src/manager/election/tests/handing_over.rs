//! Acquiring, renewing and releasing the lease, and what is written into it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    super::{ElectionMetrics, LeaseLost},
    rig::Server,
};
use crate::events::FakeRecorder;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_first_candidate_creates_the_lease_as_client_go_writes_it() {
    let server = Server::new();
    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    assert_eq!(leadership.handle().transitions(), 0);
    assert_eq!(leadership.handle().identity(), "a");
    assert_eq!(
        server.lease()["spec"],
        json!({
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
        })
    );
    assert_eq!(
        server.requests(),
        [
            "GET /apis/coordination.k8s.io/v1/namespaces/shop/leases/work",
            "POST /apis/coordination.k8s.io/v1/namespaces/shop/leases"
        ]
    );
    sleep(SECOND * 5).await;
    assert_eq!(server.lease()["spec"]["renewTime"], "2026-01-01T00:00:04.000000Z");
    assert_eq!(server.lease()["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(server.requests().len(), 2, "a renewal is one write, without a read");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_attempt() {
    let server = Server::new();
    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    let follower = server.machine("b");
    let waiting = tokio::spawn(async move { follower.election().build().unwrap().acquire().await });
    sleep(SECOND * 30).await;
    assert_eq!(server.holder(), "a");
    let handle = leadership.handle();
    leadership.release().await;
    assert!(!handle.is_leader());
    assert_eq!(server.lease()["spec"]["leaseDurationSeconds"], 1);
    assert_eq!(server.holder(), "");
    let released = Instant::now();
    let next = waiting.await.unwrap();
    assert!(released.elapsed() <= Duration::from_millis(4400), "{:?}", released.elapsed());
    assert_eq!(next.handle().transitions(), 1);
    assert_eq!(server.lease()["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_guard_releases_the_lease_too() {
    let server = Server::new();
    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    let handle = leadership.handle();
    drop(leadership);
    assert!(!handle.is_leader(), "at once");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn without_release_on_cancel_the_lease_expires() {
    let server = Server::new();
    let election = server.machine("a").election().release_on_cancel(false).build().unwrap();
    election.acquire().await.release().await;
    assert_eq!(server.holder(), "a");
    let begun = Instant::now();
    let _next = server.machine("b").election().build().unwrap().acquire().await;
    assert!((SECOND * 15..SECOND * 20).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_release_survives_a_change_of_labels_and_respects_a_new_leader() {
    let server = Server::new();
    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    server.label();
    leadership.release().await;
    assert_eq!(server.holder(), "");
    assert!(!server.lease()["metadata"]["labels"]["touched"].is_null(), "labels stay");

    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    server.put(&json!({"holderIdentity": "thief", "leaseDurationSeconds": 15}));
    leadership.release().await;
    assert_eq!(server.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn work_ends_with_the_lease_and_the_lease_with_the_work() {
    let server = Server::new();
    let machine = server.machine("a");
    let election = machine.election().build().unwrap();
    assert_eq!(election.lead(|handle| async move { handle.is_leader() }).await, Ok(true));
    assert_eq!(server.holder(), "", "released");

    let begun = Instant::now();
    let lost = election.lead(|_| async {
        machine.cut_off(SECOND * 60);
        std::future::pending::<()>().await;
    });
    assert_eq!(lost.await, Err(LeaseLost { lease: "shop/work".into() }));
    assert_eq!(begun.elapsed(), SECOND * 10, "the renew deadline after the last renewal that was sent");
    assert_eq!(server.holder(), "a", "a lost lease is not released: the work may take a moment to stop");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_the_same_identity_from_before_a_restart_is_waited_for() {
    let server = Server::new();
    let election = server.machine("a").election().release_on_cancel(false).build().unwrap();
    drop(election.acquire().await);
    let begun = Instant::now();
    let _again = election.acquire().await;
    assert!(begun.elapsed() >= SECOND * 15, "another process may use the same identity");
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_response_was_lost_is_recognised() {
    let server = Server::new();
    let machine = server.machine("a");
    machine.lose_responses(SECOND * 12);
    server.put(&json!({"leaseTransitions": 4}));
    let begun = Instant::now();
    let leadership = machine.election().build().unwrap().acquire().await;
    assert!(begun.elapsed() < SECOND * 20, "{:?}", begun.elapsed());
    assert_eq!(leadership.handle().transitions(), 5, "one transition, not two");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_is_reported_to_callbacks_and_events() {
    let server = Server::new();
    let (leaders, fake) = (Arc::new(Mutex::new(Vec::new())), FakeRecorder::new());
    let tell = {
        let leaders = Arc::clone(&leaders);
        move |leader: &str| leaders.lock().push(leader.to_owned())
    };
    server.put(&json!({"holderIdentity": "old", "leaseDurationSeconds": 3}));
    let builder = server.machine("a").election().on_new_leader(tell).recorder(fake.recorder("x"));
    builder.build().unwrap().acquire().await.release().await;
    assert_eq!(*leaders.lock(), ["old", "a"]);
    assert_eq!(
        fake.lines(),
        ["Normal LeaderElection a became leader", "Normal LeaderElection a stopped leading"]
    );
    assert_eq!(fake.take()[0].involved_object.name.as_deref(), Some("work"));
}

#[tokio::test(start_paused = true)]
async fn metrics_have_client_gos_names() {
    let server = Server::new();
    let metrics = ElectionMetrics::new();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics.clone()));
    let scrape = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    let leadership = server.machine("a").election().metrics(&metrics).build().unwrap().acquire().await;
    assert!(scrape().contains(r#"leader_election_master_status{name="work"} 1"#), "{}", scrape());
    server.label();
    sleep(SECOND * 3).await;
    assert!(leadership.handle().is_leader(), "a label does not change the leader");
    assert!(scrape().contains(r#"leader_election_slowpath_total{name="work"} 1"#), "{}", scrape());
    leadership.release().await;
    assert!(scrape().contains(r#"leader_election_master_status{name="work"} 0"#), "{}", scrape());
}
