//! Managers: order up and down, failures, leadership, late additions, kinds that appear later.

use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kubewright::manager::{HeldLease, LeaderElector, RunContext, Runnable, Stage, runnable_fn};
use tokio::{sync::watch, time::Instant};

use super::*;

struct Stageful {
    name: &'static str,
    stage: Stage,
    diary: Diary,
    stopping: Duration,
}

impl Runnable for Stageful {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn stage(&self) -> Stage {
        self.stage
    }

    fn prepare<'a>(&'a mut self, _: &'a RunContext) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.diary.write(format!("{} ready", self.name));
            Ok(())
        })
    }

    fn run(self: Box<Self>, cx: RunContext) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            cx.stop().cancelled().await;
            tokio::time::sleep(self.stopping).await;
            self.diary.write(format!("{} stopped", self.name));
            Ok(())
        })
    }
}

fn stageful(diary: &Diary) -> impl Iterator<Item = Stageful> {
    let all = [
        ("elected", Stage::Elected),
        ("others", Stage::Others),
        ("webhooks", Stage::Webhooks),
        ("serving", Stage::Serving),
    ];
    let diary = diary.clone();
    all.into_iter().map(move |(name, stage)| Stageful {
        name,
        stage,
        diary: diary.clone(),
        stopping: Duration::from_secs(1),
    })
}

#[tokio::test(start_paused = true)]
async fn stages_start_in_order_when_the_one_before_is_ready_and_stop_in_reverse() {
    let diary = Diary::default();
    let mut builder = Manager::builder("test").client(FakeApi::new().client()).signals(false);
    for runnable in stageful(&diary) {
        builder = builder.runnable(runnable);
    }
    let manager = builder.build().await.unwrap();
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    diary.reaches(4).await;
    handle.stop();
    task.await.unwrap().unwrap();
    assert_eq!(
        diary.lines(),
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
async fn the_failure_of_one_stops_all_and_is_the_managers() {
    let diary = Diary::default();
    let mut builder = Manager::builder("test").client(FakeApi::new().client()).signals(false);
    for runnable in stageful(&diary) {
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
    assert_eq!(diary.lines().last().map(String::as_str), Some("serving stopped"));

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
async fn two_controllers_of_one_name_are_refused_before_anything_runs() {
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

/// Leadership that a test gives and takes.
struct Scripted(watch::Receiver<bool>, Diary);

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
async fn the_elected_wait_for_leadership_and_the_lease_is_released_last() {
    let (diary, events) = (Diary::default(), Diary::default());
    let (lead, leading) = watch::channel(false);
    let mut builder = Manager::builder("test")
        .client(FakeApi::new().client())
        .signals(false)
        .leader_elector(Scripted(leading, diary.clone()));
    for runnable in stageful(&diary) {
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
    diary.reaches(4).await;
    assert!(!handle.is_leader() && events.len() == 0);
    lead.send(true).unwrap();
    handle.elected().await;
    events.reaches(1).await;
    handle.stop();
    task.await.unwrap().unwrap();
    assert_eq!(diary.lines().last().map(String::as_str), Some("lease released"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_drops_running_reconciles_at_once() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let diary = Diary::default();
    let (lead, leading) = watch::channel(true);
    let controller = maps().0.reconcile({
        let diary = diary.clone();
        move |cx: Context<ConfigMap>| {
            let diary = diary.clone();
            async move {
                diary.write("begin");
                tokio::time::sleep(Duration::from_secs(2)).await;
                diary.write("end");
                cx.create_or_update("s", |_: &mut Secret| ()).await?;
                Ok(Action::done())
            }
        }
    });
    let manager = Manager::builder("test")
        .client(api.client())
        .signals(false)
        .leader_elector(Scripted(leading, Diary::default()))
        .controller(controller)
        .build()
        .await
        .unwrap();
    let task = tokio::spawn(manager.run());
    eventually("it began", || diary.len() == 1).await;
    let lost = Instant::now();
    lead.send(false).unwrap();
    let error = task.await.unwrap().unwrap_err();
    assert!(lost.elapsed() < Duration::from_millis(100), "{:?}", lost.elapsed());
    assert!(error.to_string().contains("leadership was lost"), "{error}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(diary.lines(), ["begin"]);
    assert!(api.requests_with("POST").is_empty());
}

/// A controller that works for a while and does not care about being asked to stop, and a manager that is about to.
async fn at_work(leading: watch::Receiver<bool>, diary: &Diary, lease: &Diary, work: Duration) -> Running {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let written = diary.clone();
    let controller = maps().0.reconcile(move |_: Context<ConfigMap>| {
        let diary = written.clone();
        async move {
            diary.write("begin");
            tokio::time::sleep(work).await;
            diary.write("end");
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
    eventually("it began", || diary.len() == 1).await;
    running
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_on_the_way_down_drops_what_is_still_running() {
    let (diary, lease) = (Diary::default(), Diary::default());
    let (lead, leading) = watch::channel(true);
    let running = at_work(leading, &diary, &lease, Duration::from_secs(20)).await;
    running.handle.stop();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!running.task.is_finished(), "the reconcile has time to finish");
    let lost = Instant::now();
    lead.send(false).unwrap();
    let error = running.task.await.unwrap().unwrap_err();
    assert!(lost.elapsed() < Duration::from_millis(100), "{:?}", lost.elapsed());
    assert!(error.to_string().contains("leadership was lost"), "{error}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(diary.lines(), ["begin"]);
    assert_eq!(lease.len(), 0, "what is lost can neither be released nor kept");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_handed_over_while_dropped_work_may_still_be_on_its_way() {
    let (diary, lease) = (Diary::default(), Diary::default());
    let (_lead, leading) = watch::channel(true);
    let running = at_work(leading.clone(), &diary, &lease, Duration::from_mins(10)).await;
    let error = running.stop().await.unwrap_err();
    assert!(error.to_string().contains("grace period"), "{error}");
    assert_eq!(lease.lines(), ["lease abandoned"], "it runs out by itself");

    // The same when nobody waited for the manager to stop.
    let (diary, lease) = (Diary::default(), Diary::default());
    let running = at_work(leading, &diary, &lease, Duration::from_mins(10)).await;
    running.task.abort();
    eventually("the lease is left", || lease.len() == 1).await;
    assert_eq!(lease.lines(), ["lease abandoned"]);
}

#[tokio::test(start_paused = true)]
async fn a_warm_controller_has_its_cache_and_queue_filled_before_it_leads() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    for warm in [true, false] {
        let diary = Diary::default();
        let (lead, leading) = watch::channel(false);
        let builder = if warm { maps().0.warm_up() } else { maps().0 };
        let controller = builder.reconcile({
            let diary = diary.clone();
            move |_: Context<ConfigMap>| {
                diary.write("reconciled");
                async { Ok(Action::done()) }
            }
        });
        let manager = Manager::builder("test")
            .client(api.client())
            .signals(false)
            .leader_elector(Scripted(leading, Diary::default()))
            .controller(controller)
            .build()
            .await
            .unwrap();
        let running = Running { handle: manager.handle(), task: tokio::spawn(manager.run()) };
        api.forget_requests();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(diary.len(), 0);
        assert_eq!(!api.requests_with("configmaps").is_empty(), warm);
        api.forget_requests();
        lead.send(true).unwrap();
        diary.reaches(1).await;
        assert_eq!(api.requests_with("configmaps").is_empty(), warm, "nothing to ask for any more");
        running.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_are_added_while_the_manager_runs_and_share_its_caches() {
    let api = FakeApi::new();
    api.put_config_map("default", "m", "1");
    let diary = Diary::default();
    let controller = |name: &'static str| {
        let diary = diary.clone();
        maps().0.named(name).reconcile(move |_: Context<ConfigMap>| {
            diary.write(name);
            async { Ok(Action::done()) }
        })
    };
    let running = run(&api, [controller("first")]).await;
    diary.reaches(1).await;
    api.forget_requests();
    running.handle.add(controller("second")).unwrap();
    diary.reaches(2).await;
    assert!(api.requests().is_empty(), "one informer serves both: {:?}", api.requests());
    let handle = running.handle.clone();
    running.stop().await.unwrap();
    assert!(handle.add(controller("third")).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_waited_for_while_the_others_work() {
    let api = FakeApi::without_streaming();
    api.put_config_map("default", "m", "1");
    let diary = Diary::default();
    let writing = |word: &'static str| {
        let diary = diary.clone();
        move || diary.write(word)
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
    api.refuse("secrets", Some((404, "NotFound")));
    let running = run(&api, controllers).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(diary.lines(), ["map"]);
    api.refuse("secrets", None);
    api.put(
        "/api/v1/namespaces/default/secrets",
        serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"}}),
    );
    diary.reaches(2).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_may_not_be_filled_fails_after_its_time_and_says_why() {
    let api = FakeApi::without_streaming();
    api.refuse("configmaps", Some((403, "Forbidden")));
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
async fn a_manager_caches_the_namespaces_it_is_told_to() {
    let api = FakeApi::new();
    for namespace in ["a", "b", "c"] {
        api.put_config_map(namespace, "m", "1");
    }
    let diary = Diary::default();
    let controller = maps().0.reconcile({
        let diary = diary.clone();
        move |cx: Context<ConfigMap>| {
            let diary = diary.clone();
            async move {
                assert!(cx.object()?.is_some());
                let all = cx.list::<ConfigMap>().await?.len();
                let refused = cx.get::<ConfigMap>(&ObjectKey::namespaced("c", "m")).await.unwrap_err();
                assert!(refused.to_string().contains("\"c\""), "{refused}");
                let live = cx.client().live().get::<ConfigMap>(&ObjectKey::namespaced("c", "m")).await?;
                diary.write(format!("{} of {all} {}", cx.key(), live.is_some()));
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
    diary.reaches(2).await;
    assert_eq!(diary.sorted(), ["a/m of 2 true", "b/m of 2 true"]);
    assert_eq!(api.open_watches(), 2);
    running.stop().await.unwrap();
}
