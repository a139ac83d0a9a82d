//! Concurrent use from many threads, for a bounded number of keys.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use kubewright::queue::{Kind, PriorityQueue, Queue, WorkQueue};
use tokio::task::JoinSet;

const KEYS: usize = 64;
const DELAY: Duration = Duration::from_micros(10);
const ROUNDS: usize = 500;

/// Shared state by which workers check that a key is processed once at a time, and after every add.
struct Checks {
    busy: [AtomicBool; KEYS],
    /// Number of adds.
    added: [AtomicUsize; KEYS],
    processed: [AtomicUsize; KEYS],
}

impl Checks {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            busy: std::array::from_fn(|_| AtomicBool::new(false)),
            added: std::array::from_fn(|_| AtomicUsize::new(0)),
            processed: std::array::from_fn(|_| AtomicUsize::new(0)),
        })
    }

    async fn work(&self, key: usize) {
        assert!(!self.busy[key].swap(true, Ordering::AcqRel), "two workers have key {key}");
        let added = self.added[key].load(Ordering::Acquire);
        if key.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        self.processed[key].store(added, Ordering::Release);
        assert!(self.busy[key].swap(false, Ordering::AcqRel));
    }
}

async fn run<K: Kind>(queue: Queue<usize, K>) {
    let checks = Checks::new();
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        let (queue, checks) = (queue.clone(), Arc::clone(&checks));
        workers.spawn(async move {
            let mut cancelling = worker % 2 == 0;
            loop {
                // Half of the workers drop every other `get` right after its first poll.
                if cancelling {
                    let mut get = std::pin::pin!(queue.get());
                    let first = futures::poll!(get.as_mut());
                    if let std::task::Poll::Ready(item) = first {
                        let Some(item) = item else { break };
                        checks.work(*item.key()).await;
                    }
                } else {
                    let Some(item) = queue.get().await else { break };
                    checks.work(*item.key()).await;
                }
                cancelling = worker % 2 == 0 && !cancelling;
            }
        });
    }
    let mut adders = JoinSet::new();
    for adder in 0..4 {
        let (queue, checks) = (queue.clone(), Arc::clone(&checks));
        adders.spawn(async move {
            for round in 0..ROUNDS {
                for key in 0..KEYS {
                    checks.added[key].fetch_add(1, Ordering::AcqRel);
                    if (key + adder + round).is_multiple_of(4) {
                        let delay = u32::try_from(key).map_or(DELAY, |key| key * DELAY);
                        queue.add_after(key, delay);
                    } else {
                        queue.add(key);
                    }
                }
                tokio::task::yield_now().await;
            }
        });
    }
    adders.join_all().await;
    // Every key must be processed after its last add; delayed ones within a millisecond.
    for key in 0..KEYS {
        while checks.processed[key].load(Ordering::Acquire) != 4 * ROUNDS {
            tokio::task::yield_now().await;
        }
    }
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    assert!(queue.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_and_none_is_processed_twice_at_once() {
    run(WorkQueue::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_and_none_is_processed_twice_at_once_with_priorities() {
    run(PriorityQueue::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn distinct_keys_from_many_threads_are_processed_once_each() {
    let queue = WorkQueue::<usize>::new();
    let processed: Arc<Vec<AtomicUsize>> = Arc::new((0..40_000).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let (queue, processed) = (queue.clone(), Arc::clone(&processed));
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                processed[*item.key()].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let adders: Vec<_> = (0..4)
        .map(|adder| {
            let queue = queue.clone();
            std::thread::spawn(move || (0..10_000).for_each(|key| queue.add(adder * 10_000 + key)))
        })
        .collect();
    for adder in adders {
        adder.join().unwrap();
    }
    queue.shut_down();
    workers.join_all().await;
    assert!(processed.iter().all(|processed| processed.load(Ordering::Relaxed) == 1));
}
