use std::{cell::RefCell, panic::catch_unwind};

use super::*;
use crate::HarnessError;

const CONFIG: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: colours}}";

/// What a test prints, and how it ends.
fn judged<T: Outcome>(test: impl AsyncFnOnce(Cluster) -> T) -> (String, Result<T, String>) {
    let told = RefCell::new(String::new());
    let setup = Setup::new("crate::name").nodes(0);
    let ended =
        catch_unwind(AssertUnwindSafe(|| setup.judge(test, |text| text.clone_into(&mut told.borrow_mut()))));
    let ended = ended.map_err(|panic| *panic.downcast::<String>().expect("a message"));
    (told.into_inner(), ended)
}

#[test]
fn a_test_that_passes_prints_nothing() {
    let (told, ended) = judged(async |cluster| cluster.apply(CONFIG).await.map(drop));
    assert!(ended.expect("no panic").is_ok());
    assert_eq!(told, "");
}

#[test]
fn a_test_that_panics_tells_what_it_changed_and_still_panics() {
    let (told, ended) = judged(async |cluster: Cluster| {
        cluster.apply(CONFIG).await.expect("it is applied");
        assert_eq!(1, 2, "counting");
    });
    assert!(ended.expect_err("it panicked").contains("counting"));
    assert!(
        told.starts_with("crate::name has failed; the cluster at 2026-01-01T00:00:00.000Z, 0 s after"),
        "{told}"
    );
    assert!(told.contains("  ConfigMap default/colours\n"), "{told}");
}

#[test]
fn a_test_that_returns_an_error_tells_too_and_returns_it() {
    let (told, ended) = judged(async |cluster| {
        cluster.apply(CONFIG).await?;
        cluster.get::<k8s_openapi::api::core::v1::Secret>("default/none").await.map(drop)
    });
    assert!(matches!(ended, Ok(Err(HarnessError::Missing { .. }))));
    assert!(told.contains("  ConfigMap default/colours\n"), "{told}");
}

#[test]
fn a_test_that_waits_for_ever_is_ended() {
    let setup = Setup { limit: Duration::from_hours(1), ..Setup::new("crate::name").nodes(0) };
    let ended = catch_unwind(|| setup.judge(async |_| std::future::pending::<()>().await, |_| ()));
    let told = ended.expect_err("it panicked").downcast::<String>().expect("a message");
    assert_eq!(*told, "the test has not ended after 3600s");
}

#[test]
fn a_start_that_is_no_time_says_whose_it_is() {
    let setup = Setup::new("crate::name").starting_at("yesterday");
    let panic = catch_unwind(|| setup.run(async |_: Cluster| ())).expect_err("it is refused");
    let told = panic.downcast::<String>().expect("a message");
    assert!(told.contains("`start = \"yesterday\"` of crate::name is no time"), "{told}");
}
