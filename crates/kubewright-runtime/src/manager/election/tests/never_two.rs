//! At most one leader at any time, whatever fails.

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::rig::{Machine, Server};

const SECOND: Duration = Duration::from_secs(1);
const FOR_EVER: Duration = Duration::from_hours(1000);

/// Runs machines, checks every 10 ms, and returns who acted in which order.
async fn observe(
    server: &Server,
    machines: &[Machine],
    duration: Duration,
    script: impl Future<Output = ()>,
) -> Vec<String> {
    let tasks: Vec<_> =
        machines.iter().map(|machine| tokio::spawn(machine.run(machine.clone().operate(FOR_EVER)))).collect();
    let watch = async {
        let begun = Instant::now();
        while begun.elapsed() < duration {
            server.check();
            sleep(Duration::from_millis(10)).await;
        }
    };
    futures::future::join(watch, script).await;
    for task in tasks {
        assert!(!task.is_finished(), "a candidate has panicked: {:?}", task.await.err());
        task.abort();
    }
    let mut order: Vec<String> = server.acts().into_iter().map(|(_, who)| who).collect();
    order.dedup();
    order
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_or_stand_still_change_nothing() {
    let server = Server::new();
    let machines = ["a", "b", "c"].map(|name| server.machine(name));
    machines[1].change(|machine| machine.skew = SignedDuration::from_hours(5));
    machines[2].change(|machine| machine.skew = SignedDuration::from_hours(-5));
    let frozen = machines[0].clock().now();
    machines[0].change(|machine| machine.frozen = Some(frozen));
    let script = async {
        sleep(SECOND * 100).await;
        machines[0].change(|machine| {
            machine.frozen = None;
            machine.skew = SignedDuration::from_hours(-1);
        });
    };
    let order = observe(&server, &machines, SECOND * 200, script).await;
    assert_eq!(order, ["a"], "a is alive, whatever its clock shows");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_suspended_beyond_its_lease_does_not_lead_when_it_resumes() {
    let server = Server::new();
    let machines = ["a", "b"].map(|name| server.machine(name));
    let script = async {
        sleep(SECOND * 20).await;
        machines[0].pause(SECOND * 40);
    };
    assert_eq!(observe(&server, &machines, SECOND * 100, script).await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_partitioned_leader_stops_before_the_next_one_starts() {
    let server = Server::new();
    let machines = ["a", "b"].map(|name| server.machine(name));
    let script = async {
        sleep(SECOND * 20).await;
        machines[0].cut_off(SECOND * 60);
    };
    assert_eq!(observe(&server, &machines, SECOND * 150, script).await, ["a", "b"]);
    let acts = server.acts();
    let change = acts.windows(2).find(|pair| pair[0].1 != pair[1].1).unwrap();
    let (last, first) = (change[0].0, change[1].0);
    assert!(last <= SECOND * 30, "{last:?}: ten seconds after the last renewal");
    assert!(first >= last + SECOND * 4, "{last:?} {first:?}: room for requests in flight");
    assert!(first <= SECOND * 42, "{first:?}: and no longer than needed");
}

#[tokio::test(start_paused = true)]
async fn renewals_that_are_written_without_a_response_end_leadership_and_keep_others_out() {
    let server = Server::new();
    let machines = ["a", "b"].map(|name| server.machine(name));
    let script = async {
        sleep(SECOND * 20).await;
        machines[0].lose_responses(SECOND * 60);
    };
    observe(&server, &machines, SECOND * 150, script).await;
}

#[tokio::test(start_paused = true)]
async fn server_errors_for_less_than_the_deadline_cost_no_leadership() {
    let server = Server::new();
    let machines = ["a", "b"].map(|name| server.machine(name));
    let script = async {
        sleep(SECOND * 20).await;
        machines[0].refuse(SECOND * 5);
        sleep(SECOND * 20).await;
        machines[0].cut_off(SECOND * 4);
    };
    assert_eq!(observe(&server, &machines, SECOND * 100, script).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_network_does_not_let_two_in() {
    let server = Server::new();
    let machines = ["a", "b", "c", "d"].map(|name| server.machine(name));
    for machine in &machines {
        machine.slow_down(SECOND * 4);
    }
    let order = observe(&server, &machines, SECOND * 900, async {}).await;
    assert!(!order.is_empty(), "a candidate gets through");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_respected_by_candidates_that_observed_it() {
    let server = Server::new();
    let machines = ["a", "b", "c"].map(|name| server.machine(name));
    let script = async {
        for _ in 0..20 {
            sleep(Duration::from_millis(7300)).await;
            server.delete();
        }
    };
    assert_eq!(observe(&server, &machines, SECOND * 160, script).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_client_writes_is_lost_at_the_next_renewal() {
    let server = Server::new();
    let leadership = server.machine("a").election().build().unwrap().acquire().await;
    sleep(SECOND * 5).await;
    server.put(&json!({"holderIdentity": "by hand", "leaseDurationSeconds": 60}));
    let changed = Instant::now();
    leadership.handle().ended().await;
    assert!(changed.elapsed() <= SECOND * 2, "{:?}", changed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn invalid_leases_are_waited_for_with_their_duration_or_the_default() {
    for (spec, wait) in [
        (json!({}), 0..1),
        (json!({"holderIdentity": ""}), 0..1),
        (json!({"holderIdentity": "x"}), 15..20),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": 0}), 15..20),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": -7}), 15..20),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": 1}), 1..5),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": 100_000}), 100_000..100_005),
        (
            json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:00:00.000000Z"}),
            15..20,
        ),
        (
            json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"}),
            15..20,
        ),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "leaseTransitions": i32::MAX}), 15..20),
        (json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "leaseTransitions": -3}), 15..20),
    ] {
        let server = Server::new();
        server.put(&spec);
        let begun = Instant::now();
        let leadership = server.machine("a").election().build().unwrap().acquire().await;
        let (waited, transitions) = (begun.elapsed().as_secs(), leadership.handle().transitions());
        assert!(wait.contains(&waited), "{spec}: {waited}");
        assert!(transitions >= 1, "{spec}: {transitions}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_is_cancelled_at_the_deadline() {
    let server = Server::new();
    let machine = server.machine("a");
    machine.slow_down(Duration::from_millis(900));
    let leadership = machine.election().build().unwrap().acquire().await;
    sleep(SECOND * 7).await;
    machine.cut_off(SECOND * 60);
    let handle = leadership.handle();
    let (token, until) = (handle.cancellation_token(), handle.expires_at().unwrap());
    token.cancelled().await;
    assert!(Instant::now() <= until + Duration::from_millis(1));
    assert!(!handle.is_leader() && handle.expires_at().is_none());
}
