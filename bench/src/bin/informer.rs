//! The way of a Pod from the response to the cache. `events`, `sync N`.

use std::{alloc::System, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kubewright::cache::{IndexFn, Indexer, ListWatch, Reflector};
use kubewright_bench::{pods, report::Report, serve, workload};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["events"] => events().await,
        ["sync", count] => sync(count.parse().expect("a number of pods")).await,
        _ => panic!("usage: informer events | informer sync N"),
    }
}

fn store() -> Indexer<Pod> {
    let store = Indexer::<Pod>::keyed();
    store
        .add_indexes([IndexFn::namespace(), IndexFn::owner_uid("owner")])
        .expect("an empty store refuses no index");
    store
}

/// 20,000 changes of 2,000 Pods through list-watch and reflector into the store.
async fn events() {
    let events = workload::watch_lines();
    let client = serve::client(workload::empty_list, move || Box::new(events.clone().into_iter()));
    let store = store();
    let reflector = Reflector::new(ListWatch::<Pod>::new(client), store.clone()).streaming(false);
    let position = reflector.position();
    let report = Report::start("pod event to cache", "kubewright", ALLOCATOR);
    let running = tokio::spawn(reflector.run());
    while position.resource_version() != workload::last_version() {
        tokio::task::yield_now().await;
    }
    report.finish(workload::EVENTS);
    running.abort();
}

/// `count` Pods listed into an empty store with two indexes; then what they hold, and what reading one costs.
async fn sync(count: usize) {
    let client = serve::client(move || workload::list(count), || Box::new(std::iter::empty()));
    let store = store();
    let reflector = Reflector::new(ListWatch::<Pod>::new(client), store.clone()).streaming(false);
    let before = kubewright_bench::report::resident_bytes();
    let report = Report::start("pod list to cache", "kubewright", ALLOCATOR);
    let running = tokio::spawn(reflector.run());
    while store.len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let resident = kubewright_bench::report::resident_bytes().saturating_sub(before);
    report.with("resident_bytes_each", resident as f64 / count as f64).finish(count);

    let objects = store.list();
    let heap: usize = objects.iter().map(|object| object.heap_size()).sum();
    let reads = 5000;
    let report = Report::start("cold read of one pod", "kubewright", ALLOCATOR)
        .with("heap_bytes_each", heap as f64 / count as f64);
    for i in 0..reads {
        let object = &objects[i * 7919 % count];
        assert_eq!(object.load().expect("a pod").metadata.name.as_deref(), Some(object.name()));
    }
    report.finish(reads);
    running.abort();
    assert_eq!(pods::pod(0).len() / 1000, 9, "the pods are what the numbers speak of");
}
