//! Two futures on one task, of which one makes work for the other.
//!
//! A reflector fills a queue and a consumer empties it, on the same task. Polled as `select!` polls, the reflector's word
//! that there is something wakes the task that is running at that moment: it goes through the runtime's queue once more, for
//! nothing, and the runtime wakes an idle thread to look for it there, which takes longer than a dozen objects. Here each of
//! the two has a waker of its own. What one does for the other while both are being polled is seen in the same turn.
//!
//! When a future gives way (see `turns`), the other one gets its turn first, while what was made for it is still in the
//! processor's cache; after [`ROUNDS`] of that, everybody else does.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;

/// How often the two may give way to each other before they give way to others.
const ROUNDS: usize = 2;

/// Polls two futures until one of them is ready; the first comes first.
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
        // Who wakes one of them from here on wakes the task too; who has done so before is seen below.
        task.is_polled.store(false, Ordering::SeqCst);
        if one.is_woken() || other.is_woken() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

/// The task that both are on.
#[derive(Default)]
struct Task {
    waker: AtomicWaker,
    is_polled: AtomicBool,
}

/// What wakes one of the two.
struct Nudge {
    is_woken: AtomicBool,
    task: Arc<Task>,
}

impl Wake for Nudge {
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

/// One of the two, as the other sees it.
struct Side {
    nudge: Arc<Nudge>,
    waker: Waker,
}

impl Side {
    /// It has to be polled once before it can be woken.
    fn of(task: &Arc<Task>) -> Self {
        let nudge = Arc::new(Nudge { is_woken: AtomicBool::new(true), task: Arc::clone(task) });
        Self { waker: Arc::clone(&nudge).into(), nudge }
    }

    fn is_woken(&self) -> bool {
        self.nudge.is_woken.load(Ordering::SeqCst)
    }

    fn poll(&mut self, future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
        if !self.nudge.is_woken.swap(false, Ordering::SeqCst) {
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

    /// Gives way once, as `turns` does.
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
    fn what_one_does_for_the_other_wakes_nobody() {
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
    fn who_gives_way_does_so_to_the_other_first_and_then_to_everybody() {
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
    fn who_was_not_woken_is_not_asked() {
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
    fn one_that_is_ready_ends_both() {
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
