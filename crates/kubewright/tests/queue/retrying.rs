//! Failures and retries.

use std::time::Duration;

use kubewright::{
    ObjectKey,
    queue::{
        RateLimitingQueue,
        limiter::{ItemExponentialFailure, default_item_limiter},
    },
};
use tokio::time::{Instant, advance};

use super::{drain, now};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_retried_key_is_ready_after_the_delay_of_the_limiter() {
    let queue = RateLimitingQueue::builder().limiter(default_item_limiter()).build();
    queue.add("a");
    let start = Instant::now();
    let mut at = vec![];
    for _ in 0..4 {
        let item = queue.get().await.unwrap();
        at.push((start.elapsed().as_millis(), item.requeues()));
        item.retry("failed");
    }
    // 1, 2 and 4 ms after one another.
    assert_eq!(at, [(0, 0), (1, 1), (3, 2), (7, 3)]);
    assert_eq!(queue.num_requeues(&"a"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_typical_controller_loop_retries_and_gives_up() {
    let queue = RateLimitingQueue::<ObjectKey>::named("retrying::a_typical_controller_loop");
    queue.add(ObjectKey::namespaced("default", "bad"));
    queue.add(ObjectKey::namespaced("default", "good"));
    let mut attempts = 0;
    while let Some(item) = queue.get().await {
        let result = if item.key().name() == "good" { Ok(()) } else { Err("no such thing") };
        match result {
            Ok(()) => item.forget(),
            Err(error) if item.requeues() < 10 => {
                attempts += 1;
                item.retry(error);
            }
            Err(error) => {
                item.give_up(error);
                queue.shut_down();
            }
        }
    }
    assert_eq!(attempts, 10);
    assert_eq!(queue.num_requeues(&ObjectKey::namespaced("default", "bad")), 0);
}

#[tokio::test(start_paused = true)]
async fn forgetting_a_key_resets_its_back_off() {
    let queue = RateLimitingQueue::new();
    queue.add("a");
    queue.get().await.unwrap().retry("failed");
    let item = queue.get().await.unwrap();
    assert_eq!(item.requeues(), 1);
    item.forget();
    assert_eq!(queue.num_requeues(&"a"), 0);
    advance(Duration::from_hours(1)).await;
    assert!(queue.is_empty(), "a forgotten item is finished");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_given_up_is_not_queued_again() {
    let queue = RateLimitingQueue::new();
    queue.add("a");
    queue.get().await.unwrap().retry("failed");
    queue.get().await.unwrap().give_up("hopeless");
    assert_eq!(queue.num_requeues(&"a"), 0);
    advance(Duration::from_hours(1)).await;
    assert!(queue.is_empty());
    queue.add("a");
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_item_keeps_its_count_and_is_not_queued_again() {
    let queue = RateLimitingQueue::new();
    queue.add("a");
    queue.get().await.unwrap().retry("failed");
    drop(queue.get().await);
    assert_eq!(queue.num_requeues(&"a"), 1);
    advance(Duration::from_hours(1)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_requeued_after_a_delay_without_a_failure() {
    let queue = RateLimitingQueue::new();
    queue.add("a");
    queue.get().await.unwrap().retry("failed");
    queue.get().await.unwrap().requeue_after(Duration::from_secs(30));
    let start = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(item.requeues(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_the_back_off() {
    let limiter = ItemExponentialFailure::new(Duration::from_mins(1), Duration::from_mins(1));
    let queue = RateLimitingQueue::builder().limiter(limiter).build();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add("a");
    item.retry("failed");
    assert_eq!(drain(&queue), ["a"], "it was added while in flight");
    advance(Duration::from_mins(1)).await;
    assert_eq!(drain(&queue), ["a"], "and the retry follows, as in client-go");
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_not_ready_before_its_item_is_finished_and_its_delay_over() {
    let queue = RateLimitingQueue::builder().limiter(default_item_limiter()).build();
    queue.add("a");
    now(&queue).unwrap().retry("failed");
    assert!(now(&queue).is_none());
    advance(MS).await;
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn keys_can_be_added_rate_limited_from_outside() {
    let queue = RateLimitingQueue::builder().limiter(default_item_limiter()).build();
    queue.add_rate_limited("a");
    queue.add_rate_limited("a");
    assert_eq!(queue.num_requeues(&"a"), 2);
    assert!(queue.is_empty());
    advance(MS).await;
    assert_eq!(drain(&queue), ["a"]);
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_that_retry_without_a_delay_do_not_starve_others() {
    let limiter = ItemExponentialFailure::new(Duration::ZERO, Duration::ZERO);
    let queue = RateLimitingQueue::builder().limiter(limiter).build();
    queue.add("stubborn");
    let item = now(&queue).unwrap();
    queue.add("patient");
    item.retry("failed");
    assert_eq!(now(&queue).unwrap().key(), &"patient");
}
