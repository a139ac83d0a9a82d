//! Work queue, driven as bench/peers/go/queue/main.go drives client-go's: the same keys, the same delays, the same
//! number of adders and workers. Prints one JSON line per workload; name workloads to run only those.
//!
//! One difference: Go preempts goroutines, while tasks have to yield. The adders yield every [`BUDGET`] keys, as tokio's
//! cooperative budget makes tasks do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kubewright::{ObjectKey, queue::WorkQueue};
use kubewright_bench::report::Report;
use tokio::task::{JoinSet, yield_now};

const WORKLOADS: [&str; 4] = ["distinct-1-adder", "distinct-4-adders", "burst", "delayed-1s"];
const ITEMS: u32 = 1_000_000;
const WORKERS: usize = 8;
const SPREAD_NANOS: u64 = 1_000_000_000;
const BUDGET: usize = 128;

#[tokio::main]
async fn main() {
    let mut workloads: Vec<String> = std::env::args().skip(1).collect();
    if workloads.is_empty() {
        workloads = WORKLOADS.map(Into::into).to_vec();
    }
    for workload in workloads {
        let keys: Arc<[ObjectKey]> = (0..ITEMS)
            .map(|i| ObjectKey::namespaced(&format!("namespace-{}", i % 100), &format!("object-{i}")))
            .collect();
        let report = Report::start(&workload, "kubewright", None);
        match workload.as_str() {
            "distinct-1-adder" => distinct(&keys, 1).await,
            "distinct-4-adders" => distinct(&keys, 4).await,
            "burst" => burst(&keys).await,
            "delayed-1s" => delayed(&keys).await,
            other => panic!("no workload {other:?}"),
        }
        report.finish(keys.len());
    }
}

/// Adds every key once while the workers take and finish them.
async fn distinct(keys: &Arc<[ObjectKey]>, adders: usize) {
    let queue = WorkQueue::new();
    let workers = work(&queue);
    let mut adding = JoinSet::new();
    let share = keys.len() / adders;
    for adder in 0..adders {
        let (queue, keys) = (queue.clone(), Arc::clone(keys));
        adding.spawn(async move {
            for keys in keys[adder * share..][..share].chunks(BUDGET) {
                for key in keys {
                    queue.add(key.clone());
                }
                yield_now().await;
            }
        });
    }
    adding.join_all().await;
    finish(&queue, workers).await;
}

/// Adds every key once before the workers start.
async fn burst(keys: &Arc<[ObjectKey]>) {
    let queue = WorkQueue::new();
    for key in &**keys {
        queue.add(key.clone());
    }
    let workers = work(&queue);
    finish(&queue, workers).await;
}

/// Workers that count.
fn work(queue: &WorkQueue<ObjectKey>) -> JoinSet<u32> {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut seen = 0;
            while let Some(item) = queue.get().await {
                std::hint::black_box(item.key());
                seen += 1;
            }
            seen
        });
    }
    workers
}

async fn finish(queue: &WorkQueue<ObjectKey>, workers: JoinSet<u32>) {
    queue.shut_down();
    let seen: u32 = workers.join_all().await.into_iter().sum();
    assert_eq!(seen, ITEMS, "every key arrives once");
}

/// Adds every key with a delay between nothing and one second and waits for the last to be finished.
async fn delayed(keys: &Arc<[ObjectKey]>) {
    let queue = WorkQueue::new();
    let left = Arc::new(AtomicU32::new(ITEMS));
    let mut working = JoinSet::new();
    for _ in 0..WORKERS {
        let (queue, left) = (queue.clone(), Arc::clone(&left));
        working.spawn(async move {
            while let Some(item) = queue.get().await {
                drop(item);
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    queue.shut_down();
                }
            }
        });
    }
    let (adding, keys) = (queue, Arc::clone(keys));
    let adder = tokio::spawn(async move {
        for (i, key) in (0..).zip(&*keys) {
            adding.add_after(key.clone(), delay(i));
            if (i as usize).is_multiple_of(BUDGET) {
                yield_now().await;
            }
        }
    });
    adder.await.expect("adding does not fail");
    working.join_all().await;
}

/// Spreads the items over one second in an order that looks random and is the same in every run.
fn delay(i: u32) -> Duration {
    let random = u64::from(i.wrapping_mul(2_654_435_761));
    Duration::from_nanos((random * SPREAD_NANOS) >> 32)
}
