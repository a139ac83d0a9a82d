//! kube-runtime's watcher and reflector on the same bytes: `peer-kube-rs events | sync N`.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use mimalloc::MiMalloc;

#[path = "../../../src/measure.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod measure;
#[path = "../../../src/pods.rs"]
mod pods;
#[path = "../../../src/report.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod report;
#[path = "../../../src/serve.rs"]
mod serve;
#[path = "../../../src/workload.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod workload;

use report::{Counting, Report, resident_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new(MiMalloc);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(30_000);
    match arguments.first().map(String::as_str) {
        Some("events") => {
            let list = || serve::framed(workload::list(0, pods::APPLICATIONS, pods::pod));
            let client = serve::client(list, serve::prepared(workload::watch_lines()));
            reflect(client, "pod event to cache", workload::EVENTS, workload::PODS).await;
        }
        Some("sync") => {
            let client =
                serve::client(serve::prepared(workload::list(count, pods::APPLICATIONS, pods::pod)), || Box::new(std::iter::empty()));
            reflect(client, "pod list to cache", count, count).await;
        }
        _ => panic!("usage: peer-kube-rs events | sync N"),
    }
}

async fn reflect(client: Client, bench: &str, count: usize, pods: usize) {
    let (store, writer) = reflector::store::<Pod>();
    let before = resident_bytes();
    let report = Report::start(bench, "kube-rs", &ALLOCATOR);
    let events = watcher(Api::all(client), watcher::Config::default()).reflect(writer).applied_objects();
    events.take(count).try_for_each(|_| std::future::ready(Ok(()))).await.expect("the answers are good");
    let resident = resident_bytes().saturating_sub(before);
    report.with("resident_bytes_each", resident, pods).finish(count);
    drop(store);
}
