//! Random schedules of faults.

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

use super::rig::{Machine, Server};

#[derive(Debug, Clone)]
enum Fault {
    Pause(u64),
    CutOff(u64),
    LoseResponses(u64),
    Refuse(u64),
    Slow(u64),
    Skew(i64),
    Freeze,
    Label,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (1u64..40_000).prop_map(Fault::Pause),
        (1u64..40_000).prop_map(Fault::CutOff),
        (1u64..40_000).prop_map(Fault::LoseResponses),
        (1u64..20_000).prop_map(Fault::Refuse),
        (0u64..4_000).prop_map(Fault::Slow),
        (-100_000i64..100_000).prop_map(Fault::Skew),
        Just(Fault::Freeze),
        Just(Fault::Label),
    ]
}

fn inject(server: &Server, machine: &Machine, fault: &Fault) {
    let millis = Duration::from_millis;
    match fault {
        Fault::Pause(time) => machine.pause(millis(*time)),
        Fault::CutOff(time) => machine.cut_off(millis(*time)),
        Fault::LoseResponses(time) => machine.lose_responses(millis(*time)),
        Fault::Refuse(time) => machine.refuse(millis(*time)),
        Fault::Slow(longest) => machine.slow_down(millis(*longest)),
        Fault::Skew(seconds) => machine.change(|state| {
            state.frozen = None;
            state.skew = SignedDuration::from_secs(*seconds);
        }),
        Fault::Freeze => {
            let now = machine.clock().now();
            machine.change(|state| state.frozen = Some(now));
        }
        Fault::Label => server.label(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn under_any_schedule_at_most_one_leads_and_afterwards_one_does(
        lead_for in prop_oneof![Just(1_000_000u64), 5_000u64..60_000],
        schedule in prop::collection::vec((0u64..15_000, 0usize..3, fault()), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            let machines = ["a", "b", "c"].map(|name| server.machine(name));
            let lead_for = Duration::from_millis(lead_for);
            let tasks = machines.clone().map(|machine| tokio::spawn(machine.run(machine.clone().operate(lead_for))));
            let mut next = Instant::now();
            for (wait, at, fault) in &schedule {
                next += Duration::from_millis(*wait);
                while Instant::now() < next {
                    server.check();
                    sleep_until(next.min(Instant::now() + Duration::from_millis(250))).await;
                }
                inject(&server, &machines[*at], fault);
            }
            // When the faults are over, one candidate leads again.
            for machine in &machines {
                machine.slow_down(Duration::ZERO);
            }
            let before = server.acts().len();
            let calm = Instant::now();
            while calm.elapsed() < Duration::from_mins(2) {
                server.check();
                sleep(Duration::from_millis(250)).await;
            }
            assert!(server.acts().len() > before, "there is no leader");
            for task in tasks {
                assert!(!task.is_finished(), "a candidate has panicked: {:?}", task.await.err());
            }
        });
    }
}
