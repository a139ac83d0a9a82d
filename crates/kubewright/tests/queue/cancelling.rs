//! Cancelled workers: a dropped `get`, an aborted task, a panic.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::{FutureExt, task::ArcWake};
use kubewright::queue::WorkQueue;
use tokio::time::advance;

use super::{drain, now};

/// Counts wake-ups.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl ArcWake for Woken {
    fn wake_by_ref(this: &std::sync::Arc<Self>) {
        this.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn polled(future: std::pin::Pin<&mut impl Future>, waker: &Waker) -> bool {
    matches!(future.poll(&mut Context::from_waker(waker)), Poll::Ready(_))
}

#[tokio::test]
async fn a_wake_up_whose_get_is_dropped_goes_to_the_next_worker() {
    let queue = WorkQueue::new();
    let (first_woken, second_woken) =
        (std::sync::Arc::<Woken>::default(), std::sync::Arc::<Woken>::default());
    let mut first = Box::pin(queue.get());
    let mut second = pin!(queue.get());
    assert!(!polled(first.as_mut(), &futures::task::waker(first_woken.clone())));
    assert!(!polled(second.as_mut(), &futures::task::waker(second_woken.clone())));

    queue.add("a");
    assert_eq!((first_woken.times(), second_woken.times()), (1, 0), "one key wakes one worker");
    drop(first);
    assert_eq!(second_woken.times(), 1);
    assert_eq!(second.await.unwrap().key(), &"a");
}

#[tokio::test]
async fn a_worker_that_is_not_needed_is_not_woken() {
    let queue = WorkQueue::new();
    let woken = std::sync::Arc::<Woken>::default();
    let waker = futures::task::waker(woken.clone());
    let mut gets: Vec<_> = (0..4).map(|_| Box::pin(queue.get())).collect();
    for get in &mut gets {
        assert!(!polled(get.as_mut(), &waker));
    }
    queue.add("a");
    queue.add("a");
    assert_eq!(woken.times(), 1);
    queue.add("b");
    assert_eq!(woken.times(), 2);
}

#[tokio::test]
async fn a_key_is_not_lost_when_another_worker_takes_it_before_the_woken_one() {
    let queue = WorkQueue::new();
    let woken = std::sync::Arc::<Woken>::default();
    let waker = futures::task::waker(woken.clone());
    let mut waiting = pin!(queue.get());
    assert!(!polled(waiting.as_mut(), &waker));
    queue.add("a");
    assert_eq!(drain(&queue), ["a"], "taken by a worker that did not wait");
    assert!(!polled(waiting.as_mut(), &waker), "nothing left, so it waits again");
    queue.add("b");
    assert_eq!(woken.times(), 2);
    assert_eq!(waiting.await.unwrap().key(), &"b");
}

#[tokio::test]
async fn a_get_in_a_select_loses_nothing() {
    let queue = WorkQueue::new();
    let (send, mut receive) = tokio::sync::mpsc::channel(1);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut seen = vec![];
            loop {
                tokio::select! {
                    biased;
                    tick = receive.recv() => if tick.is_none() { break seen },
                    Some(item) = queue.get() => seen.push(*item.key()),
                }
            }
        }
    });
    for key in 0..200 {
        queue.add(key);
        send.send(()).await.unwrap();
    }
    while !queue.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(send);
    assert_eq!(worker.await.unwrap(), (0..200).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn another_waiter_takes_over_the_timer_when_its_owner_is_dropped() {
    let queue = WorkQueue::new();
    queue.add_after("a", Duration::from_secs(1));
    let mut keeper = Box::pin(queue.get());
    assert!(keeper.as_mut().now_or_never().is_none());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.get().await.unwrap().key() }
    });
    advance(Duration::from_millis(1)).await;
    drop(keeper);
    assert_eq!(other.await.unwrap(), "a");
}

#[tokio::test]
async fn a_panic_in_a_worker_finishes_its_item() {
    let queue = WorkQueue::new();
    queue.add("a");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let _item = queue.get().await.unwrap();
            queue.add("a");
            panic!("the work went wrong");
        }
    });
    assert!(worker.await.unwrap_err().is_panic());
    assert_eq!(drain(&queue), ["a"], "the key added meanwhile is handed out, and the queue works on");
}

#[tokio::test]
async fn an_aborted_worker_finishes_its_item() {
    let queue = WorkQueue::new();
    queue.add("a");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let _item = queue.get().await.unwrap();
            std::future::pending::<()>().await;
        }
    });
    tokio::task::yield_now().await;
    queue.add("a");
    assert!(now(&queue).is_none());
    worker.abort();
    assert!(worker.await.unwrap_err().is_cancelled());
    assert_eq!(drain(&queue), ["a"]);
}
