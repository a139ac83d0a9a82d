//! Random sequences of operations, compared with a simple model.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kubewright::queue::{AddOptions, Item, PriorityQueue, Queue, RateLimitingQueue, Retrying};
use proptest::prelude::*;

use super::now;

#[derive(Debug, Clone)]
enum Step {
    Add { key: u8, priority: i32, delay: u64 },
    Get,
    Done { which: usize },
    Again { which: usize, delay: u64 },
    Wait { delay: u64 },
    Len,
    ShutDown,
}

fn step() -> impl Strategy<Value = Step> {
    // Milliseconds; zero is frequent, and some are so long that keys move through the far buckets.
    let delay = || prop_oneof![3 => Just(0_u64), 3 => 1_u64..20, 1 => 1_u64..100_000];
    prop_oneof![
        20 => (0_u8..8, -1_i32..2, delay()).prop_map(|(key, priority, delay)| Step::Add { key, priority, delay }),
        15 => Just(Step::Get),
        9 => any::<usize>().prop_map(|which| Step::Done { which }),
        3 => (any::<usize>(), delay()).prop_map(|(which, delay)| Step::Again { which, delay }),
        8 => delay().prop_map(|delay| Step::Wait { delay }),
        3 => Just(Step::Len),
        1 => Just(Step::ShutDown),
    ]
}

/// A model of sorted maps and sets.
#[derive(Default)]
struct Model {
    by_priority: bool,
    now: u64,
    arrivals: u64,
    shut_down: bool,
    in_flight: BTreeSet<u8>,
    /// All keys to process, in flight or not: by descending priority, then by arrival.
    ready: BTreeMap<(i32, u64), u8>,
    /// By time, then by arrival: the key and the place that it would have if it were ready now.
    waiting: BTreeMap<(u64, u64), (u8, (i32, u64))>,
}

impl Model {
    fn place(&mut self, priority: i32) -> (i32, u64) {
        self.arrivals += 1;
        (if self.by_priority { -priority } else { 0 }, self.arrivals)
    }

    fn is_ready(&self, key: u8) -> Option<(i32, u64)> {
        self.ready.iter().find(|(_, ready)| **ready == key).map(|(place, _)| *place)
    }

    fn is_waiting(&self, key: u8) -> Option<((u64, u64), (i32, u64))> {
        self.waiting.iter().find(|(_, (waiting, _))| *waiting == key).map(|(at, (_, place))| (*at, *place))
    }

    fn wait(&mut self, key: u8, at: u64, place: (i32, u64)) {
        self.arrivals += 1;
        self.waiting.insert((at, self.arrivals), (key, place));
    }

    fn advance(&mut self) {
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= self.now
        {
            let (key, place) = entry.remove();
            if self.is_ready(key).is_none() {
                let place = self.place(-place.0);
                self.ready.insert(place, key);
            }
        }
    }

    fn add(&mut self, key: u8, priority: i32, delay: u64) {
        if self.shut_down {
            return;
        }
        self.advance();
        let at = self.now + delay;
        if !self.by_priority {
            if delay == 0 {
                if self.is_ready(key).is_none() {
                    let place = self.place(0);
                    self.ready.insert(place, key);
                }
            } else if self.is_waiting(key).is_none_or(|((before, _), _)| at < before) {
                self.waiting.retain(|_, (waiting, _)| *waiting != key);
                self.wait(key, at, (0, 0));
            }
            return;
        }
        if let Some(place) = self.is_ready(key) {
            if -priority < place.0 {
                self.ready.remove(&place);
                let place = self.place(priority);
                self.ready.insert(place, key);
            }
        } else if let Some((before, place)) = self.is_waiting(key) {
            self.waiting.remove(&before);
            let place = if -priority < place.0 { self.place(priority) } else { place };
            if delay == 0 {
                self.ready.insert(place, key);
            } else if at < before.0 {
                self.wait(key, at, place);
            } else {
                self.waiting.insert(before, (key, place));
            }
        } else {
            let place = self.place(priority);
            if delay == 0 {
                self.ready.insert(place, key);
            } else {
                self.wait(key, at, place);
            }
        }
    }

    fn get(&mut self) -> Option<(u8, i32)> {
        self.advance();
        let next = self.ready.iter().find(|(_, key)| !self.in_flight.contains(key));
        let (place, key) = next.map(|(place, key)| (*place, *key))?;
        self.ready.remove(&place);
        self.in_flight.insert(key);
        Some((key, -place.0))
    }

    fn done(&mut self, key: u8) {
        self.advance();
        self.in_flight.remove(&key);
        if !self.by_priority
            && let Some(place) = self.is_ready(key)
        {
            self.ready.remove(&place);
            let place = self.place(0);
            self.ready.insert(place, key);
        }
    }

    fn len(&mut self) -> usize {
        self.advance();
        if self.by_priority {
            return self.ready.len();
        }
        self.ready.values().filter(|key| !self.in_flight.contains(key)).count()
    }
}

fn compare<K: Retrying>(
    queue: &Queue<u8, K>,
    by_priority: bool,
    steps: Vec<Step>,
    add: impl Fn(u8, i32, Duration),
    priority: impl Fn(&Item<u8, K>) -> i32,
) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread");
    runtime.block_on(async {
        let mut model = Model { by_priority, ..Model::default() };
        let mut held: Vec<Item<u8, K>> = vec![];
        for step in steps {
            match step {
                Step::Add { key, priority, delay } => {
                    add(key, priority, Duration::from_millis(delay));
                    model.add(key, priority, delay);
                }
                Step::Get => {
                    let item = now(queue);
                    prop_assert_eq!(item.as_ref().map(|item| (*item.key(), priority(item))), model.get());
                    if let Some(item) = &item {
                        prop_assert!(
                            held.iter().all(|other| other.key() != item.key()),
                            "processed twice at once"
                        );
                    }
                    held.extend(item);
                }
                Step::Done { which } => {
                    if !held.is_empty() {
                        let item = held.swap_remove(which % held.len());
                        model.done(*item.key());
                    }
                }
                Step::Again { which, delay } => {
                    if !held.is_empty() {
                        let item = held.swap_remove(which % held.len());
                        model.add(*item.key(), priority(&item), delay);
                        model.done(*item.key());
                        item.requeue_after(Duration::from_millis(delay));
                    }
                }
                Step::Wait { delay } => {
                    tokio::time::advance(Duration::from_millis(delay)).await;
                    model.now += delay;
                }
                Step::Len => prop_assert_eq!(queue.len(), model.len()),
                Step::ShutDown => {
                    queue.shut_down();
                    model.advance();
                    model.shut_down = true;
                    model.waiting.clear();
                }
            }
        }
        // In the end every requested key is handed out, in order, and no other.
        for item in held.drain(..) {
            model.done(*item.key());
            drop(item);
        }
        tokio::time::advance(Duration::from_secs(1000)).await;
        model.now += 1_000_000;
        loop {
            let item = now(queue);
            let expected = model.get();
            prop_assert_eq!(item.as_ref().map(|item| (*item.key(), priority(item))), expected);
            let Some(item) = item else { return Ok(()) };
            model.done(*item.key());
        }
    })
}

proptest! {
    #[test]
    fn a_work_queue_agrees_with_the_model(steps in prop::collection::vec(step(), 1..200)) {
        let queue = RateLimitingQueue::new();
        compare(&queue, false, steps, |key, _, delay| queue.add_after(key, delay), |_| 0)?;
    }

    #[test]
    fn a_priority_queue_agrees_with_the_model(steps in prop::collection::vec(step(), 1..200)) {
        let queue = PriorityQueue::new();
        let add = |key, priority, after| {
            queue.add_with(key, AddOptions::new().priority(priority).after(after));
        };
        compare(&queue, true, steps, add, Item::priority)?;
    }
}
