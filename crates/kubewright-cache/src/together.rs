//! Join of a producer and a consumer on one task, with a waker each.
//!
//! A reflector fills a queue and a consumer empties it, on the same task. With `select!`, a notification between the two wakes
//! the task that is running: it is scheduled once more, and the runtime wakes an idle thread for it. Here each future has a
//! waker of its own, and a future that is woken while both are being polled is polled in the same pass.
//!
//! When a future yields (see `turns`), the other is polled first, while its input is in the processor's cache; after
//! [`ROUNDS`] passes the task yields.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;

/// Number of passes over both futures before the task yields.
const ROUNDS: usize = 2;

/// Polls two futures, the first one first, until one of them is ready.
pub(super) async fn together(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let task = Arc::new(Task::default());
    let (mut one, mut other) = (Side::of(&task), Side::of(&task));
    std::future::poll_fn(|cx| {
        task.waker.register(cx.waker());
        task.is_polled.store(true, Ordering::SeqCst);
        for _ in 0..ROUNDS {
            if one.poll(first.as_mut()).is_ready() || other.poll(second.as_mut()).is_ready() {
                return Poll::Ready(());
            }
            if !one.is_woken() && !other.is_woken() {
                break;
            }
        }
        // A wake-up from here on wakes the task; an earlier one is handled below.
        task.is_polled.store(false, Ordering::SeqCst);
        if one.is_woken() || other.is_woken() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

/// Task of both futures.
#[derive(Default)]
struct Task {
    waker: AtomicWaker,
    is_polled: AtomicBool,
}

/// Waker of one of the futures.
struct SideWaker {
    is_woken: AtomicBool,
    task: Arc<Task>,
}

impl Wake for SideWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.task.is_polled.load(Ordering::SeqCst) {
            self.task.waker.wake();
        }
    }
}

/// Wake-up state of one of the futures.
struct Side {
    woken_by: Arc<SideWaker>,
    waker: Waker,
}

impl Side {
    /// Creates the state of a future that has not been polled.
    fn of(task: &Arc<Task>) -> Self {
        let woken_by = Arc::new(SideWaker { is_woken: AtomicBool::new(true), task: Arc::clone(task) });
        Self { waker: Arc::clone(&woken_by).into(), woken_by }
    }

    fn is_woken(&self) -> bool {
        self.woken_by.is_woken.load(Ordering::SeqCst)
    }

    fn poll(&mut self, future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
        if !self.woken_by.is_woken.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        future.poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        sync::atomic::AtomicU32,
    };

    use tokio::sync::Notify;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(&self) -> u32 {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn poll(future: Pin<&mut impl Future<Output = ()>>, woken: &Arc<Woken>) -> Poll<()> {
        future.poll(&mut Context::from_waker(&Arc::clone(woken).into()))
    }

    /// Yields once, as `turns` does.
    async fn give_way() {
        let mut gave_way = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut gave_way, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn a_notification_between_the_two_does_not_wake_the_task() {
        let (made, from_outside, taken) = (Notify::new(), Notify::new(), Cell::new(0));
        let first = async {
            loop {
                from_outside.notified().await;
                made.notify_one();
            }
        };
        let second = async {
            loop {
                made.notified().await;
                taken.set(taken.get() + 1);
            }
        };
        let (mut both, woken) = (Box::pin(together(first, second)), Arc::new(Woken::default()));
        assert!(poll(both.as_mut(), &woken).is_pending());
        assert_eq!((woken.times(), taken.get()), (0, 0));
        from_outside.notify_one();
        assert_eq!(woken.times(), 1, "somebody else wakes the task");
        assert!(poll(both.as_mut(), &woken).is_pending());
        assert_eq!((woken.times(), taken.get()), (1, 1), "taken in the turn in which it was made");
    }

    #[test]
    fn a_yielding_future_lets_the_other_run_before_the_task_yields() {
        let log = RefCell::new(String::new());
        let first = async {
            loop {
                log.borrow_mut().push('a');
                give_way().await;
            }
        };
        let second = async {
            loop {
                log.borrow_mut().push('b');
                give_way().await;
            }
        };
        let (mut both, woken) = (Box::pin(together(first, second)), Arc::new(Woken::default()));
        for turn in 1..4 {
            assert!(poll(both.as_mut(), &woken).is_pending());
            assert_eq!(*log.borrow(), "ab".repeat(turn as usize * ROUNDS));
            assert_eq!(woken.times(), turn, "the task is in line again at once");
        }
    }

    #[test]
    fn a_future_that_was_not_woken_is_not_polled() {
        let (asked, from_outside) = (Cell::new(0), Notify::new());
        let first = async {
            loop {
                from_outside.notified().await;
            }
        };
        let second = std::future::poll_fn(|_| {
            asked.set(asked.get() + 1);
            Poll::Pending
        });
        let (mut both, woken) = (Box::pin(together(first, second)), Arc::new(Woken::default()));
        for _ in 0..3 {
            assert!(poll(both.as_mut(), &woken).is_pending());
            from_outside.notify_one();
        }
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn a_ready_future_ends_both() {
        let woken = Arc::new(Woken::default());
        for first_ends in [true, false] {
            let end = |ends: bool| async move {
                if !ends {
                    std::future::pending::<()>().await;
                }
            };
            let mut both = Box::pin(together(end(first_ends), end(!first_ends)));
            assert!(poll(both.as_mut(), &woken).is_ready());
        }
    }
}
