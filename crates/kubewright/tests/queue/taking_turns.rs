//! Deduplication: a key is queued once, and processed by one worker at a time.

use std::sync::Arc;

use kubewright::{ObjectKey, queue::WorkQueue};

use super::{drain, now};

#[tokio::test]
async fn keys_are_handed_out_in_insertion_order() {
    let queue = WorkQueue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&queue), ["a", "b", "c"]);
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_queued_key_is_not_queued_again() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("b");
    queue.add("a");
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[tokio::test]
async fn a_key_that_is_added_while_in_flight_is_handed_out_again_when_it_is_finished() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.len(), 0, "not while it is in flight");
    assert!(now(&queue).is_none());

    drop(item);
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), ["a"], "once, however often it was added");
}

#[tokio::test]
async fn a_requeued_key_goes_to_the_end() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = now(&queue).unwrap();
    queue.add("a");
    queue.add("b");
    drop(item);
    queue.add("c");
    assert_eq!(drain(&queue), ["b", "a", "c"]);
}

#[tokio::test]
async fn several_workers_get_different_keys() {
    let queue = WorkQueue::new();
    for key in 0..3 {
        queue.add(key);
        queue.add(key);
    }
    let items: Vec<_> = std::iter::from_fn(|| now(&queue)).collect();
    assert_eq!(items.iter().map(|item| *item.key()).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_waiting_worker_is_woken_by_a_key() {
    let queue = WorkQueue::<ObjectKey>::new();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| item.key().clone()) }
    });
    tokio::task::yield_now().await;
    queue.add(ObjectKey::cluster("node-1"));
    assert_eq!(worker.await.unwrap(), Some(ObjectKey::cluster("node-1")));
}

#[tokio::test]
async fn an_item_can_be_finished_in_another_task() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add("a");
    tokio::spawn(async move { drop(item) }).await.unwrap();
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test]
async fn clones_are_the_same_queue() {
    let queue = WorkQueue::new();
    queue.clone().add("a");
    assert_eq!(queue.len(), 1);
}

#[tokio::test]
async fn the_queue_keeps_no_reference_to_a_finished_key() {
    let queue = WorkQueue::new();
    let key = Arc::new("a");
    for _ in 0..3 {
        queue.add(Arc::clone(&key));
        queue.add(Arc::clone(&key));
        drop(queue.get().await);
        assert_eq!(Arc::strong_count(&key), 1);
    }
}

#[tokio::test]
async fn a_worker_that_always_finds_a_key_lets_other_tasks_run() {
    let queue = WorkQueue::new();
    queue.add(0_u32);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = queue.get().await {
                queue.add(*item.key());
            }
        }
    });
    // On this single thread the test is polled again only because the worker yields.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    worker.abort();
    assert!(worker.await.unwrap_err().is_cancelled());
}
