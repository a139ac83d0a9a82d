//! How a reflector fills the queue: change by change, and by whole lists.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::{Delta, DeltaFifo, InFlight, Observed, State};
use crate::{
    reflector_store::{ReflectorStore, Replacement},
    store::Store,
    thread_safe_store::StoreError,
};
use kubewright_core::{KeyError, ObjectKey};

/// A list that takes the place of what was there, page by page: what it lacks is gone when it ends.
struct Replacing<T> {
    fifo: DeltaFifo<T>,
    seen: Seen,
    /// How many deltas there have been by now if all of them are this list's, because there was nothing before it.
    alone: Option<u64>,
}

/// Which objects a list has. Nobody asks when it is the first one, so it is only written down.
#[derive(Default)]
struct Seen {
    list: Vec<ObjectKey>,
    /// What was taken out again, and how long the list was then.
    removed: Vec<(usize, ObjectKey)>,
}

impl Seen {
    fn into_set(self) -> HashSet<ObjectKey, FixedState> {
        let mut set = HashSet::with_capacity_and_hasher(self.list.len(), FixedState::default());
        let mut removed = self.removed.into_iter().peekable();
        for (at, key) in self.list.into_iter().enumerate() {
            while let Some((_, key)) = removed.next_if(|(then, _)| *then <= at) {
                set.remove(&key);
            }
            set.insert(key);
        }
        for (_, key) in removed {
            set.remove(&key);
        }
        set
    }
}

impl<T: Clone + Send + Sync> Replacement<T> for Replacing<T> {
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let keyed: Vec<_> = objects
            .into_iter()
            .map(|object| Ok(((inner.key)(&object)?, object)))
            .collect::<Result<_, KeyError>>()?;
        let mut state = inner.state.lock();
        self.alone = self.alone.map(|deltas| deltas + keyed.len() as u64);
        for (key, object) in keyed {
            self.seen.list.push(key.clone());
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
        self.seen.removed.push((self.seen.list.len(), key.clone()));
        self.alone = self.alone.map(|deltas| deltas + 1);
        inner.state.lock().push(key, Delta::Deleted { object, final_state_unknown: false });
        inner.changed.notify_one();
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let mut state = inner.state.lock();
        let known = inner.known.as_ref();
        let all_ours =
            self.alone == Some(state.deltas) && known.is_none_or(|known| known.len() <= self.seen.list.len());
        let gone = if all_ours { Vec::new() } else { missing(&state, known, &self.seen.into_set()) };
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

/// What is there, in whatever state, and not in the list.
fn missing<T: Clone>(
    state: &State<T>,
    known: Option<&Store<T>>,
    seen: &HashSet<ObjectKey, FixedState>,
) -> Vec<(ObjectKey, T)> {
    let mut gone: Vec<(ObjectKey, T)> = Vec::new();
    for key in state.queue.iter().filter(|key| !seen.contains(*key)) {
        if let Some(newest) = state.items.get(key).and_then(|item| item.deltas.last()) {
            gone.push((key.clone(), newest.object().clone()));
        }
    }
    for InFlight { key, object, .. } in &state.in_flight {
        if !seen.contains(key) && !state.items.contains_key(key) {
            gone.push((key.clone(), object.clone()));
        }
    }
    if let Some(known) = known {
        let held: HashSet<&ObjectKey, FixedState> = state.in_flight.iter().map(|held| &held.key).collect();
        for key in known.list_keys() {
            if !seen.contains(&key)
                && !state.items.contains_key(&key)
                && !held.contains(&key)
                && let Some(object) = known.get_by_key(&key)
            {
                gone.push((key, object));
            }
        }
    }
    gone
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
        let state = self.inner.state.lock();
        let empty = state.items.is_empty() && state.in_flight.is_empty();
        let alone = empty && self.inner.known.as_ref().is_none_or(Store::is_empty);
        let alone = alone.then_some(state.deltas);
        drop(state);
        Box::new(Replacing { fifo: self.clone(), seen: Seen::default(), alone })
    }

    fn known(&self, key: &ObjectKey) -> Option<T> {
        self.inner.known.as_ref()?.get_by_key(key)
    }

    fn knows_any(&self) -> bool {
        self.inner.known.as_ref().is_some_and(|known| !known.is_empty())
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
