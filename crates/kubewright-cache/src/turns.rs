//! Taking turns without being held up by those who do not.
//!
//! A task that gives way by tokio's own means (`yield_now`, or a channel when the task's budget is used up) is put aside by its
//! thread until that thread has nothing else to do, and nobody can steal it from there. If what the thread turns to next is a
//! handler that blocks it for good, the task never comes back: one bad handler would hold up the informer and all others.
//! So the tasks of an informer have no budget, and give way by waking themselves: that puts them in line, where any thread
//! finds them.

use std::{future::poll_fn, task::Poll};

/// After so many turns of a loop others are let in, as often as tokio's budget would.
const TURNS: usize = 128;
/// …or so many bytes of a list, which take about half a millisecond, however large an object is. Of a reflector the first to be
/// let in is the consumer of its queue (see `together`): everybody else is after twice as much…
const LIST: usize = 256 * 1024;
/// …or so many events of a watch, likewise.
const EVENTS: usize = 64;

/// Counts the turns of a loop.
#[derive(Default)]
pub(super) struct Turns(usize);

impl Turns {
    /// The end of a turn.
    pub(super) async fn end(&mut self) {
        self.end_of(1).await;
    }

    /// The end of a turn that took in so many bytes of a list.
    pub(super) async fn end_of_bytes(&mut self, bytes: usize) {
        self.end_of(1 + bytes / (LIST / TURNS)).await;
    }

    /// The end of a turn that took in so many events.
    pub(super) async fn end_of_events(&mut self, events: usize) {
        self.end_of(events.saturating_mul(TURNS / EVENTS)).await;
    }

    /// The end of so many turns, taken together.
    async fn end_of(&mut self, turns: usize) {
        self.0 = self.0.saturating_add(turns);
        if self.0 >= TURNS {
            self.0 = 0;
            let mut gave_way = false;
            poll_fn(|cx| {
                if gave_way {
                    return Poll::Ready(());
                }
                gave_way = true;
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
    fn others_get_a_turn_now_and_then_and_the_task_is_in_line_at_once() {
        let mut turns = Turns::default();
        for _ in 0..3 {
            for _ in 1..TURNS {
                assert!(turns.end().now_or_never().is_some());
            }
            let woken = Arc::new(Woken::default());
            let waker = Arc::clone(&woken).into();
            let mut cx = Context::from_waker(&waker);
            let mut end = std::pin::pin!(turns.end());
            assert!(end.as_mut().poll(&mut cx).is_pending());
            assert_eq!(woken.0.load(Ordering::Relaxed), 1);
            assert!(end.as_mut().poll(&mut cx).is_ready());
        }
    }

    /// How many of these turns there are until others get theirs.
    fn until_others(turn: &impl AsyncFn(&mut Turns)) -> usize {
        let mut turns = Turns::default();
        (1..=TURNS).find(|_| turn(&mut turns).now_or_never().is_none()).unwrap()
    }

    #[test]
    fn a_list_gives_way_by_its_size_and_not_by_the_size_of_its_pieces() {
        for piece in [4 * 1024, 16 * 1024, 32 * 1024] {
            let turns = until_others(&async |turns| turns.end_of_bytes(piece).await);
            let bytes = turns * piece;
            assert!((LIST / 2..=LIST).contains(&bytes), "{bytes} bytes in pieces of {piece}");
        }
        assert_eq!(until_others(&async |turns| turns.end_of_bytes(usize::MAX / 2).await), 1);
        assert_eq!(until_others(&async |turns| turns.end_of_bytes(0).await), TURNS);
    }

    #[test]
    fn a_watch_gives_way_by_events_however_many_come_together() {
        for events in [1, 8, EVENTS] {
            assert_eq!(until_others(&async |turns| turns.end_of_events(events).await) * events, EVENTS);
        }
    }
}
