//! Decoded form of the objects that were read last.

use std::{num::NonZeroUsize, sync::Arc};

use foldhash::fast::FixedState;
use lru::LruCache;
use parking_lot::Mutex;

/// Bounded set of decoded objects, by the number of the cache entry they belong to.
///
/// Two least-recently-used caches: of objects, and of the numbers of entries that were read once and not stored. When the set
/// is full, an object is stored with the second of two reads that are close to each other. So reads in a loop over a few
/// objects all hit, while a sweep over a whole cache, or a handler that reads every object, displaces nothing; the objects that
/// these decode are freed by the thread that made them while they are in the processor's cache, which is noticeably cheaper.
pub(crate) struct HotSet<K: ?Sized> {
    state: Option<Mutex<State<K>>>,
}

struct State<K: ?Sized> {
    objects: LruCache<u64, Arc<K>, FixedState>,
    read_once: LruCache<u64, (), FixedState>,
}

impl<K: ?Sized> HotSet<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = NonZeroUsize::new(capacity).map(|capacity| {
            let hasher = || FixedState::with_seed(0);
            Mutex::new(State {
                objects: LruCache::with_hasher(capacity, hasher()),
                read_once: LruCache::with_hasher(capacity, hasher()),
            })
        });
        Self { state }
    }

    pub(crate) fn get(&self, entry: u64) -> Option<Arc<K>> {
        self.state.as_ref()?.lock().objects.get(&entry).map(Arc::clone)
    }

    /// Notes that an entry was read and decoded.
    pub(crate) fn read(&self, entry: u64, object: &Arc<K>) {
        let Some(state) = &self.state else { return };
        let mut state = state.lock();
        let is_full = state.objects.len() == state.objects.cap().get();
        if is_full && state.read_once.pop(&entry).is_none() {
            state.read_once.put(entry, ());
            return;
        }
        let displaced = state.objects.push(entry, Arc::clone(object));
        // A large object is dropped after the lock is released.
        drop(state);
        drop(displaced);
    }

    /// Removes an entry that has left the cache.
    pub(crate) fn forget(&self, entry: u64) {
        // Dropped after the lock, as above.
        let object = self.state.as_ref().and_then(|state| state.lock().objects.pop(&entry));
        drop(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_holds_more_than_its_capacity() {
        let hot = HotSet::new(4);
        let objects: Vec<Arc<u64>> = (0..100).map(Arc::new).collect();
        for (i, object) in (0..).zip(&objects) {
            for _ in 0..2 {
                hot.read(i, object);
            }
            assert_eq!(hot.get(i).as_deref(), Some(&**object));
        }
        assert_eq!(objects.iter().filter(|object| Arc::strong_count(object) > 1).count(), 4);
        assert!(hot.get(5).is_none());
    }

    #[test]
    fn an_object_read_once_displaces_nothing() {
        let hot = HotSet::new(4);
        for entry in 0..100 {
            hot.read(entry, &Arc::new(entry));
        }
        for entry in 0..4 {
            assert!(hot.get(entry).is_some(), "the first objects fill the set");
        }
        assert!((4..100).all(|entry| hot.get(entry).is_none()));
        hot.read(96, &Arc::new(96));
        assert!(hot.get(96).is_some() && hot.get(0).is_none(), "its second read displaces the least recent");
        hot.read(5, &Arc::new(5));
        assert!(hot.get(5).is_none(), "others were read since its first read");
    }

    #[test]
    fn forgetting_an_entry_leaves_the_others() {
        let hot = HotSet::new(2);
        hot.read(2, &Arc::new("two"));
        hot.forget(4);
        assert!(hot.get(2).is_some());
        hot.forget(2);
        assert!(hot.get(2).is_none());
    }

    #[test]
    fn a_capacity_of_zero_holds_nothing() {
        let hot = HotSet::new(0);
        hot.read(1, &Arc::new(()));
        assert!(hot.get(1).is_none());
    }
}
