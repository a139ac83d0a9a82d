//! The decoded form of the objects that were read last.

use std::sync::Arc;

use parking_lot::Mutex;

/// A bounded set of decoded objects, by the number of the cache entry they belong to.
///
/// Direct-mapped: an entry has one place. A free place takes whoever is read; one that is taken only an entry that is read for
/// the second time. Reads in a loop over a few objects all hit; a sweep over a whole cache, or a handler that looks into every
/// event, displaces nothing, and what they decode is freed while it is still in the processor's cache and by the thread that
/// made it. Freed later, an object costs noticeably more (docs/performance.md).
pub(crate) struct HotSet<K> {
    places: Box<[Mutex<Place<K>>]>,
}

struct Place<K> {
    held: Option<(u64, Arc<K>)>,
    /// Who was read last and not kept.
    seen: Option<u64>,
}

impl<K> HotSet<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { places: (0..capacity).map(|_| Mutex::new(Place { held: None, seen: None })).collect() }
    }

    pub(crate) fn get(&self, entry: u64) -> Option<Arc<K>> {
        match &self.place(entry)?.lock().held {
            Some((held, object)) if *held == entry => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// An entry was read and decoded.
    pub(crate) fn read(&self, entry: u64, object: &Arc<K>) {
        let Some(place) = self.place(entry) else { return };
        let mut place = place.lock();
        if place.held.is_some() && place.seen != Some(entry) {
            place.seen = Some(entry);
            return;
        }
        let displaced = place.held.replace((entry, Arc::clone(object)));
        // Dropping a large object is not something to do under the lock.
        drop(place);
        drop(displaced);
    }

    /// Forgets an entry that has left the cache.
    pub(crate) fn forget(&self, entry: u64) {
        // Dropped after the lock, as above.
        let left = self.place(entry).and_then(|place| place.lock().held.take_if(|(held, _)| *held == entry));
        drop(left);
    }

    fn place(&self, entry: u64) -> Option<&Mutex<Place<K>>> {
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
            for _ in 0..2 {
                hot.read(i, object);
            }
            assert_eq!(hot.get(i).as_deref(), Some(&**object));
        }
        assert_eq!(objects.iter().filter(|object| Arc::strong_count(object) > 1).count(), 4);
        assert!(hot.get(5).is_none());
    }

    #[test]
    fn what_is_read_once_displaces_nothing() {
        let hot = HotSet::new(4);
        for entry in 0..100 {
            hot.read(entry, &Arc::new(entry));
        }
        for entry in 0..4 {
            assert!(hot.get(entry).is_some(), "a free place takes whoever comes first");
        }
        assert!((4..100).all(|entry| hot.get(entry).is_none()));
        hot.read(96, &Arc::new(96));
        assert!(
            hot.get(96).is_some() && hot.get(0).is_none(),
            "it was the last of its place, and came again"
        );
        hot.read(5, &Arc::new(5));
        assert!(hot.get(5).is_none(), "others were read since");
    }

    #[test]
    fn forgetting_leaves_another_entry_in_the_same_place_alone() {
        let hot = HotSet::new(2);
        hot.read(2, &Arc::new("two"));
        hot.forget(4);
        assert!(hot.get(2).is_some());
        hot.forget(2);
        assert!(hot.get(2).is_none());
    }

    #[test]
    fn a_capacity_of_nothing_holds_nothing() {
        let hot = HotSet::new(0);
        hot.read(1, &Arc::new(()));
        assert!(hot.get(1).is_none());
    }
}
