//! Many threads at once, for a bounded number of keys.

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

/// What workers do to see that they are alone with a key, and what they missed.
struct Books {
    busy: [AtomicBool; KEYS],
    /// Raised by whoever adds, taken down by whoever works.
    asked: [AtomicUsize; KEYS],
    seen: [AtomicUsize; KEYS],
}

impl Books {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            busy: std::array::from_fn(|_| AtomicBool::new(false)),
            asked: std::array::from_fn(|_| AtomicUsize::new(0)),
            seen: std::array::from_fn(|_| AtomicUsize::new(0)),
        })
    }

    async fn work(&self, key: usize) {
        assert!(!self.busy[key].swap(true, Ordering::AcqRel), "two workers have key {key}");
        let asked = self.asked[key].load(Ordering::Acquire);
        if key.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        self.seen[key].store(asked, Ordering::Release);
        assert!(self.busy[key].swap(false, Ordering::AcqRel));
    }
}

async fn run<K: Kind>(queue: Queue<usize, K>) {
    let books = Books::new();
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        let (queue, books) = (queue.clone(), Arc::clone(&books));
        workers.spawn(async move {
            let mut impatient = worker % 2 == 0;
            loop {
                // Half of the workers drop every other `get` right after its first poll.
                if impatient {
                    let mut get = std::pin::pin!(queue.get());
                    let first = futures::poll!(get.as_mut());
                    if let std::task::Poll::Ready(item) = first {
                        let Some(item) = item else { break };
                        books.work(*item.key()).await;
                    }
                } else {
                    let Some(item) = queue.get().await else { break };
                    books.work(*item.key()).await;
                }
                impatient = worker % 2 == 0 && !impatient;
            }
        });
    }
    let mut adders = JoinSet::new();
    for adder in 0..4 {
        let (queue, books) = (queue.clone(), Arc::clone(&books));
        adders.spawn(async move {
            for round in 0..ROUNDS {
                for key in 0..KEYS {
                    books.asked[key].fetch_add(1, Ordering::AcqRel);
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
    // Every key must be worked on after it was last asked for; what is delayed comes within a millisecond.
    for key in 0..KEYS {
        while books.seen[key].load(Ordering::Acquire) != 4 * ROUNDS {
            tokio::task::yield_now().await;
        }
    }
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    assert!(queue.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_and_none_is_in_two_hands() {
    run(WorkQueue::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_holds_with_priorities() {
    run(PriorityQueue::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn distinct_keys_from_many_threads_arrive_once_each() {
    let queue = WorkQueue::<usize>::new();
    let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..40_000).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                seen[*item.key()].fetch_add(1, Ordering::Relaxed);
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
    assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
}
