//! How a reflector fills the queue: change by change, and by whole lists.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::{Delta, DeltaFifo, Observed};
use crate::{
    KeyError, ObjectKey,
    cache::{
        reflector_store::{ReflectorStore, Replacement},
        thread_safe_store::StoreError,
    },
};

/// A list that takes the place of what was there, page by page: what it lacks is gone when it ends.
struct Replacing<T> {
    fifo: DeltaFifo<T>,
    seen: HashSet<ObjectKey, FixedState>,
}

impl<T: Clone + Send + Sync> Replacement<T> for Replacing<T> {
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let keyed: Vec<_> = objects
            .into_iter()
            .map(|object| Ok(((inner.key)(&object)?, object)))
            .collect::<Result<_, KeyError>>()?;
        let mut state = inner.state.lock();
        for (key, object) in keyed {
            self.seen.insert(key.clone());
            let first = !state.populated;
            let item = state.push(key, Delta::Replaced(object));
            if first && !item.initial {
                item.initial = true;
                state.initial += 1;
            }
        }
        drop(state);
        inner.changed.notify_one();
        Ok(())
    }

    fn remove(&mut self, object: T) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let key = (inner.key)(&object)?;
        self.seen.remove(&key);
        inner.state.lock().push(key, Delta::Deleted { object, final_state_unknown: false });
        inner.changed.notify_one();
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let mut state = inner.state.lock();
        let mut gone: Vec<(ObjectKey, T)> = Vec::new();
        for key in state.queue.iter().filter(|key| !self.seen.contains(*key)) {
            if let Some(newest) = state.items.get(key).and_then(|item| item.deltas.last()) {
                gone.push((key.clone(), newest.object().clone()));
            }
        }
        for (key, object) in &state.in_flight {
            if !self.seen.contains(key) && !state.items.contains_key(key) {
                gone.push((key.clone(), object.clone()));
            }
        }
        if let Some(known) = &inner.known {
            let held: HashSet<ObjectKey, FixedState> =
                state.in_flight.iter().map(|(key, _)| key.clone()).collect();
            for key in known.list_keys() {
                if !self.seen.contains(&key)
                    && !state.items.contains_key(&key)
                    && !held.contains(&key)
                    && let Some(object) = known.get_by_key(&key)
                {
                    gone.push((key, object));
                }
            }
        }
        for (key, object) in gone {
            let first = !state.populated;
            let item = state.push(key, Delta::Deleted { object, final_state_unknown: true });
            if first && !item.initial {
                item.initial = true;
                state.initial += 1;
            }
        }
        state.populated = true;
        drop(state);
        inner.changed.notify_one();
        Ok(())
    }
}

impl<T: Clone + Send + Sync + 'static> ReflectorStore<T> for DeltaFifo<T> {
    fn add(&self, object: T) -> Result<(), StoreError> {
        DeltaFifo::add(self, object)
    }

    fn update(&self, object: T) -> Result<(), StoreError> {
        DeltaFifo::update(self, object)
    }

    fn delete(&self, object: T) -> Result<(), StoreError> {
        DeltaFifo::delete(self, object)
    }

    fn replacing(&self) -> Box<dyn Replacement<T>> {
        Box::new(Replacing { fifo: self.clone(), seen: HashSet::default() })
    }

    fn known(&self, key: &ObjectKey) -> Option<T> {
        self.inner.known.as_ref()?.get_by_key(key)
    }

    fn resync(&self) -> Result<(), StoreError> {
        DeltaFifo::resync(self);
        Ok(())
    }

    fn observed(&self, resource_version: &str) {
        let mut state = self.inner.state.lock();
        state.observed = Observed { resource_version: Some(resource_version.into()), told: false };
        drop(state);
        self.inner.changed.notify_one();
    }
}
