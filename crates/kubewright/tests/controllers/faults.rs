//! Faults that controllers survive: no key is lost, and nothing is done twice that must be done once.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::*;
use crate::support::PlannedFault;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A controller that keeps one Secret for each `ConfigMap`, with its value.
fn copying(builder: ControllerBuilder<ConfigMap>, journal: &Journal) -> Controller {
    let journal = journal.clone();
    builder.owns::<Secret>().reconcile(move |cx: Context<ConfigMap>| {
        let journal = journal.clone();
        async move {
            let Some(map) = cx.object()? else { return Ok(Action::done()) };
            let value = map.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
            let written = cx
                .create_or_update(cx.key().name(), |secret: &mut Secret| {
                    secret.string_data.get_or_insert_default().insert("value".into(), value.clone());
                })
                .controlled_by(&*map)
                .await?;
            journal.write(format!("{} {:?}", cx.key().name(), written.operation()));
            Ok(Action::done())
        }
    })
}

fn value_of(api: &FakeApi, name: &str) -> Option<String> {
    Some(api.object(SECRETS, name)?["stringData"]["value"].as_str()?.to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_wanted_state_is_reached_after_a_minute_without_a_server() {
    let api = FakeApi::new();
    for number in 0..20 {
        api.put_config_map("default", &format!("m{number}"), "1");
    }
    let journal = Journal::default();
    let running = run(&api, [copying(maps().0.workers(4), &journal)]).await;
    eventually("all copied", || (0..20).all(|n| value_of(&api, &format!("m{n}")).is_some())).await;
    // The server goes down right after changes, and more changes are missed while it is down.
    for number in 0..10 {
        api.put_config_map("default", &format!("m{number}"), "2");
    }
    api.set_down(true);
    api.unobserved(|api| {
        for number in 10..20 {
            api.put_config_map("default", &format!("m{number}"), "2");
        }
        api.delete(SECRETS, "m3");
    });
    tokio::time::sleep(Duration::from_mins(1)).await;
    api.forget_requests();
    api.set_down(false);
    eventually("all copied again", || {
        (0..20).all(|n| value_of(&api, &format!("m{n}")).as_deref() == Some("2"))
    })
    .await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let writes = api.requests().iter().filter(|request| !request.starts_with("GET")).count();
    assert!(writes <= 25, "{writes} writes for 20 changes and one deletion");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn repeated_conflicts_end_in_the_wanted_state() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let journal = Journal::default();
    let (builder, metrics) = maps();
    let running = run(&api, [copying(builder, &journal)]).await;
    eventually("copied", || value_of(&api, "m").is_some()).await;
    for _ in 0..12 {
        api.plan(PlannedFault::RejectWrite { code: 409, reason: "Conflict" });
    }
    api.put_config_map("default", "m", "2");
    eventually("copied again", || value_of(&api, "m").as_deref() == Some("2")).await;
    // Five attempts at a time are within a reconcile, the rest is back-off.
    assert_eq!(metrics.results("error"), 2);
    assert_eq!(journal.count("m Updated"), 1);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_existing_object_is_adopted_unless_it_has_another_controller() {
    let api = FakeApi::new();
    let secret = |name: &str, owners: serde_json::Value| {
        serde_json::json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "default", "name": name, "ownerReferences": owners}})
    };
    api.put(SECRETS, secret("free", serde_json::json!([])));
    api.put(
        SECRETS,
        secret(
            "taken",
            serde_json::json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x", "controller": true}]),
        ),
    );
    api.put_config_map("default", "free", "1");
    api.put_config_map("default", "taken", "1");
    let journal = Journal::default();
    let (builder, metrics) = maps();
    let running = run(&api, [copying(builder, &journal)]).await;
    eventually("the free one is copied", || value_of(&api, "free").is_some()).await;
    eventually("the taken one fails", || metrics.results("error") >= 3).await;
    assert_eq!(value_of(&api, "taken"), None);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_that_fail_at_once_keep_the_load_bounded() {
    const KEYS: usize = 10_000;
    let api = FakeApi::new();
    for number in 0..KEYS {
        api.put_config_map("default", &format!("m{number}"), "1");
    }
    let calls: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let (builder, _) = maps();
    let controller = builder.workers(8).reconcile({
        let calls = calls.clone();
        move |_: Context<ConfigMap>| {
            calls.lock().push(Instant::now());
            async { Err::<Action, _>(Error::message("the backend is down")) }
        }
    });
    let running = run(&api, [controller]).await;
    eventually("the first round", || calls.lock().len() >= KEYS).await;
    let began = calls.lock()[0];
    tokio::time::sleep(Duration::from_mins(30)).await;
    running.stop().await.unwrap();
    let calls = calls.lock();
    // 5 ms doubling to 1000 s: 18 attempts in the first half hour and no more, 14 of them in the first
    // minute.
    let within = |time: Duration| calls.iter().filter(|call| **call - began <= time).count() / KEYS;
    assert!(within(Duration::from_mins(1)) <= 14, "{}", within(Duration::from_mins(1)));
    assert!(within(Duration::from_mins(30)) <= 19, "{}", within(Duration::from_mins(30)));
    assert!(within(Duration::from_mins(30)) >= 17, "retries continue with back-off");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_a_running_reconcile_finish_and_starts_no_other() {
    let api = FakeApi::new();
    for number in 0..5 {
        api.put_config_map("default", &format!("m{number}"), "1");
    }
    let journal = Journal::default();
    let controller = || {
        let journal = journal.clone();
        maps().0.reconcile(move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                let name = cx.key().name().to_owned();
                let done = cx.get::<Secret>(cx.key()).await?.is_some();
                if !done {
                    journal.write(format!("begin {name}"));
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    cx.create_or_update(&name, |_: &mut Secret| ()).await?;
                    journal.write(format!("end {name}"));
                }
                Ok(Action::done())
            }
        })
    };
    let running = run(&api, [controller()]).await;
    eventually("the second began", || journal.len() == 3).await;
    running.stop().await.expect("ten seconds are within the grace period");
    assert_eq!(journal.lines(), ["begin m0", "end m0", "begin m1", "end m1"]);
    assert_eq!(api.open_watches(), 0, "the caches have stopped");
    // The next start does the rest, and nothing twice.
    let running = run(&api, [controller()]).await;
    eventually("all done", || journal.len() == 10).await;
    running.stop().await.unwrap();
    for number in 0..5 {
        assert_eq!(journal.count(&format!("end m{number}")), 1);
        assert_eq!(api.requests_with("POST").len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_exceeds_the_grace_period_is_dropped_and_named() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let journal = Journal::default();
    let controller = maps().0.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            journal.write("begin");
            async move {
                cx.cancelled().await;
                std::future::pending::<Result<Action>>().await
            }
        }
    });
    let running = run(&api, [controller]).await;
    journal.reaches(1).await;
    let asked = Instant::now();
    let error = running.stop().await.unwrap_err();
    assert_eq!(asked.elapsed().as_secs(), 30);
    assert!(error.to_string().contains("controller maps"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_read_is_never_older_than_the_clients_own_write_even_when_the_watch_is_down() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let created = Journal::default();
    let controller = maps().0.reconcile({
        let created = created.clone();
        move |cx: Context<ConfigMap>| {
            let created = created.clone();
            async move {
                // Not idempotent on purpose: a stale read would create a second one under another name.
                let seen = cx.list::<Secret>().namespace("default").await?.len();
                if seen < 1 {
                    let key = cx.neighbour(&format!("s{}", created.len()));
                    cx.client().create_or_update(&key, |_: &mut Secret| ()).await?;
                    created.write(key);
                }
                Ok(Action::requeue_after(Duration::from_millis(1)))
            }
        }
    });
    let running = run(&api, [controller]).await;
    // For a while, the watches of Secrets send nothing.
    for _ in 0..3 {
        api.plan(PlannedFault::SilentWatch);
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(created.len(), 1, "{:?}", created.lines());
    running.stop().await.unwrap();
}
