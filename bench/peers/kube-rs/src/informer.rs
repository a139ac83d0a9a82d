//! kube-runtime's watcher and reflector against a server: what bench/src/bin/informer.rs does, with the same lines.
//!
//! As in kube-rs's own examples; with `--strip` managed fields are cleared before objects are kept, as its page on memory
//! recommends. The allocator is the program's: see the two in bin/.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

#[path = "../../../src/arguments.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod arguments;
#[path = "../../../src/measure.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod measure;

use arguments::Arguments;
use measure::{Phase, percentile, resident_bytes};

/// Runs it; `tuned` says that the program has an allocator of its choice.
pub async fn start(tuned: bool) {
    let arguments = Arguments::of_process(&["strip"]);
    let implementation = match (arguments.has("strip"), tuned) {
        (_, true) => "kube-rs, tuned",
        (true, false) => "kube-rs, stripped",
        (false, false) => "kube-rs",
    };
    let kubeconfig = Kubeconfig::read_from(arguments.text("kubeconfig", "")).expect("--kubeconfig is a file");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("it is a good one")).expect("it is a good one");
    match arguments.text("kind", "pods") {
        "configmaps" => run::<ConfigMap>(client, &arguments, implementation).await,
        _ => run::<Pod>(client, &arguments, implementation).await,
    }
}

enum Heard {
    First,
    Marker(String),
}

fn lag(stamp: Option<&String>) -> Option<Duration> {
    let at = Duration::from_nanos(stamp?.parse().ok()?);
    Some(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.saturating_sub(at))
}

async fn run<K>(client: Client, arguments: &Arguments, implementation: &str)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (count, events): (usize, usize) = (arguments.get("count", 0), arguments.get("events", 20_000));
    let phases = arguments.text("phases", "sync");
    let strip = arguments.has("strip");
    let settle = Duration::from_secs_f64(arguments.get("settle", 3.0));

    let phase = Phase::start();
    let (store, writer) = reflector::store::<K>();
    let (told, mut heard) = mpsc::unbounded_channel();
    let lags = Arc::new(Mutex::new(Vec::<Duration>::with_capacity(events)));
    let stream = watcher(Api::<K>::all(client), watcher::Config::default())
        .default_backoff()
        .modify(move |object| {
            if strip {
                object.managed_fields_mut().clear();
            }
        })
        .reflect(writer)
        .applied_objects();
    let handler = {
        let lags = Arc::clone(&lags);
        stream.for_each(move |object| {
            if let Ok(object) = object {
                let name = object.name_any();
                if name.starts_with("bench-marker-") {
                    let _ = told.send(Heard::Marker(name));
                } else if let Some(lag) = lag(object.labels().get("bench-at")) {
                    let mut lags = lags.lock().expect("nobody panics");
                    if lags.is_empty() {
                        let _ = told.send(Heard::First);
                    }
                    lags.push(lag);
                }
            }
            std::future::ready(())
        })
    };
    tokio::spawn(handler);
    store.wait_until_ready().await.expect("the writer lives");
    assert!(store.len() >= count, "{} of {count} objects are there", store.len());
    let line = phase.stop(count);
    tokio::time::sleep(settle).await;
    let resident = resident_bytes();
    line.with("steady_bytes", resident).with("forced_bytes", resident).print("sync", implementation);

    if phases.contains("watch") {
        let phase = Phase::start();
        let mut begin = Instant::now();
        loop {
            match heard.recv().await {
                Some(Heard::First) => begin = Instant::now(),
                Some(Heard::Marker(name)) if name == "bench-marker-1" => break,
                Some(Heard::Marker(_)) => {}
                None => panic!("the handler has gone"),
            }
        }
        let mut lags = lags.lock().expect("nobody panics");
        phase
            .stop(events)
            .timed(events, begin.elapsed())
            .with("delivered", lags.len())
            .with("p50_us", percentile(&mut lags, 50))
            .with("p99_us", percentile(&mut lags, 99))
            .print("watch", implementation);
    }
    if phases.contains("relist") {
        tokio::time::sleep(settle).await;
        let steady = resident_bytes();
        let phase = Phase::start();
        while !matches!(heard.recv().await, Some(Heard::Marker(name)) if name == "bench-marker-2") {}
        tokio::time::sleep(settle).await;
        let peak = measure::memory_of("self").1;
        #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^52")]
        let ratio = peak as f64 / steady as f64;
        phase
            .stop(count)
            .with("steady_bytes", steady)
            .with("peak_to_steady", ratio)
            .print("relist", implementation);
    }
}
