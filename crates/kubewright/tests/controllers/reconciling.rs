//! Results of a reconcile: done, requeue, requeue after, error, terminal error, panic, timeout.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kubewright::queue::limiter::ItemExponentialFailure;
use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn every_object_is_reconciled_at_start_and_when_it_changes_and_when_it_is_deleted() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    api.put_config_map("default", "b", "1");
    let journal = Journal::default();
    let (builder, metrics) = maps();
    let controller = builder.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                let value = cx.object()?.and_then(|map| map.data.clone()?.remove("value"));
                let request = cx.request();
                journal.write(format!("{} {:?} {} {}", cx.key(), value, request.source(), request.cause()));
                Ok(Action::done())
            }
        }
    });
    let running = run(&api, [controller]).await;
    journal.reaches(2).await;
    api.put_config_map("default", "a", "2");
    journal.reaches(3).await;
    api.delete_config_map("default", "b");
    journal.reaches(4).await;
    running.stop().await.unwrap();
    let lines = journal.lines();
    assert_eq!(
        lines,
        [
            "default/a Some(\"1\") ConfigMap listed",
            "default/b Some(\"1\") ConfigMap listed",
            "default/a Some(\"2\") ConfigMap updated",
            "default/b None ConfigMap deleted",
        ]
    );
    assert_eq!(metrics.results("success"), 4);
    assert_eq!(metrics.total("max_concurrent_reconciles"), 1);
    assert_eq!(metrics.total("active_workers"), 0);
    assert_eq!(metrics.total("reconcile_time_seconds_count"), 4);
}

/// Reconciles one object with a function of the attempt, and returns the waits between attempts.
async fn attempts(
    tune: impl FnOnce(ControllerBuilder<ConfigMap>) -> ControllerBuilder<ConfigMap>,
    count: usize,
    outcome: impl Fn(usize) -> Result<Action> + Send + Sync + 'static,
) -> (Vec<Duration>, Metrics) {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let (builder, metrics) = maps();
    let controller = tune(builder).reconcile({
        let times = times.clone();
        move |_: Context<ConfigMap>| {
            let attempt = {
                let mut times = times.lock();
                times.push(Instant::now());
                times.len()
            };
            let outcome = outcome(attempt);
            async move { outcome }
        }
    });
    let running = run(&api, [controller]).await;
    eventually("the attempts", || times.lock().len() >= count).await;
    tokio::time::sleep(Duration::from_mins(50)).await;
    running.stop().await.expect("it stops in time");
    let times = times.lock();
    assert_eq!(times.len(), count);
    (times.windows(2).map(|pair| (pair[1] - pair[0]).duration_round()).collect(), metrics)
}

trait Round {
    fn duration_round(self) -> Duration;
}

impl Round for Duration {
    /// Timers of tokio have a resolution of a millisecond.
    fn duration_round(self) -> Duration {
        Duration::from_millis(u64::try_from(self.as_millis()).expect("a short time"))
    }
}

fn close(waits: &[Duration], wanted: &[u64]) {
    assert_eq!(waits.len(), wanted.len(), "{waits:?}");
    for (wait, wanted) in waits.iter().zip(wanted) {
        let wait = u64::try_from(wait.as_millis()).expect("a short time");
        assert!((*wanted..=wanted + 2).contains(&wait), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_per_key_and_success_resets_the_back_off() {
    let (waits, metrics) = attempts(
        |builder| builder,
        7,
        |attempt| match attempt {
            1..=4 | 6 => Err(Error::message("no")),
            5 => Ok(Action::requeue_after(Duration::from_secs(10))),
            _ => Ok(Action::done()),
        },
    )
    .await;
    // The requeue has reset the back-off: 5 ms again.
    close(&waits, &[5, 10, 20, 40, 10_000, 5]);
    assert_eq!(metrics.results("error"), 5);
    assert_eq!(metrics.results("requeue_after"), 1);
    assert_eq!(metrics.total("reconcile_errors_total"), 5);
}

#[tokio::test(start_paused = true)]
async fn a_requeue_backs_off_without_being_an_error() {
    let (waits, metrics) = attempts(
        |builder| {
            builder.limiter(ItemExponentialFailure::new(Duration::from_secs(1), Duration::from_mins(1)))
        },
        4,
        |attempt| Ok(if attempt < 4 { Action::requeue() } else { Action::done() }),
    )
    .await;
    close(&waits, &[1000, 2000, 4000]);
    assert_eq!(metrics.results("requeue"), 3);
    assert_eq!(metrics.results("error"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_retried() {
    let (waits, metrics) =
        attempts(|builder| builder, 1, |_| Err(Error::terminal("the spec makes no sense"))).await;
    close(&waits, &[]);
    assert_eq!(metrics.total("terminal_reconcile_errors_total"), 1);
    assert_eq!(metrics.results("error"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_of_its_key_alone() {
    let (waits, metrics) = attempts(
        |builder| builder,
        3,
        |attempt| {
            assert!(attempt > 2, "boom");
            Ok(Action::done())
        },
    )
    .await;
    close(&waits, &[5, 10]);
    assert_eq!(metrics.total("reconcile_panics_total"), 2);
    assert_eq!(metrics.results("error"), 2);
    assert_eq!(metrics.results("success"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_reconcile_is_dropped_at_its_timeout_and_does_not_block_others() {
    let api = FakeApi::new();
    api.put_config_map("default", "hangs", "1");
    api.put_config_map("default", "works", "1");
    let journal = Journal::default();
    let (builder, metrics) = maps();
    let controller = builder.workers(2).reconcile_timeout(Duration::from_secs(10)).reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                journal.write(cx.key());
                if cx.key().name() == "hangs" && journal.count("default/hangs") == 1 {
                    std::future::pending::<()>().await;
                }
                Ok(Action::done())
            }
        }
    });
    let started = Instant::now();
    let running = run(&api, [controller]).await;
    eventually("works is done", || journal.count("default/works") == 1).await;
    assert!(started.elapsed() < Duration::from_secs(1));
    eventually("hangs is tried again", || journal.count("default/hangs") == 2).await;
    assert!(started.elapsed() >= Duration::from_secs(10));
    assert_eq!(metrics.total("reconcile_timeouts_total"), 1);
    running.stop().await.unwrap();
}

/// Panics when it is dropped.
struct PanicOnDrop(bool);

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        assert!(!self.0, "the trap");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_destructor_loses_neither_the_worker_nor_the_key() {
    let api = FakeApi::new();
    for number in 0..5 {
        api.put_config_map("default", &format!("m{number}"), "1");
    }
    let journal = Journal::default();
    let (builder, metrics) = maps();
    // One worker, and a destructor that only runs on the timeout, outside of the reconciler.
    let controller = builder.reconcile_timeout(Duration::from_secs(1)).reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                if cx.key().name() == "m2" && journal.count("trapped") == 0 {
                    journal.write("trapped");
                    let _trap = PanicOnDrop(true);
                    std::future::pending::<()>().await;
                }
                journal.write(cx.key().name());
                Ok(Action::done())
            }
        }
    });
    let running = run(&api, [controller]).await;
    for number in 0..5 {
        eventually("all are reconciled", || journal.count(&format!("m{number}")) == 1).await;
    }
    assert_eq!((metrics.total("reconcile_panics_total"), metrics.total("reconcile_timeouts_total")), (1, 1));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_processed_twice_at_once_and_a_change_meanwhile_leads_to_one_more_reconcile() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let (running_now, most, runs) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Journal::default());
    let (builder, _) = maps();
    let controller = builder.workers(8).reconcile({
        let (running_now, most, runs) = (running_now.clone(), most.clone(), runs.clone());
        move |_: Context<ConfigMap>| {
            let (running_now, most, runs) = (running_now.clone(), most.clone(), runs.clone());
            async move {
                most.fetch_max(running_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                running_now.fetch_sub(1, Ordering::SeqCst);
                runs.write("done");
                Ok(Action::done())
            }
        }
    });
    let manager = run(&api, [controller]).await;
    eventually("it began", || running_now.load(Ordering::SeqCst) == 1).await;
    for value in 0..5 {
        api.put_config_map("default", "a", &value.to_string());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    runs.reaches(2).await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    manager.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_a_terminal_error_and_not_a_missing_object() {
    let api = FakeApi::new();
    let mut broken = api.put_config_map("default", "a", "1");
    broken["data"] = serde_json::json!({"value": 7});
    api.put(MAPS, broken.clone());
    let journal = Journal::default();
    let (builder, metrics) = maps();
    let controller = builder.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                let object = cx.object()?;
                journal.write(if object.is_some() { "there" } else { "gone" });
                Ok(Action::done())
            }
        }
    });
    let running = run(&api, [controller]).await;
    eventually("it fails", || metrics.total("terminal_reconcile_errors_total") == 1).await;
    assert_eq!(journal.len(), 0);
    api.put_config_map("default", "a", "mended");
    journal.reaches(1).await;
    assert_eq!(journal.lines(), ["there"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn live_changes_overtake_the_initial_list() {
    let api = FakeApi::new();
    for number in 0..100 {
        api.put_config_map("default", &format!("old-{number:03}"), "1");
    }
    let journal = Journal::default();
    let (builder, _) = maps();
    let controller = builder.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                journal.write(cx.key().name());
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(Action::done())
            }
        }
    });
    let running = run(&api, [controller]).await;
    eventually("it began", || journal.len() >= 3).await;
    api.put_config_map("default", "new", "1");
    api.put_config_map("default", "old-090", "2");
    eventually("five more", || journal.len() >= 8).await;
    let next: Vec<_> = journal.lines()[3..5].to_vec();
    assert_eq!(next, ["new", "old-090"], "{:?}", journal.lines());
    running.stop().await.unwrap();
}
