//! Least-recently-used map.

use std::collections::BTreeMap;

use hashbrown::HashMap;

/// Map with a limited number of entries that evicts the least recently used one.
pub(super) struct Lru<V> {
    size: usize,
    entries: HashMap<String, (u64, V), foldhash::fast::FixedState>,
    /// Keys by when they were last used.
    order: BTreeMap<u64, String>,
    uses: u64,
}

impl<V> Lru<V> {
    pub(super) fn new(size: usize) -> Self {
        let entries = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        Self { size: size.max(1), entries, order: BTreeMap::new(), uses: 0 }
    }

    /// Returns the entry of a key, inserting it if there is none.
    pub(super) fn entry(&mut self, key: &str, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if let Some((used, _)) = self.entries.get_mut(key) {
            self.order.remove(used);
            *used = self.uses;
        } else {
            if self.entries.len() >= self.size
                && let Some((_, oldest)) = self.order.pop_first()
            {
                self.entries.remove(&oldest);
            }
            self.entries.insert(key.to_owned(), (self.uses, make()));
        }
        self.order.insert(self.uses, key.to_owned());
        let (_, value) = self.entries.get_mut(key).expect("it was found or inserted above");
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut map = Lru::new(2);
        *map.entry("a", || 0) += 1;
        *map.entry("b", || 0) += 1;
        *map.entry("a", || 0) += 1;
        *map.entry("c", || 0) += 1;
        assert_eq!(*map.entry("a", || 10), 2, "used after b");
        assert_eq!(*map.entry("b", || 10), 10, "made room for c");
        assert_eq!((map.entries.len(), map.order.len()), (2, 2));
    }
}
