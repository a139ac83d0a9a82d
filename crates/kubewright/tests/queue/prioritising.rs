//! Priorities, by the rules of controller-runtime's priority queue.

use std::time::Duration;

use kubewright::queue::{
    AddOptions, LOW_PRIORITY, PriorityQueue,
    limiter::{ItemExponentialFailure, RateLimiter},
};
use tokio::time::{Instant, advance};

use super::now;

const MS: Duration = Duration::from_millis(1);

const fn priority(priority: i32) -> AddOptions {
    AddOptions::new().priority(priority)
}

/// Takes and finishes all keys that are ready now, with their priorities.
fn drain(queue: &PriorityQueue<&'static str>) -> Vec<(&'static str, i32)> {
    std::iter::from_fn(|| now(queue).map(|item| (*item.key(), item.priority()))).collect()
}

#[tokio::test]
async fn higher_priorities_go_first_and_equal_ones_in_order() {
    let queue = PriorityQueue::new();
    for (key, level) in [("low", -10), ("a", 0), ("high", 10), ("b", 0), ("low too", -10)] {
        queue.add_with(key, priority(level));
    }
    assert_eq!(queue.len(), 5);
    assert_eq!(drain(&queue), [("high", 10), ("a", 0), ("b", 0), ("low", -10), ("low too", -10)]);
}

#[tokio::test]
async fn low_priority_keys_do_not_delay_live_changes() {
    let queue = PriorityQueue::new();
    for key in ["x", "y", "z"] {
        queue.add_with(key, priority(LOW_PRIORITY));
    }
    queue.add("live");
    assert_eq!(drain(&queue), [("live", 0), ("x", -100), ("y", -100), ("z", -100)]);
}

#[tokio::test]
async fn a_key_keeps_the_highest_priority_it_was_added_with() {
    let queue = PriorityQueue::new();
    queue.add_with("up", priority(1));
    queue.add_with("up", priority(2));
    queue.add_with("down", priority(2));
    queue.add_with("down", priority(1));
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), [("up", 2), ("down", 2)]);
}

#[tokio::test]
async fn a_raised_key_goes_to_the_end_of_its_new_priority() {
    let queue = PriorityQueue::new();
    queue.add_with("foo", priority(0));
    queue.add_with("bar", priority(1));
    queue.add_with("foo", priority(1));
    queue.add_with("baz", priority(1));
    assert_eq!(drain(&queue), [("bar", 1), ("foo", 1), ("baz", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_becomes_ready_at_the_earlier_of_two_times() {
    let queue = PriorityQueue::new();
    queue.add_with("a", AddOptions::new().after(Duration::from_hours(1)));
    queue.add_with("a", AddOptions::new().after(10 * MS));
    queue.add_with("a", AddOptions::new().after(Duration::from_secs(1)));
    assert!(queue.is_empty());
    advance(10 * MS).await;
    assert_eq!(drain(&queue), [("a", 0)]);
    advance(Duration::from_hours(2)).await;
    assert!(queue.is_empty(), "a key has one place: the later times are gone");
}

#[tokio::test(start_paused = true)]
async fn adding_a_waiting_key_without_delay_makes_it_ready_and_ends_the_delay() {
    let queue = PriorityQueue::new();
    queue.add_with("a", AddOptions::new().after(Duration::from_secs(1)));
    queue.add_with("a", priority(1));
    assert_eq!(drain(&queue), [("a", 1)]);
    advance(Duration::from_secs(2)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn adding_a_ready_key_with_a_delay_leaves_it_ready() {
    let queue = PriorityQueue::new();
    queue.add("a");
    queue.add_with("a", priority(3).after(Duration::from_secs(1)));
    assert_eq!(drain(&queue), [("a", 3)], "with the higher priority nevertheless");
    advance(Duration::from_secs(2)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_can_be_raised() {
    let queue = PriorityQueue::new();
    queue.add_with("a", priority(-5).after(10 * MS));
    queue.add_with("a", priority(5).after(Duration::from_secs(1)));
    queue.add_after("b", 10 * MS);
    advance(10 * MS).await;
    assert_eq!(drain(&queue), [("a", 5), ("b", 0)]);
}

#[tokio::test(start_paused = true)]
async fn among_equal_priorities_the_time_of_becoming_ready_counts() {
    let queue = PriorityQueue::new();
    queue.add_after("delayed", 10 * MS);
    queue.add("first");
    advance(20 * MS).await;
    queue.add("last");
    assert_eq!(drain(&queue), [("first", 0), ("delayed", 0), ("last", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_high_priority_that_becomes_ready_goes_first() {
    let queue = PriorityQueue::new();
    queue.add_with("low", priority(-100));
    queue.add_with("prio", AddOptions::new().after(Duration::from_secs(1)));
    advance(Duration::from_secs(1)).await;
    assert_eq!(drain(&queue), [("prio", 0), ("low", -100)]);
}

#[tokio::test]
async fn a_key_in_flight_is_skipped_and_keeps_its_place() {
    let queue = PriorityQueue::new();
    queue.add("foo");
    let foo = now(&queue).unwrap();
    queue.add("foo");
    queue.add("bar");
    queue.add("baz");
    assert_eq!(queue.len(), 3, "as in controller-runtime, it counts");
    let bar = now(&queue).unwrap();
    assert_eq!(bar.key(), &"bar");
    drop(foo);
    assert_eq!(drain(&queue), [("foo", 0), ("baz", 0)], "it was added before baz");
}

#[tokio::test]
async fn a_key_in_flight_is_added_with_its_new_priority() {
    let queue = PriorityQueue::new();
    queue.add_with("a", priority(10));
    let item = now(&queue).unwrap();
    queue.add_with("a", priority(LOW_PRIORITY));
    queue.add_with("a", priority(-1));
    drop(item);
    assert_eq!(drain(&queue), [("a", -1)]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let queue = PriorityQueue::new();
    queue.add_with("important", priority(7));
    queue.get().await.unwrap().retry("failed");
    let item = queue.get().await.unwrap();
    assert_eq!((item.priority(), item.requeues()), (7, 1));
    item.requeue_after(MS);
    queue.add("other");
    advance(MS).await;
    assert_eq!(drain(&queue), [("important", 7), ("other", 0)]);
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_per_key_without_an_overall_limit() {
    let queue = PriorityQueue::new();
    for key in 0..500 {
        queue.add_with(key, AddOptions::new().rate_limited());
    }
    advance(5 * MS).await;
    assert_eq!(queue.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn with_a_delay_and_a_limit_the_shorter_counts() {
    let limiter = ItemExponentialFailure::new(100 * MS, 100 * MS);
    let queue = PriorityQueue::builder().limiter(limiter).build();
    queue.add_with("limited", AddOptions::new().rate_limited().after(Duration::from_secs(5)));
    queue.add_with("delayed", AddOptions::new().rate_limited().after(50 * MS));
    let start = Instant::now();
    assert_eq!(queue.get().await.unwrap().key(), &"delayed");
    assert_eq!(start.elapsed(), 50 * MS);
    assert_eq!(queue.get().await.unwrap().key(), &"limited");
    assert_eq!(start.elapsed(), 100 * MS);
    assert_eq!(queue.num_requeues(&"limited"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_does_not_delay_adds_at_once() {
    struct Never;
    impl RateLimiter<&'static str> for Never {
        fn when(&self, _: &&'static str) -> Duration {
            Duration::ZERO
        }
        fn forget(&self, _: &&'static str) {}
        fn num_requeues(&self, _: &&'static str) -> u32 {
            0
        }
    }
    let queue = PriorityQueue::builder().limiter(Never).build();
    queue.add_with("a", AddOptions::new().rate_limited());
    queue.add_rate_limited("b");
    assert_eq!(drain(&queue), [("a", 0), ("b", 0)]);
}
