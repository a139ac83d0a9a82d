//! A manager and the signals of its process. Alone in its program: signals are for all of it.
#![cfg(unix)]

mod support;

use std::{process::Command, time::Duration};

use kubewright::{
    Result,
    manager::{Manager, Stage, runnable_fn},
};
use support::FakeApi;

fn send(signal: &str) {
    let pid = std::process::id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().expect("kill is everywhere");
    assert!(sent.success());
}

#[tokio::test]
async fn a_first_signal_stops_in_order_and_a_second_one_ends_the_waiting() {
    let (began, beginning) = tokio::sync::oneshot::channel::<()>();
    let patient = runnable_fn("patient", Stage::Others, |cx| async move {
        let _ = began.send(());
        cx.stop().cancelled().await;
        Result::Ok(())
    });
    let manager = Manager::builder("test").client(FakeApi::new().client()).serve("0").runnable(patient);
    let task = tokio::spawn(manager.run());
    beginning.await.expect("it began");
    send("-TERM");
    task.await.expect("no panic").expect("all was stopped in time");

    let (began, beginning) = tokio::sync::oneshot::channel::<()>();
    let (told, telling) = tokio::sync::oneshot::channel::<()>();
    let stubborn = runnable_fn("stubborn", Stage::Others, |cx| async move {
        let _ = began.send(());
        cx.stop().cancelled().await;
        let _ = told.send(());
        std::future::pending().await
    });
    let manager = Manager::builder("test").client(FakeApi::new().client()).serve("0").runnable(stubborn);
    let task = tokio::spawn(manager.grace(Duration::from_mins(10)).run());
    beginning.await.expect("it began");
    send("-INT");
    telling.await.expect("it was told");
    send("-INT");
    let error = task.await.expect("no panic").expect_err("it was dropped");
    assert!(error.to_string().contains("stubborn"), "{error}");
}
