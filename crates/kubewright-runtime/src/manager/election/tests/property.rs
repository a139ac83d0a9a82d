//! Random schedules of misfortune.

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

use super::rig::{Machine, Server};

#[derive(Debug, Clone)]
enum Misfortune {
    Pause(u64),
    CutOff(u64),
    Deafen(u64),
    Refuse(u64),
    Slow(u64),
    Skew(i64),
    Freeze,
    Label,
}

fn misfortune() -> impl Strategy<Value = Misfortune> {
    prop_oneof![
        (1u64..40_000).prop_map(Misfortune::Pause),
        (1u64..40_000).prop_map(Misfortune::CutOff),
        (1u64..40_000).prop_map(Misfortune::Deafen),
        (1u64..20_000).prop_map(Misfortune::Refuse),
        (0u64..4_000).prop_map(Misfortune::Slow),
        (-100_000i64..100_000).prop_map(Misfortune::Skew),
        Just(Misfortune::Freeze),
        Just(Misfortune::Label),
    ]
}

fn strike(server: &Server, machine: &Machine, misfortune: &Misfortune) {
    let millis = Duration::from_millis;
    match misfortune {
        Misfortune::Pause(time) => machine.pause(millis(*time)),
        Misfortune::CutOff(time) => machine.cut_off(millis(*time)),
        Misfortune::Deafen(time) => machine.deafen(millis(*time)),
        Misfortune::Refuse(time) => machine.refuse(millis(*time)),
        Misfortune::Slow(longest) => machine.slow_down(millis(*longest)),
        Misfortune::Skew(seconds) => machine.change(|state| {
            state.frozen = None;
            state.skew = SignedDuration::from_secs(*seconds);
        }),
        Misfortune::Freeze => {
            let now = machine.clock().now();
            machine.change(|state| state.frozen = Some(now));
        }
        Misfortune::Label => server.label(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn under_any_schedule_at_most_one_leads_and_afterwards_one_does(
        patience in prop_oneof![Just(1_000_000u64), 5_000u64..60_000],
        schedule in prop::collection::vec((0u64..15_000, 0usize..3, misfortune()), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            let machines = ["a", "b", "c"].map(|name| server.machine(name));
            let patience = Duration::from_millis(patience);
            let tasks = machines.clone().map(|machine| tokio::spawn(machine.run(machine.clone().operate(patience))));
            let mut next = Instant::now();
            for (wait, at, misfortune) in &schedule {
                next += Duration::from_millis(*wait);
                while Instant::now() < next {
                    server.check();
                    sleep_until(next.min(Instant::now() + Duration::from_millis(250))).await;
                }
                strike(&server, &machines[*at], misfortune);
            }
            // When the trouble is over, so is the time without a leader.
            for machine in &machines {
                machine.slow_down(Duration::ZERO);
            }
            let before = server.acts().len();
            let calm = Instant::now();
            while calm.elapsed() < Duration::from_mins(2) {
                server.check();
                sleep(Duration::from_millis(250)).await;
            }
            assert!(server.acts().len() > before, "nobody leads");
            for task in tasks {
                assert!(!task.is_finished(), "a candidate has panicked: {:?}", task.await.err());
            }
        });
    }
}
