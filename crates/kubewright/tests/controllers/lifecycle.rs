//! Managers: start and stop order, failures, leader election, late additions, kinds installed later.

use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kubewright::manager::{HeldLease, LeaderElector, RunContext, Runnable, Stage, runnable_fn};
use tokio::{sync::watch, time::Instant};

use super::*;

struct StagedRunnable {
    name: &'static str,
    stage: Stage,
    journal: Journal,
    stopping: Duration,
}

impl Runnable for StagedRunnable {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn stage(&self) -> Stage {
        self.stage
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.journal.write(format!("{} ready", self.name));
            Ok(())
        })
    }

    fn run(self: Box<Self>, cx: RunContext) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            tokio::time::sleep(self.stopping).await;
            self.journal.write(format!("{} stopped", self.name));
            Ok(())
        })
    }
}

fn staged_runnables(journal: &Journal) -> impl Iterator<Item = StagedRunnable> {
    let all = [
        ("elected", Stage::Elected),
        ("others", Stage::Others),
        ("webhooks", Stage::Webhooks),
        ("serving", Stage::Serving),
    ];
    let journal = journal.clone();
    all.into_iter().map(move |(name, stage)| StagedRunnable {
        name,
        stage,
        journal: journal.clone(),
        stopping: Duration::from_secs(1),
    })
}

#[tokio::test(start_paused = true)]
async fn stages_start_in_order_when_the_previous_one_is_ready_and_stop_in_reverse() {
    let journal = Journal::default();
    let mut builder = Manager::builder("test").client(FakeApi::new().client()).signals(false);
    for runnable in staged_runnables(&journal) {
        builder = builder.runnable(runnable);
    }
    let manager = builder.build().await.unwrap();
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    journal.reaches(4).await;
    handle.stop();
    task.await.unwrap().unwrap();
    assert_eq!(
        journal.lines(),
        [
            "serving ready",
            "webhooks ready",
            "others ready",
            "elected ready",
            "elected stopped",
            "others stopped",
            "webhooks stopped",
            "serving stopped",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failing_runnable_stops_the_manager_and_is_its_error() {
    let journal = Journal::default();
    let mut builder = Manager::builder("test").client(FakeApi::new().client()).signals(false);
    for runnable in staged_runnables(&journal) {
        builder = builder.runnable(runnable);
    }
    let error = builder
        .runnable(runnable_fn("the bad one", Stage::Others, |_| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Err(Error::message("out of luck"))
        }))
        .run()
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the bad one failed: out of luck");
    assert_eq!(journal.lines().last().map(String::as_str), Some("serving stopped"));

    let error = Manager::builder("test")
        .client(FakeApi::new().client())
        .signals(false)
        .runnable(runnable_fn("the worse one", Stage::Serving, |_| async { panic!("boom") }))
        .run()
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the worse one failed: it panicked: boom");
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_rejected_before_anything_runs() {
    let reconcile = |_: Context<ConfigMap>| async { Ok(Action::done()) };
    let describe = |second: &str| {
        let controllers = [maps().0.named("maps"), maps().0.named(second)];
        let builder = Manager::builder("test").client(FakeApi::new().client()).signals(false);
        controllers.into_iter().fold(builder, |builder, maps| builder.controller(maps.reconcile(reconcile)))
    };
    let error = describe("maps").build().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there are two of the name \"controller maps\": give one of them another name, a controller with `named`"
    );
    describe("other maps").build().await.unwrap();
}

/// Leadership that the test grants and revokes.
struct Scripted(watch::Receiver<bool>, Journal);

impl LeaderElector for Scripted {
    fn acquire(mut self: Box<Self>) -> BoxFuture<'static, Result<Box<dyn HeldLease>>> {
        Box::pin(async move {
            self.0.wait_for(|leading| *leading).await?;
            Ok(self as Box<dyn HeldLease>)
        })
    }
}

impl HeldLease for Scripted {
    fn lost(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.0.wait_for(|leading| !*leading).await;
        })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.1.write("lease released");
        Box::pin(std::future::ready(()))
    }

    fn abandon(self: Box<Self>) {
        self.1.write("lease abandoned");
    }
}

#[tokio::test(start_paused = true)]
async fn elected_runnables_wait_for_leadership_and_the_lease_is_released_last() {
    let (journal, events) = (Journal::default(), Journal::default());
    let (lead, leading) = watch::channel(false);
    let mut builder = Manager::builder("test")
        .client(FakeApi::new().client())
        .signals(false)
        .leader_elector(Scripted(leading, journal.clone()));
    for runnable in staged_runnables(&journal) {
        builder = builder.runnable(runnable);
    }
    let works = events.clone();
    let manager = builder
        .runnable(runnable_fn("works", Stage::Elected, move |cx| async move {
            works.write("began");
            cx.stop().cancelled().await;
            Ok(())
        }))
        .build()
        .await
        .unwrap();
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    journal.reaches(4).await;
    assert!(!handle.is_leader() && events.len() == 0);
    lead.send(true).unwrap();
    handle.elected().await;
    events.reaches(1).await;
    handle.stop();
    task.await.unwrap().unwrap();
    assert_eq!(journal.lines().last().map(String::as_str), Some("lease released"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_drops_running_reconciles_at_once() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let journal = Journal::default();
    let (lead, leading) = watch::channel(true);
    let controller = maps().0.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                journal.write("begin");
                tokio::time::sleep(Duration::from_secs(2)).await;
                journal.write("end");
                cx.create_or_update("s", |_: &mut Secret| ()).await?;
                Ok(Action::done())
            }
        }
    });
    let manager = Manager::builder("test")
        .client(api.client())
        .signals(false)
        .leader_elector(Scripted(leading, Journal::default()))
        .controller(controller)
        .build()
        .await
        .unwrap();
    let task = tokio::spawn(manager.run());
    eventually("it began", || journal.len() == 1).await;
    let lost = Instant::now();
    lead.send(false).unwrap();
    let error = task.await.unwrap().unwrap_err();
    assert!(lost.elapsed() < Duration::from_millis(100), "{:?}", lost.elapsed());
    assert!(error.to_string().contains("leadership was lost"), "{error}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(journal.lines(), ["begin"]);
    assert!(api.requests_with("POST").is_empty());
}

/// Starts a manager with a controller that works for a while and ignores the stop signal.
async fn at_work(
    leading: watch::Receiver<bool>,
    journal: &Journal,
    lease: &Journal,
    work: Duration,
) -> Running {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let written = journal.clone();
    let controller = maps().0.reconcile(move |_: Context<ConfigMap>| {
        let journal = written.clone();
        async move {
            journal.write("begin");
            tokio::time::sleep(work).await;
            journal.write("end");
            Ok(Action::done())
        }
    });
    let manager = Manager::builder("test")
        .client(api.client())
        .signals(false)
        .leader_elector(Scripted(leading, lease.clone()))
        .controller(controller)
        .build()
        .await
        .expect("a client is given");
    let running = Running { handle: manager.handle(), task: tokio::spawn(manager.run()) };
    eventually("it began", || journal.len() == 1).await;
    running
}

#[tokio::test(start_paused = true)]
async fn a_lease_lost_during_shutdown_drops_what_is_still_running() {
    let (journal, lease) = (Journal::default(), Journal::default());
    let (lead, leading) = watch::channel(true);
    let running = at_work(leading, &journal, &lease, Duration::from_secs(20)).await;
    running.handle.stop();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!running.task.is_finished(), "the reconcile has time to finish");
    let lost = Instant::now();
    lead.send(false).unwrap();
    let error = running.task.await.unwrap().unwrap_err();
    assert!(lost.elapsed() < Duration::from_millis(100), "{:?}", lost.elapsed());
    assert!(error.to_string().contains("leadership was lost"), "{error}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(journal.lines(), ["begin"]);
    assert_eq!(lease.len(), 0, "a lost lease is neither released nor kept");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_released_while_dropped_work_may_have_requests_in_flight() {
    let (journal, lease) = (Journal::default(), Journal::default());
    let (_lead, leading) = watch::channel(true);
    let running = at_work(leading.clone(), &journal, &lease, Duration::from_mins(10)).await;
    let error = running.stop().await.unwrap_err();
    assert!(error.to_string().contains("grace period"), "{error}");
    assert_eq!(lease.lines(), ["lease abandoned"], "it expires by itself");

    // The same when the manager is aborted.
    let (journal, lease) = (Journal::default(), Journal::default());
    let running = at_work(leading, &journal, &lease, Duration::from_mins(10)).await;
    running.task.abort();
    eventually("the lease is left", || lease.len() == 1).await;
    assert_eq!(lease.lines(), ["lease abandoned"]);
}

#[tokio::test(start_paused = true)]
async fn a_warm_controller_has_its_cache_and_queue_filled_before_leader_election() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    for warm in [true, false] {
        let journal = Journal::default();
        let (lead, leading) = watch::channel(false);
        let builder = if warm { maps().0.warm_up() } else { maps().0 };
        let controller = builder.reconcile({
            let journal = journal.clone();
            move |_: Context<ConfigMap>| {
                journal.write("reconciled");
                async { Ok(Action::done()) }
            }
        });
        let manager = Manager::builder("test")
            .client(api.client())
            .signals(false)
            .leader_elector(Scripted(leading, Journal::default()))
            .controller(controller)
            .build()
            .await
            .unwrap();
        let running = Running { handle: manager.handle(), task: tokio::spawn(manager.run()) };
        api.forget_requests();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(journal.len(), 0);
        assert_eq!(!api.requests_with("configmaps").is_empty(), warm);
        api.forget_requests();
        lead.send(true).unwrap();
        journal.reaches(1).await;
        assert_eq!(api.requests_with("configmaps").is_empty(), warm, "no further request is necessary");
        running.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_are_added_while_the_manager_runs_and_share_its_caches() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let journal = Journal::default();
    let controller = |name: &'static str| {
        let journal = journal.clone();
        maps().0.named(name).reconcile(move |_: Context<ConfigMap>| {
            journal.write(name);
            async { Ok(Action::done()) }
        })
    };
    let running = run(&api, [controller("first")]).await;
    journal.reaches(1).await;
    api.forget_requests();
    running.handle.add(controller("second")).unwrap();
    journal.reaches(2).await;
    assert!(api.requests().is_empty(), "one informer serves both: {:?}", api.requests());
    let handle = running.handle.clone();
    running.stop().await.unwrap();
    assert!(handle.add(controller("third")).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_waited_for_while_others_work() {
    let api = FakeApi::without_streaming();
    api.put_config_map("default", "m", "1");
    let journal = Journal::default();
    let writing = |word: &'static str| {
        let journal = journal.clone();
        move || journal.write(word)
    };
    let (map, secret) = (writing("map"), writing("secret"));
    let controllers = [
        maps().0.reconcile(move |_: Context<ConfigMap>| {
            map();
            async { Ok(Action::done()) }
        }),
        Controller::of::<Secret>().sync_timeout(Duration::from_secs(20)).reconcile(
            move |_: Context<Secret>| {
                secret();
                async { Ok(Action::done()) }
            },
        ),
    ];
    api.reject("secrets", Some((404, "NotFound")));
    let running = run(&api, controllers).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(journal.lines(), ["map"]);
    api.reject("secrets", None);
    api.put(
        "/api/v1/namespaces/default/secrets",
        serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"}}),
    );
    journal.reaches(2).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_sync_is_an_error_with_the_reason_after_its_timeout() {
    let api = FakeApi::without_streaming();
    api.reject("configmaps", Some((403, "Forbidden")));
    let started = Instant::now();
    let controller = maps().0.reconcile(|_: Context<ConfigMap>| async { Ok(Action::done()) });
    let running = run(&api, [controller]).await;
    let error = running.task.await.unwrap().unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 120);
    let text = error.to_string();
    assert!(
        text.contains("controller maps") && text.contains("ConfigMap") && text.contains("Forbidden"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_manager_caches_its_namespaces() {
    let api = FakeApi::new();
    for namespace in ["a", "b", "c"] {
        api.put_config_map(namespace, "m", "1");
    }
    let journal = Journal::default();
    let controller = maps().0.reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            let journal = journal.clone();
            async move {
                assert!(cx.object()?.is_some());
                let all = cx.list::<ConfigMap>().await?.len();
                let refused = cx.get::<ConfigMap>(&ObjectKey::namespaced("c", "m")).await.unwrap_err();
                assert!(refused.to_string().contains("\"c\""), "{refused}");
                let live = cx.client().live().get::<ConfigMap>(&ObjectKey::namespaced("c", "m")).await?;
                journal.write(format!("{} of {all} {}", cx.key(), live.is_some()));
                Ok(Action::done())
            }
        }
    });
    let manager = Manager::builder("test")
        .client(api.client())
        .namespaces(["a", "b"])
        .signals(false)
        .controller(controller)
        .build()
        .await
        .unwrap();
    let running = Running { handle: manager.handle(), task: tokio::spawn(manager.run()) };
    journal.reaches(2).await;
    assert_eq!(journal.sorted(), ["a/m of 2 true", "b/m of 2 true"]);
    assert_eq!(api.open_watches(), 2);
    running.stop().await.unwrap();
}
