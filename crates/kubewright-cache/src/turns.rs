//! Cooperative yielding of informer tasks.
//!
//! tokio's `yield_now`, and its channels when the budget of a task is used up, defer the task to its own worker thread, from
//! which other threads cannot steal it. If that thread then runs a handler that blocks, the task never runs again: one blocking
//! handler would stop the informer and all other handlers. So informer tasks run without tokio's budget, and yield by waking
//! themselves, which puts them into the queue that all threads steal from. This is for robustness, not for speed.

use std::{future::poll_fn, task::Poll};

/// Number of iterations after which a loop yields, as with tokio's budget…
const BUDGET: usize = 128;
/// …or bytes of a list, which take about half a millisecond, whatever the size of an object…
const LIST: usize = 256 * 1024;
/// …or events of a watch.
const EVENTS: usize = 64;

/// Budget of a loop, counted in iterations.
#[derive(Default)]
pub(super) struct Budget(usize);

impl Budget {
    /// Spends an iteration, and yields if the budget is used up.
    pub(super) async fn spend(&mut self) {
        self.spend_many(1).await;
    }

    /// Spends an iteration that read this many bytes of a list.
    pub(super) async fn spend_bytes(&mut self, bytes: usize) {
        self.spend_many(1 + bytes / (LIST / BUDGET)).await;
    }

    /// Spends an iteration that read this many events.
    pub(super) async fn spend_events(&mut self, events: usize) {
        self.spend_many(events.saturating_mul(BUDGET / EVENTS)).await;
    }

    async fn spend_many(&mut self, iterations: usize) {
        self.0 = self.0.saturating_add(iterations);
        if self.0 >= BUDGET {
            self.0 = 0;
            let mut yielded = false;
            poll_fn(|cx| {
                if yielded {
                    return Poll::Ready(());
                }
                yielded = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        task::{Context, Wake},
    };

    use futures::FutureExt as _;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_loop_yields_when_its_budget_is_used_up_and_is_runnable_at_once() {
        let mut budget = Budget::default();
        for _ in 0..3 {
            for _ in 1..BUDGET {
                assert!(budget.spend().now_or_never().is_some());
            }
            let woken = Arc::new(Woken::default());
            let waker = Arc::clone(&woken).into();
            let mut cx = Context::from_waker(&waker);
            let mut end = std::pin::pin!(budget.spend());
            assert!(end.as_mut().poll(&mut cx).is_pending());
            assert_eq!(woken.0.load(Ordering::Relaxed), 1);
            assert!(end.as_mut().poll(&mut cx).is_ready());
        }
    }

    /// Returns the number of iterations until the loop yields.
    fn until_yield(spend: &impl AsyncFn(&mut Budget)) -> usize {
        let mut budget = Budget::default();
        (1..=BUDGET).find(|_| spend(&mut budget).now_or_never().is_none()).unwrap()
    }

    #[test]
    fn a_list_yields_by_bytes_whatever_the_size_of_its_frames() {
        for piece in [4 * 1024, 16 * 1024, 32 * 1024] {
            let iterations = until_yield(&async |budget| budget.spend_bytes(piece).await);
            let bytes = iterations * piece;
            assert!((LIST / 2..=LIST).contains(&bytes), "{bytes} bytes in pieces of {piece}");
        }
        assert_eq!(until_yield(&async |budget| budget.spend_bytes(usize::MAX / 2).await), 1);
        assert_eq!(until_yield(&async |budget| budget.spend_bytes(0).await), BUDGET);
    }

    #[test]
    fn a_watch_yields_by_events_whatever_the_size_of_its_batches() {
        for events in [1, 8, EVENTS] {
            assert_eq!(until_yield(&async |budget| budget.spend_events(events).await) * events, EVENTS);
        }
    }
}
