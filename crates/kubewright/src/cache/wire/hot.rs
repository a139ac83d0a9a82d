//! The decoded form of the objects that were read last.

use std::sync::Arc;

use parking_lot::Mutex;

/// A bounded set of decoded objects, by the number of the cache entry they belong to.
///
/// Direct-mapped: an entry has one place, and a newer entry there replaces an older one. Reads in a loop over a
/// few objects all hit; a sweep over a whole cache cannot push more than its own share of memory in.
pub(crate) struct HotSet<K> {
    places: Box<[Place<K>]>,
}

/// An entry and its decoded object.
type Place<K> = Mutex<Option<(u64, Arc<K>)>>;

impl<K> HotSet<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { places: (0..capacity).map(|_| Mutex::default()).collect() }
    }

    pub(crate) fn get(&self, entry: u64) -> Option<Arc<K>> {
        match &*self.place(entry)?.lock() {
            Some((held, object)) if *held == entry => Some(Arc::clone(object)),
            _ => None,
        }
    }

    pub(crate) fn put(&self, entry: u64, object: &Arc<K>) {
        if let Some(place) = self.place(entry) {
            let replaced = place.lock().replace((entry, Arc::clone(object)));
            // Dropping a large object is not something to do under the lock.
            drop(replaced);
        }
    }

    /// Forgets an entry that has left the cache.
    pub(crate) fn forget(&self, entry: u64) {
        if let Some(place) = self.place(entry) {
            let held = {
                let mut place = place.lock();
                if place.as_ref().is_some_and(|(held, _)| *held == entry) { place.take() } else { None }
            };
            drop(held);
        }
    }

    fn place(&self, entry: u64) -> Option<&Place<K>> {
        let count = u64::try_from(self.places.len()).ok().filter(|count| *count > 0)?;
        self.places.get(usize::try_from(entry % count).ok()?)
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
            hot.put(i, object);
            assert_eq!(hot.get(i).as_deref(), Some(&**object));
        }
        assert_eq!(objects.iter().filter(|object| Arc::strong_count(object) > 1).count(), 4);
        assert!(hot.get(5).is_none());
    }

    #[test]
    fn forgetting_leaves_another_entry_in_the_same_place_alone() {
        let hot = HotSet::new(2);
        hot.put(2, &Arc::new("two"));
        hot.forget(4);
        assert!(hot.get(2).is_some());
        hot.forget(2);
        assert!(hot.get(2).is_none());
    }

    #[test]
    fn a_capacity_of_nothing_holds_nothing() {
        let hot = HotSet::new(0);
        hot.put(1, &Arc::new(()));
        assert!(hot.get(1).is_none());
    }
}
