//! Least-recently-used caches with a fixed hasher, so that equal runs behave equally.

use std::num::NonZeroUsize;

use foldhash::fast::FixedState;
use lru::LruCache;

/// Cache by text.
pub(super) type Lru<V> = LruCache<String, V, FixedState>;

/// Creates a cache of up to `size` entries, at least one. It allocates as they come.
pub(super) fn with_size<V>(size: usize) -> Lru<V> {
    let mut cache = LruCache::unbounded_with_hasher(FixedState::with_seed(0));
    cache.resize(NonZeroUsize::new(size).unwrap_or(NonZeroUsize::MIN));
    cache
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let mut map = with_size(2);
        *map.get_or_insert_mut_ref("a", || 0) += 1;
        *map.get_or_insert_mut_ref("b", || 0) += 1;
        *map.get_or_insert_mut_ref("a", || 0) += 1;
        *map.get_or_insert_mut_ref("c", || 0) += 1;
        assert_eq!(*map.get_or_insert_mut_ref("a", || 10), 2, "used after b");
        assert_eq!(*map.get_or_insert_mut_ref("b", || 10), 10, "made room for c");
        assert_eq!(map.len(), 2);
    }
}
