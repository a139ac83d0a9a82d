//! After any sequence of changes and faults, server, cache and handler agree.

mod support;

use std::time::Duration;

use proptest::prelude::*;
use support::{Ending, FakeApi, PlannedFault, Rig};

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Delete(u8),
    /// A change that the current watch does not observe.
    UnobservedPut(u8),
    UnobservedDelete(u8),
    End(Ending),
    Plan(PlannedFault),
    Compact,
    Restore,
    Bookmark,
    Wait(u16),
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Clean),
        Just(Ending::MidLine),
        Just(Ending::Reset),
        prop_oneof![Just((410, "Expired")), Just((500, "InternalError")), Just((429, "TooManyRequests"))]
            .prop_map(|(code, reason)| Ending::Error { code, reason, retry_after: None }),
    ]
}

fn planned_fault() -> impl Strategy<Value = PlannedFault> {
    let refusal =
        prop_oneof![Just((401, "Unauthorized")), Just((410, "Expired")), Just((500, "InternalError"))]
            .boxed();
    prop_oneof![
        refusal.clone().prop_map(|(code, reason)| PlannedFault::RejectList {
            code,
            reason,
            retry_after: None
        }),
        refusal.prop_map(|(code, reason)| PlannedFault::RejectWatch { code, reason, retry_after: Some(3) }),
        Just(PlannedFault::RefuseListConnection),
        Just(PlannedFault::RefuseWatchConnection),
        Just(PlannedFault::CutList),
        ending().prop_map(PlannedFault::EndWatch),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..6).prop_map(Step::Put),
        2 => (0u8..6).prop_map(Step::Delete),
        2 => (0u8..6).prop_map(Step::UnobservedPut),
        2 => (0u8..6).prop_map(Step::UnobservedDelete),
        3 => ending().prop_map(Step::End),
        2 => planned_fault().prop_map(Step::Plan),
        1 => Just(Step::Compact),
        1 => Just(Step::Restore),
        1 => Just(Step::Bookmark),
        3 => (0u16..3000).prop_map(Step::Wait),
    ]
}

async fn take(api: &FakeApi, step: Step, at: usize) {
    let name = |i: u8| format!("map-{i}");
    match step {
        Step::Put(i) => drop(api.put_config_map("default", &name(i), &at.to_string())),
        Step::Delete(i) => api.delete_config_map("default", &name(i)),
        Step::UnobservedPut(i) => {
            api.unobserved(|api| drop(api.put_config_map("default", &name(i), &at.to_string())));
        }
        Step::UnobservedDelete(i) => api.unobserved(|api| api.delete_config_map("default", &name(i))),
        Step::End(ending) => api.end_watches(&ending),
        Step::Plan(planned_fault) => api.plan(planned_fault),
        Step::Compact => api.compact(),
        // A restored server continues from an earlier revision.
        Step::Restore => api.restore(api.revision() / 2),
        Step::Bookmark => api.bookmark(api.revision()),
        Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds.into())).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn server_cache_and_handler_agree_after_any_faults(
        streaming: bool,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let rig = Rig::prepare(if streaming { FakeApi::new() } else { FakeApi::without_streaming() });
            for (at, step) in steps.into_iter().enumerate() {
                take(&rig.api, step, at).await;
            }
            // First all planned faults; then a relist that observes everything.
            tokio::time::sleep(Duration::from_mins(20)).await;
            rig.api.compact();
            rig.api.end_watches(&Ending::Error { code: 410, reason: "Expired", retry_after: None });
            rig.settled().await;
        });
    }
}
