//! A store that tells its whole content at every change.
//!
//! [`UndeltaStore`] is for a consumer that wants the full set each time (a configuration file to write, a table to
//! load) and not the single changes. Every write calls the push function once with all objects; reads never do.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// Objects by key, pushed as a whole whenever one changes. A clone is a handle to the same store.
///
/// Pushes come one at a time and in the order of the changes, so the last push is always the current state; with
/// client-go's store two writers can push in the wrong order. The push function may read the store; it must not
/// write to it, since it would wait for itself.
///
/// ```
/// use std::sync::mpsc;
/// use kubewright::{ObjectKey, cache::UndeltaStore};
///
/// let (sender, pushes) = mpsc::channel();
/// let store = UndeltaStore::new(
///     |name: &&str| name.parse::<ObjectKey>(),
///     move |all| sender.send(all).unwrap(),
/// );
/// store.add("default/a")?;
/// store.add("default/b")?;
/// store.delete(&"default/a")?;
/// let states: Vec<_> = pushes.try_iter().collect();
/// assert_eq!(states, [vec!["default/a"], vec!["default/a", "default/b"], vec!["default/b"]]);
/// # Ok::<(), kubewright::KeyError>(())
/// ```
pub struct UndeltaStore<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    key: KeyFn<T>,
    push: Box<dyn Fn(Vec<T>) + Send + Sync>,
    objects: Mutex<IndexMap<ObjectKey, T>>,
    /// Held from the change to the end of its push, so that pushes keep the order of the changes.
    pushing: Mutex<()>,
}

impl<T: Clone> UndeltaStore<T> {
    /// An empty store; nothing is pushed before the first write.
    pub fn new(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        push: impl Fn(Vec<T>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                key: Arc::new(key),
                push: Box::new(push),
                objects: Mutex::new(IndexMap::new()),
                pushing: Mutex::new(()),
            }),
        }
    }

    /// Stores an object, replacing the one under its key, and pushes.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        self.change(|objects| objects.insert(key, object));
        Ok(())
    }

    /// The same as [`UndeltaStore::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Takes out the object under the key of this one, pushes, and returns it; `None` if there was none.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        Ok(self.change(|objects| objects.shift_remove(&key)))
    }

    /// Puts these objects in the place of all others and pushes. Nothing changes if one of them has no key.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>) -> Result<(), KeyError> {
        let new = objects
            .into_iter()
            .map(|object| (self.shared.key)(&object).map(|key| (key, object)))
            .collect::<Result<IndexMap<_, _>, _>>()?;
        self.change(|objects| *objects = new);
        Ok(())
    }

    fn change<R>(&self, change: impl FnOnce(&mut IndexMap<ObjectKey, T>) -> R) -> R {
        let _in_order = self.shared.pushing.lock();
        let (result, state) = {
            let mut objects = self.shared.objects.lock();
            let result = change(&mut objects);
            (result, objects.values().cloned().collect())
        };
        (self.shared.push)(state);
        result
    }

    /// The object with the same key as this one.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// The object under a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.shared.objects.lock().get(key).cloned()
    }

    /// All objects in the order in which they came in.
    pub fn list(&self) -> Vec<T> {
        self.shared.objects.lock().values().cloned().collect()
    }

    /// The keys of all objects in the order in which they came in.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.shared.objects.lock().keys().cloned().collect()
    }
}

impl<T> Clone for UndeltaStore<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for UndeltaStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.shared.objects.lock().len();
        f.debug_struct("UndeltaStore").field("objects", &objects).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (&'static str, u32);
    type Pushes = Arc<Mutex<Vec<Vec<Item>>>>;

    fn store() -> (UndeltaStore<Item>, Pushes) {
        let pushes = Pushes::default();
        let push = {
            let pushes = pushes.clone();
            move |all| pushes.lock().push(all)
        };
        (UndeltaStore::new(|item: &Item| item.0.parse(), push), pushes)
    }

    #[test]
    fn every_write_pushes_the_whole_state_once() {
        let (store, pushes) = store();
        store.add(("b", 1)).unwrap();
        store.add(("a", 1)).unwrap();
        store.update(("b", 2)).unwrap();
        store.replace([("c", 1), ("a", 2), ("c", 3)]).unwrap();
        assert_eq!(store.delete(&("c", 0)).unwrap(), Some(("c", 3)));
        assert_eq!(store.delete(&("nobody", 0)).unwrap(), None);
        let expected = [
            vec![("b", 1)],
            vec![("b", 1), ("a", 1)],
            vec![("b", 2), ("a", 1)],
            vec![("c", 3), ("a", 2)],
            vec![("a", 2)],
            vec![("a", 2)],
        ];
        assert_eq!(*pushes.lock(), expected);
    }

    #[test]
    fn reads_and_refused_writes_push_nothing() {
        let (store, pushes) = store();
        store.replace([("a", 1)]).unwrap();
        pushes.lock().clear();
        assert_eq!(store.list(), [("a", 1)]);
        assert_eq!(store.list_keys(), [ObjectKey::cluster("a")]);
        assert_eq!(store.get(&("a", 0)).unwrap(), Some(("a", 1)));
        assert_eq!(store.get_by_key(&ObjectKey::cluster("b")), None);
        assert!(
            store.add(("", 1)).is_err() && store.delete(&("", 1)).is_err() && store.get(&("", 1)).is_err()
        );
        assert!(store.replace([("b", 1), ("", 1)]).is_err());
        assert_eq!(store.list(), [("a", 1)]);
        assert!(pushes.lock().is_empty());
    }

    #[test]
    fn the_push_function_may_read_the_store() {
        let handle: Arc<Mutex<Option<UndeltaStore<Item>>>> = Arc::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let store = UndeltaStore::new(|item: &Item| item.0.parse(), {
            let (handle, seen) = (handle.clone(), seen.clone());
            move |all| {
                let store = handle.lock().clone();
                seen.lock().push((all.len(), store.map(|store| store.list().len())));
            }
        });
        *handle.lock() = Some(store.clone());
        store.add(("a", 1)).unwrap();
        store.add(("b", 1)).unwrap();
        assert_eq!(*seen.lock(), [(1, Some(1)), (2, Some(2))]);
        *handle.lock() = None;
    }

    #[test]
    fn writers_on_many_threads_push_in_the_order_of_their_changes() {
        let (store, pushes) = store();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let store = &store;
                scope.spawn(move || (1..=50).for_each(|value| store.add((name, value)).unwrap()));
            }
        });
        let pushes = pushes.lock();
        assert_eq!(pushes.len(), 200);
        let sum = |all: &Vec<Item>| all.iter().map(|item| item.1).sum::<u32>();
        assert!(
            pushes.iter().map(sum).is_sorted_by(|one, other| one + 1 == *other),
            "each push is one change later"
        );
        assert_eq!(pushes.last(), Some(&store.list()));
    }
}
