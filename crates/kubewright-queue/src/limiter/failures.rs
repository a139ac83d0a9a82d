//! Failure counts of keys.

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

    /// Counts a failure and returns the number of failures before it.
    pub(super) fn count(&self, key: &T) -> u32 {
        let mut by_key = self.by_key.lock();
        // A failing key usually has failed before; only a new one is cloned.
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

    /// Removes the count of a key. Most keys never fail, so an empty map is not searched.
    pub(super) fn forget(&self, key: &T) {
        let mut by_key = self.by_key.lock();
        if !by_key.is_empty() {
            by_key.remove(key);
        }
    }
}
