//! Controllers and the objects they write.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::api::{ListParams, PostParams};
use kubewright::prelude::*;

use crate::place::{Running, TestEnv, eventually};

/// Counts on the server by read, increment and write: a lost or repeated step would show in the sum.
pub(crate) async fn concurrent_workers_lose_and_repeat_no_step(env: TestEnv) {
    const OBJECTS: usize = 20;
    let conflicts = Arc::new(AtomicUsize::new(0));
    let controller = Controller::of::<ConfigMap>()
        .when(|event: &kubewright::cache::Event<ConfigMap>| event.key().name().starts_with("step-"));
    let controller = controller.workers(8).reconcile({
        let conflicts = Arc::clone(&conflicts);
        move |cx: Context<ConfigMap>| {
            let conflicts = Arc::clone(&conflicts);
            async move {
                if cx.object()?.is_none() {
                    return Ok(Action::done());
                }
                let done = cx.neighbour(&format!("done-of-{}", cx.key().name()));
                if cx.get::<Secret>(&done).await?.is_some() {
                    return Ok(Action::done());
                }
                // One write for both: the step is recorded in the sum itself.
                let name = cx.key().name().to_owned();
                let total = cx.neighbour("total");
                let counted = cx
                    .client()
                    .create_or_update(&total, |total: &mut ConfigMap| {
                        total.data.get_or_insert_default().insert(name.clone(), "1".to_owned());
                    })
                    .await;
                if let Err(error) = counted {
                    conflicts.fetch_add(1, Ordering::Relaxed);
                    return Err(error.into());
                }
                cx.client().create_or_update(&done, |_: &mut Secret| ()).await?;
                Ok(Action::done())
            }
        }
    });
    let running = Running::begin(env.manager("counter").controller(controller)).await;
    let api = env.api::<ConfigMap>();
    for number in 0..OBJECTS {
        api.create(&PostParams::default(), &env.map(&format!("step-{number}"))).await.unwrap();
    }
    eventually("all steps are counted", async || {
        let total = api.get_opt("total").await.unwrap();
        total.and_then(|total| total.data).is_some_and(|data| data.len() == OBJECTS)
    })
    .await;
    running.stop().await;
}

pub(crate) async fn owned_objects_are_recreated_and_adopted_once(env: TestEnv) {
    let controller = Controller::of::<ConfigMap>()
        .owns::<Secret>()
        .when(|event: &kubewright::cache::Event<ConfigMap>| event.key().name() == "owner")
        .reconcile(|cx: Context<ConfigMap>| async move {
            if let Some(owner) = cx.object()? {
                cx.create_or_update("child", |_: &mut Secret| ()).controlled_by(&*owner).await?;
                cx.event("Synced", "the child is there");
            }
            Ok(Action::done())
        });
    let running = Running::begin(env.manager("owner").controller(controller)).await;
    let client = running.handle.own_cluster().client().clone();
    client.create(&env.map("owner")).await.unwrap();
    let live = client.live();
    let child = async || live.get::<Secret>(&env.key("child")).await.unwrap();
    eventually("the child", async || child().await.is_some()).await;
    let first = child().await.unwrap();
    client.delete(&*first).await.unwrap();
    eventually("another child", async || {
        child().await.is_some_and(|child| child.metadata.uid != first.metadata.uid)
    })
    .await;
    running.stop().await;
}

pub(crate) async fn repeated_events_are_counted(env: TestEnv) {
    env.api::<ConfigMap>().create(&PostParams::default(), &env.map("noisy")).await.unwrap();
    let controller =
        Controller::of::<ConfigMap>().named("noisy").reconcile(|cx: Context<ConfigMap>| async move {
            if cx.key().name() == "noisy" {
                for _ in 0..7 {
                    cx.warning("OutOfStock", "no carts are left");
                }
                cx.event("Synced", "and one that is not repeated");
            }
            Ok(Action::done())
        });
    let running = Running::begin(env.manager("shop-operator").controller(controller)).await;
    let events = env.api::<Event>();
    let found = async |reason: &str| {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).collect::<Vec<_>>()
    };
    eventually("the last event is there", async || !found("Synced").await.is_empty()).await;
    running.stop().await;
    let [repeated] = &found("OutOfStock").await[..] else { panic!("one event, counted") };
    assert_eq!(repeated.count, Some(7));
    assert_eq!(repeated.type_.as_deref(), Some("Warning"));
    assert_eq!(repeated.involved_object.name.as_deref(), Some("noisy"));
    assert_eq!(repeated.source.as_ref().unwrap().component.as_deref(), Some("shop-operator"));
    assert!(repeated.first_timestamp.is_some() && repeated.last_timestamp >= repeated.first_timestamp);
    if let Some(described) = env.kubectl(&["describe", "configmap", "noisy"]).await {
        let line = described.lines().find(|line| line.contains("OutOfStock")).expect(&described);
        assert!(line.contains("(x7 over ") && line.contains("shop-operator"), "{line}");
    }
}
