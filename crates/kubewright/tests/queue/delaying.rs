//! Delayed keys. Time is paused: it advances explicitly, or when all tasks are idle.

use std::time::Duration;

use kubewright::queue::WorkQueue;
use tokio::time::{Instant, advance};

use super::{drain, now};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_ready_after_its_delay_and_only_once() {
    let queue = WorkQueue::new();
    queue.add_after("a", 50 * MS);
    assert_eq!(queue.len(), 0);
    advance(49 * MS).await;
    assert!(now(&queue).is_none());
    advance(MS).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), ["a"]);
    advance(Duration::from_mins(1)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_delay_a_key_is_added_at_once() {
    let queue = WorkQueue::new();
    queue.add_after("a", Duration::ZERO);
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_times_wins() {
    let queue = WorkQueue::new();
    queue.add_after("a", 50 * MS);
    queue.add_after("a", 70 * MS);
    advance(60 * MS).await;
    assert_eq!(drain(&queue), ["a"]);
    advance(20 * MS).await;
    assert!(queue.is_empty(), "the later time is gone");

    queue.add_after("a", 50 * MS);
    queue.add_after("a", 30 * MS);
    advance(40 * MS).await;
    assert_eq!(drain(&queue), ["a"]);
    advance(20 * MS).await;
    assert!(queue.is_empty(), "the later time is gone");
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_handed_out_in_the_order_of_their_times() {
    let queue = WorkQueue::new();
    queue.add_after("last", Duration::from_secs(1));
    queue.add_after("middle", 500 * MS);
    queue.add_after("first", 250 * MS);
    queue.add_after("first too", 250 * MS);
    advance(Duration::from_secs(2)).await;
    assert_eq!(drain(&queue), ["first", "first too", "middle", "last"]);
}

#[tokio::test(start_paused = true)]
async fn a_due_key_is_ahead_of_one_that_is_added_later() {
    let queue = WorkQueue::new();
    queue.add_after("due", 10 * MS);
    advance(20 * MS).await;
    queue.add("added");
    assert_eq!(drain(&queue), ["due", "added"], "although the queue was not polled when it became due");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_at_the_time_of_a_key() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    queue.add_after("a", 1234 * MS);
    assert_eq!(queue.get().await.unwrap().key(), &"a");
    assert_eq!(start.elapsed(), 1234 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_for_an_earlier_time() {
    let queue = WorkQueue::new();
    queue.add_after("late", Duration::from_hours(1));
    let start = Instant::now();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let first = *queue.get().await.unwrap().key();
            (first, start.elapsed(), *queue.get().await.unwrap().key(), start.elapsed())
        }
    });
    advance(MS).await;
    queue.add_after("early", Duration::from_secs(1));
    let expected = ("early", Duration::from_secs(1) + MS, "late", Duration::from_hours(1));
    assert_eq!(worker.await.unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn another_waiter_takes_over_the_timer_when_its_owner_gets_a_key() {
    let queue = WorkQueue::new();
    queue.add_after("delayed", Duration::from_secs(5));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        workers.spawn(async move { *queue.get().await.unwrap().key() });
    }
    // Let both wait, one of them with the timer.
    advance(MS).await;
    queue.add("at once");
    assert_eq!(workers.join_next().await.unwrap().unwrap(), "at once");
    assert_eq!(workers.join_next().await.unwrap().unwrap(), "delayed");
}

#[tokio::test(start_paused = true)]
async fn a_delay_continues_while_its_key_is_queued_or_in_flight() {
    let queue = WorkQueue::new();
    queue.add_after("a", 10 * MS);
    queue.add("a");
    let item = now(&queue).unwrap();
    advance(20 * MS).await;
    assert!(queue.is_empty(), "due, but in flight");
    drop(item);
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_due_while_it_is_queued_is_not_queued_again() {
    let queue = WorkQueue::new();
    queue.add_after("a", 10 * MS);
    queue.add("a");
    advance(20 * MS).await;
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_endless_delay_never_expires() {
    let queue = WorkQueue::new();
    queue.add_after("never", Duration::MAX);
    queue.add_after("soon", MS);
    assert_eq!(queue.get().await.unwrap().key(), &"soon");
    advance(Duration::from_hours(24 * 365)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_due_keys_reaches_all_workers() {
    let queue = WorkQueue::new();
    for key in 0..1000 {
        queue.add_after(key, MS);
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut seen = 0;
            while let Some(_item) = queue.get().await {
                seen += 1;
                tokio::task::yield_now().await;
            }
            seen
        });
    }
    advance(2 * MS).await;
    while !queue.is_empty() {
        tokio::task::yield_now().await;
    }
    queue.shut_down();
    let seen = workers.join_all().await;
    assert_eq!(seen.iter().sum::<u32>(), 1000);
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

#[test]
fn keys_can_be_added_outside_of_a_runtime() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add_after("b", Duration::from_nanos(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        assert_eq!(queue.get().await.unwrap().key(), &"a");
        assert_eq!(queue.get().await.unwrap().key(), &"b");
    });
}
