//! Shutdown.

use std::time::Duration;

use futures::FutureExt;
use kubewright::queue::{PriorityQueue, RateLimitingQueue, WorkQueue};
use tokio::time::advance;

use super::{drain, now};

#[tokio::test]
async fn a_key_that_is_added_after_shutdown_is_ignored() {
    let queue = WorkQueue::new();
    queue.add("before");
    queue.shut_down();
    queue.add("after");
    assert!(queue.is_shutting_down());
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), ["before"]);
}

#[tokio::test]
async fn get_returns_the_remaining_keys_and_then_none() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("b");
    queue.shut_down();
    assert_eq!(queue.get().await.unwrap().key(), &"a");
    assert_eq!(queue.get().await.unwrap().key(), &"b");
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
}

#[tokio::test]
async fn a_key_that_was_added_while_in_flight_is_still_handed_out_after_shutdown() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add("a");
    queue.shut_down();
    assert!(queue.get().await.is_none(), "not while it is in flight");
    drop(item);
    assert_eq!(queue.get().await.unwrap().key(), &"a");
    assert!(queue.get().await.is_none());
}

#[tokio::test]
async fn waiting_workers_are_woken() {
    let queue = WorkQueue::<u32>::new();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.is_none() });
    }
    tokio::task::yield_now().await;
    queue.shut_down();
    assert_eq!(workers.join_all().await, [true; 4]);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_dropped() {
    let queue = WorkQueue::new();
    queue.add_after("due", Duration::from_millis(1));
    queue.add_after("waiting", Duration::from_secs(1));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item.key()) }
    });
    advance(Duration::from_millis(1)).await;
    queue.shut_down();
    assert_eq!(worker.await.unwrap(), Some("due"));
    assert!(queue.get().await.is_none(), "at once, not after the delay");
    queue.add_after("later", Duration::from_millis(1));
    advance(Duration::from_secs(5)).await;
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_retry_after_shutdown_is_ignored() {
    let queue = RateLimitingQueue::new();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.shut_down();
    item.retry("failed");
    assert!(queue.get().await.is_none());
}

#[tokio::test]
async fn drain_waits_for_items_in_flight() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("b");
    let (a, b) = (now(&queue).unwrap(), now(&queue).unwrap());

    let mut drained = Box::pin(queue.shut_down_with_drain());
    assert!(drained.as_mut().now_or_never().is_none());
    assert!(queue.is_shutting_down());
    drop(a);
    assert!(drained.as_mut().now_or_never().is_none());
    drop(b);
    drained.await;
}

#[tokio::test]
async fn drain_of_an_idle_queue_returns_at_once() {
    let queue = WorkQueue::<u32>::new();
    assert!(queue.shut_down_with_drain().now_or_never().is_some());
}

#[tokio::test]
async fn drain_waits_for_a_key_that_was_requeued_and_taken_again() {
    let queue = WorkQueue::new();
    queue.add("a");
    let first = now(&queue).unwrap();
    queue.add("a");
    let drained = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    tokio::task::yield_now().await;
    drop(first);
    let again = now(&queue).unwrap();
    tokio::task::yield_now().await;
    assert!(!drained.is_finished());
    drop(again);
    drained.await.unwrap();
}

#[tokio::test]
async fn drain_with_busy_workers_empties_the_queue() {
    let queue = WorkQueue::new();
    for key in 0..100 {
        queue.add(key);
    }
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut seen = 0;
            while let Some(_item) = queue.get().await {
                tokio::task::yield_now().await;
                seen += 1;
            }
            seen
        }
    });
    tokio::task::yield_now().await;
    queue.shut_down_with_drain().await;
    assert!(queue.is_empty());
    assert_eq!(worker.await.unwrap(), 100);
}

#[tokio::test]
async fn a_plain_shutdown_ends_a_drain() {
    let queue = WorkQueue::new();
    queue.add("stuck");
    let _stuck = now(&queue).unwrap();
    let mut drained = Box::pin(queue.shut_down_with_drain());
    assert!(drained.as_mut().now_or_never().is_none());
    queue.shut_down();
    drained.await;
}

#[tokio::test]
async fn dropping_a_drain_does_not_undo_the_shutdown() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = now(&queue).unwrap();
    assert!(queue.shut_down_with_drain().now_or_never().is_none());
    queue.add("b");
    drop(item);
    assert!(queue.get().await.is_none());
}

#[tokio::test]
async fn a_priority_queue_drains_like_the_others() {
    let queue = PriorityQueue::new();
    queue.add("a");
    queue.shut_down();
    queue.add("b");
    assert_eq!(drain(&queue), ["a"]);
    assert!(queue.get().await.is_none());
}
