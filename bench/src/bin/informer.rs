//! Shared informer against a server: one JSON line per phase, as bench/peers/go/informer and bench/peers/kube-rs do.
//!
//! `informer --kubeconfig FILE --kind pods|configmaps --count N [--read labels|whole] [--phases sync,watch,relist]`
//!
//! The server ends the phases: "watch" is over when an object named bench-marker-1 appears, "relist" with bench-marker-2.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Client, Resource,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright::{
    cache::{Event, ListWatch, SharedInformer},
    client::Clients,
};
use kubewright_bench::{
    arguments::Arguments,
    measure::{Phase, percentile, resident_bytes},
    objects,
};
use mimalloc::MiMalloc;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() {
    let arguments = Arguments::of_process(&[]);
    let kubeconfig = Kubeconfig::read_from(arguments.text("kubeconfig", "")).expect("--kubeconfig is a file");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Clients::from_config(config.expect("it is a good one")).expect("it is a good one").client();
    match arguments.text("kind", "pods") {
        "configmaps" => run::<ConfigMap>(client, &arguments).await,
        _ => run::<Pod>(client, &arguments).await,
    }
}

enum Heard {
    First,
    Marker(String),
}

async fn run<K>(client: Client, arguments: &Arguments)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    let (count, events) = (arguments.get("count", 0), arguments.get("events", 20_000));
    let phases = arguments.text("phases", "sync");
    let settle = Duration::from_secs_f64(arguments.get("settle", 3.0));
    let whole = arguments.text("read", "labels") == "whole";
    let implementation = if whole { "kubewright, reading all" } else { "kubewright" };

    let phase = Phase::start();
    let informer = SharedInformer::new(ListWatch::<K>::new(client));
    let (told, mut heard) = mpsc::unbounded_channel();
    let lags = Arc::new(Mutex::new(Vec::<Duration>::with_capacity(events)));
    let _handler = phases.contains("watch").then(|| {
        let lags = Arc::clone(&lags);
        informer.on_event(move |event: Event<K>| {
            let object = event.object();
            if object.name().starts_with("bench-marker-") {
                let _ = told.send(Heard::Marker(object.name().to_owned()));
                return;
            }
            let Some(lag) = objects::lag(object.label("bench-at")) else { return };
            if whole {
                std::hint::black_box(object.load().expect("it is one"));
            }
            let mut lags = lags.lock().expect("nobody panics");
            if lags.is_empty() {
                let _ = told.send(Heard::First);
            }
            lags.push(lag);
        })
    });
    let _running = informer.start();
    informer.synced().await;
    assert!(informer.store().len() >= count, "{} of {count} objects are there", informer.store().len());
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
        let peak = kubewright_bench::measure::memory_of("self").1;
        #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^52")]
        let ratio = peak as f64 / steady as f64;
        phase
            .stop(count)
            .with("steady_bytes", steady)
            .with("peak_to_steady", ratio)
            .print("relist", implementation);
    }
}
