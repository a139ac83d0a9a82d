//! Pods from the response to the cache: `cache events | sync N [mixed] | memory N [mixed]`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright::cache::{IndexFn, Indexer, Lazy, ListWatch, Reflector};
use kubewright_bench::{
    mixed, pods,
    report::{Counting, Report, resident_bytes},
    serve::{self, Frames},
    workload,
};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new(MiMalloc);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_mixed = arguments.iter().any(|word| word == "mixed");
    let list = move |count| {
        if is_mixed {
            workload::list(count, mixed::APPLICATIONS, mixed::pod)
        } else {
            workload::list(count, pods::APPLICATIONS, pods::pod)
        }
    };
    let count = arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(30_000);
    match arguments.first().map(String::as_str) {
        Some("events") => events().await,
        Some("sync") => {
            sync("pod list to cache", count, serve::prepared(list(count))).await;
        }
        Some("memory") => memory(count, list).await,
        _ => panic!("usage: cache events | sync N [mixed] | memory N [mixed]"),
    }
}

fn reflector(client: kube::Client) -> (Indexer<Pod>, Reflector<Pod>) {
    let store = Indexer::<Pod>::with_metadata_key();
    store
        .add_indexes([IndexFn::namespace(), IndexFn::owner_uid("owner")])
        .expect("an empty store refuses no index");
    let reflector = Reflector::new(ListWatch::<Pod>::new(client), store.clone());
    (store, reflector)
}

/// 20,000 changes of 2,000 Pods through list-watch and reflector into the store.
async fn events() {
    let client = serve::client(
        || serve::framed(workload::list(0, pods::APPLICATIONS, pods::pod)),
        serve::prepared(workload::watch_lines()),
    );
    let (_store, reflector) = reflector(client);
    let position = reflector.position();
    let report = Report::start("pod event to cache", "kubewright", &ALLOCATOR);
    let running = tokio::spawn(reflector.run());
    while position.resource_version() != workload::last_version() {
        tokio::task::yield_now().await;
    }
    report.finish(workload::EVENTS);
    running.abort();
}

/// `count` Pods listed into an empty store with two indexes.
async fn sync(bench: &str, count: usize, list: impl Fn() -> Frames + Send + Sync + 'static) -> Indexer<Pod> {
    let (store, reflector) = reflector(serve::client(list, || Box::new(std::iter::empty())));
    let before = resident_bytes();
    let report = Report::start(bench, "kubewright", &ALLOCATOR);
    let running = tokio::spawn(reflector.run());
    while store.len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let resident = resident_bytes().saturating_sub(before);
    report.with("resident_bytes_each", resident, count).finish(count);
    running.abort();
    store
}

/// Measures the memory of a store and the cost of a cold read. The list is generated on demand, so that only the cache is in
/// memory.
async fn memory<L>(count: usize, list: impl Fn(usize) -> L + Send + Sync + 'static)
where
    L: Iterator<Item = String> + Send + 'static,
{
    let store = sync("pod list, generated meanwhile", count, move || serve::framed(list(count))).await;
    let objects = store.list();
    let heap: usize = objects.iter().map(Lazy::heap_size).sum();
    let reads = 5000;
    let report = Report::start("cold read of one pod", "kubewright", &ALLOCATOR).with(
        "heap_bytes_each",
        heap as u64,
        count,
    );
    for i in 0..reads {
        let object = &objects[i * 7919 % count];
        assert_eq!(object.load().expect("a pod").metadata.name.as_deref(), Some(object.name()));
    }
    report.finish(reads);
}
