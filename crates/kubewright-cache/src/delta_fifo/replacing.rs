//! [`ReflectorStore`] of the queue: single changes and lists.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::{Delta, DeltaFifo, InFlight, ReflectorProgress, State};
use crate::{
    reflector_store::{ReflectorStore, Replacement},
    store::Store,
    thread_safe_store::StoreError,
};
use kubewright_core::{KeyError, ObjectKey};

/// A list in progress: objects that it lacks are deleted on commit.
struct ListReplacement<T> {
    fifo: DeltaFifo<T>,
    listed: ListedKeys,
    /// The number of deltas if all of them belong to this list; `None` if the queue or the store was not
    /// empty before.
    own_deltas: Option<u64>,
}

/// The keys of a list. The set is not needed for the first list, so it is built lazily.
#[derive(Default)]
struct ListedKeys {
    list: Vec<ObjectKey>,
    /// The removed keys, with the length of the list at that time.
    removed: Vec<(usize, ObjectKey)>,
}

impl ListedKeys {
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

impl<T: Clone + Send + Sync> Replacement<T> for ListReplacement<T> {
    fn page(&mut self, objects: Vec<T>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let keyed: Vec<_> = objects
            .into_iter()
            .map(|object| Ok(((inner.key)(&object)?, object)))
            .collect::<Result<_, KeyError>>()?;
        let mut state = inner.state.lock();
        self.own_deltas = self.own_deltas.map(|deltas| deltas + keyed.len() as u64);
        for (key, object) in keyed {
            self.listed.list.push(key.clone());
            state.push_listed(key, Delta::Replaced(object));
        }
        drop(state);
        inner.changed.notify_one();
        Ok(())
    }

    fn remove(&mut self, object: T) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let key = (inner.key)(&object)?;
        self.listed.removed.push((self.listed.list.len(), key.clone()));
        self.own_deltas = self.own_deltas.map(|deltas| deltas + 1);
        inner.state.lock().push(key, Delta::Deleted { object, final_state_unknown: false });
        inner.changed.notify_one();
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let inner = &self.fifo.inner;
        let mut state = inner.state.lock();
        let known = inner.known.as_ref();
        let is_first_list = self.own_deltas == Some(state.deltas)
            && known.is_none_or(|known| known.len() <= self.listed.list.len());
        let missing =
            if is_first_list { Vec::new() } else { find_missing(&state, known, &self.listed.into_set()) };
        for (key, object) in missing {
            state.push_listed(key, Delta::Deleted { object, final_state_unknown: true });
        }
        state.populated = true;
        drop(state);
        inner.changed.notify_one();
        Ok(())
    }
}

/// Returns the known objects, in whatever state, that are not in the list.
fn find_missing<T: Clone>(
    state: &State<T>,
    known: Option<&Store<T>>,
    listed: &HashSet<ObjectKey, FixedState>,
) -> Vec<(ObjectKey, T)> {
    let mut missing: Vec<(ObjectKey, T)> = Vec::new();
    for key in state.queue.iter().filter(|key| !listed.contains(*key)) {
        if let Some(newest) = state.items.get(key).and_then(|item| item.deltas.last()) {
            missing.push((key.clone(), newest.object().clone()));
        }
    }
    for InFlight { key, object, .. } in &state.in_flight {
        if !listed.contains(key) && !state.items.contains_key(key) {
            missing.push((key.clone(), object.clone()));
        }
    }
    if let Some(known) = known {
        let in_flight: HashSet<&ObjectKey, FixedState> =
            state.in_flight.iter().map(|held| &held.key).collect();
        for key in known.list_keys() {
            if !listed.contains(&key)
                && !state.items.contains_key(&key)
                && !in_flight.contains(&key)
                && let Some(object) = known.get_by_key(&key)
            {
                missing.push((key, object));
            }
        }
    }
    missing
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

    fn begin_replace(&self) -> Box<dyn Replacement<T>> {
        let state = self.inner.state.lock();
        let empty = state.items.is_empty() && state.in_flight.is_empty();
        let own_deltas = empty && self.inner.known.as_ref().is_none_or(Store::is_empty);
        let own_deltas = own_deltas.then_some(state.deltas);
        drop(state);
        Box::new(ListReplacement { fifo: self.clone(), listed: ListedKeys::default(), own_deltas })
    }

    fn known(&self, key: &ObjectKey) -> Option<T> {
        self.inner.known.as_ref()?.get_by_key(key)
    }

    fn has_known(&self) -> bool {
        self.inner.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    fn resync(&self) -> Result<(), StoreError> {
        DeltaFifo::resync(self);
        Ok(())
    }

    fn update_resource_version(&self, resource_version: &str) {
        let mut state = self.inner.state.lock();
        state.progress =
            ReflectorProgress { resource_version: Some(resource_version.into()), reported: false };
        drop(state);
        self.inner.changed.notify_one();
    }
}
