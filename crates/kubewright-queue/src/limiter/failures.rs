//! How often each key has failed.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::WorkKey;

pub(super) struct Failures<T> {
    by_key: Mutex<HashMap<T, u32, FixedState>>,
}

impl<T: WorkKey> Failures<T> {
    pub(super) fn new() -> Self {
        Self { by_key: Mutex::new(HashMap::with_hasher(FixedState::with_seed(0))) }
    }

    /// Counts one more failure and answers how many there were before.
    pub(super) fn count(&self, key: &T) -> u32 {
        let mut by_key = self.by_key.lock();
        // A failing key usually has failed before: look first, clone it only when it is new.
        if let Some(failures) = by_key.get_mut(key) {
            let before = *failures;
            *failures = before.saturating_add(1);
            return before;
        }
        by_key.insert(key.clone(), 1);
        0
    }

    pub(super) fn get(&self, key: &T) -> u32 {
        let by_key = self.by_key.lock();
        if by_key.is_empty() { 0 } else { by_key.get(key).copied().unwrap_or(0) }
    }

    /// Most keys never fail, so most of the time there is nothing to hash.
    pub(super) fn forget(&self, key: &T) {
        let mut by_key = self.by_key.lock();
        if !by_key.is_empty() {
            by_key.remove(key);
        }
    }
}
