use std::{cell::RefCell, panic::catch_unwind};

use super::*;
use crate::HarnessError;

const CONFIG: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: colours}}";

/// Runs a test; returns what it prints and its result.
fn run<T: Outcome>(test: impl AsyncFnOnce(Cluster) -> T) -> (String, Result<T, String>) {
    let printed = RefCell::new(String::new());
    let setup = Setup::new("crate::name").nodes(0);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        setup.run_and_report(test, |text| text.clone_into(&mut printed.borrow_mut()))
    }));
    let ended = ended.map_err(|panic| *panic.downcast::<String>().expect("a message"));
    (printed.into_inner(), ended)
}

#[test]
fn a_test_that_passes_prints_nothing() {
    let (printed, ended) = run(async |cluster| cluster.apply(CONFIG).await.map(drop));
    assert!(ended.expect("no panic").is_ok());
    assert_eq!(printed, "");
}

#[test]
fn a_test_that_panics_prints_a_report_and_still_panics() {
    let (printed, ended) = run(async |cluster: Cluster| {
        cluster.apply(CONFIG).await.expect("it is applied");
        assert_eq!(1, 2, "counting");
    });
    assert!(ended.expect_err("it panicked").contains("counting"));
    assert!(
        printed.starts_with("crate::name has failed; the cluster at 2026-01-01T00:00:00.000Z, 0 s after"),
        "{printed}"
    );
    assert!(printed.contains("  ConfigMap default/colours\n"), "{printed}");
}

#[test]
fn a_test_that_returns_an_error_prints_a_report_and_returns_it() {
    let (printed, ended) = run(async |cluster| {
        cluster.apply(CONFIG).await?;
        cluster.get::<k8s_openapi::api::core::v1::Secret>("default/none").await.map(drop)
    });
    assert!(matches!(ended, Ok(Err(HarnessError::Missing { .. }))));
    assert!(printed.contains("  ConfigMap default/colours\n"), "{printed}");
}

#[test]
fn a_test_that_waits_for_ever_times_out() {
    let setup = Setup { limit: Duration::from_hours(1), ..Setup::new("crate::name").nodes(0) };
    let ended = catch_unwind(|| setup.run_and_report(async |_| std::future::pending::<()>().await, |_| ()));
    let printed = ended.expect_err("it panicked").downcast::<String>().expect("a message");
    assert_eq!(*printed, "the test has not ended after 3600s");
}

#[test]
fn an_invalid_start_time_is_reported_with_the_test() {
    let setup = Setup::new("crate::name").starting_at("yesterday");
    let panic = catch_unwind(|| setup.run(async |_: Cluster| ())).expect_err("it is refused");
    let printed = panic.downcast::<String>().expect("a message");
    assert!(printed.contains("`start = \"yesterday\"` of crate::name is no time"), "{printed}");
}
