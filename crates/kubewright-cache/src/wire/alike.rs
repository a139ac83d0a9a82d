//! Choice of the base that the items of a list are compared with.

use std::sync::Arc;

use super::pattern::ItemBase;

/// Number of successive items that do not match the base before one of them replaces it. It doubles each time, so that a cache
/// of objects that all differ has few bases and looks for others ever more rarely.
const MISSES: u32 = 8;

/// Base of the items of a cache, with the buffers of a comparison.
pub(crate) struct BaseTracker {
    pub(crate) base: Option<Arc<ItemBase>>,
    /// Number of successive items that did not match.
    misses: u32,
    /// Number of misses that replaces the base.
    limit: u32,
    /// Buffer for deltas.
    pub(crate) delta: Vec<u8>,
    /// Buffer for keys.
    pub(crate) key: Vec<u8>,
}

impl Default for BaseTracker {
    fn default() -> Self {
        Self { base: None, misses: 0, limit: MISSES, delta: Vec::new(), key: Vec::new() }
    }
}

impl BaseTracker {
    /// Notes an item that matched.
    pub(crate) fn hit(&mut self) {
        self.misses = 0;
    }

    /// Notes an item that did not match. Returns whether it should become the base.
    pub(crate) fn miss(&mut self) -> bool {
        self.misses += 1;
        self.base.is_none() || self.misses >= self.limit
    }

    /// Replaces the base.
    pub(crate) fn replace(&mut self, base: ItemBase) {
        if self.base.replace(Arc::new(base)).is_some() {
            self.limit = self.limit.saturating_mul(2);
        }
        self.misses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_item_becomes_the_base_and_another_one_after_many_misses() {
        let mut tracker = BaseTracker::default();
        assert!(tracker.miss());
        tracker.base = Some(Arc::new(crate::wire::pattern::tests::any()));
        tracker.misses = 0;
        assert_eq!((1..100).find(|_| tracker.miss()), Some(MISSES));
        tracker.replace(crate::wire::pattern::tests::any());
        assert_eq!((1..100).find(|_| tracker.miss()), Some(2 * MISSES));
        tracker.hit();
        assert_eq!((1..100).find(|_| tracker.miss()), Some(2 * MISSES));
    }
}
