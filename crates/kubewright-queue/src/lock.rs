//! The lock of a queue: whoever finds it taken looks away for a while.
//!
//! What a queue does under its lock takes less time than it takes a processor to fetch the lines of memory that another
//! one has just written. Threads that meet at it are therefore fastest if they take long turns: one goes on with all lines
//! where they are, while the other neither asks for the lock (asking alone takes its line away from the one that holds it)
//! nor sleeps (waking a thread costs as much as a hundred keys). So a thread that does not get the lock at once waits
//! without looking, some 2 µs at first and twice as long each time, and only then sleeps as `parking_lot` has it, which is fair
//! to whoever waited longest. docs/performance.md has what this gives.
//!
//! Nothing of it depends on a clock, and with one thread there is never anything to wait for.

use std::hint::spin_loop;

use parking_lot::{Mutex, MutexGuard};

/// How often a thread pauses before it looks for the first time. A pause is 10 to 50 ns on today's processors.
const FIRST: u32 = 128;

/// After the wait of this many pauses, some 60 µs after the first look, it sleeps.
const LAST: u32 = 2048;

pub(super) struct Lock<S> {
    state: Mutex<S>,
}

impl<S> Lock<S> {
    pub(super) fn new(state: S) -> Self {
        Self { state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.try_lock().unwrap_or_else(|| self.wait())
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, S> {
        let mut pauses = FIRST;
        while pauses <= LAST {
            (0..pauses).for_each(|_| spin_loop());
            if let Some(state) = self.state.try_lock() {
                return state;
            }
            pauses *= 2;
        }
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    #[test]
    fn one_thread_at_a_time_has_what_is_locked() {
        let lock = Lock::new(0_u32);
        let begin = Barrier::new(4);
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    begin.wait();
                    for _ in 0..10_000 {
                        let mut count = lock.lock();
                        // Read and written apart: two at once would lose some.
                        let read = std::hint::black_box(*count);
                        *count = read + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }

    #[test]
    fn whoever_waits_longer_than_it_looks_away_is_woken() {
        let lock = Lock::new(0_u32);
        thread::scope(|threads| {
            let mut held = lock.lock();
            let waiting = threads.spawn(|| {
                let mut count = lock.wait();
                *count += 1;
                *count
            });
            // As long as all of its looks together, twice over: by then it sleeps, or soon will.
            (0..FIRST * 64).for_each(|_| spin_loop());
            *held = 41;
            drop(held);
            assert_eq!(waiting.join().unwrap(), 42);
        });
    }
}
