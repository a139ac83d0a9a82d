//! Store with expiry; client-go's `ExpirationCache`.
//!
//! [`ExpirationCache`] keeps each object for a time after its last write. Nothing runs in the background: an
//! expired object is dropped when it is read. Use it for results that are costly to get and may be slightly
//! stale, not for the state of the cluster, which an informer keeps up to date.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::store::KeyFn;
use kubewright_core::{KeyError, ObjectKey};

/// Objects by key, each for a limited time. Cheap to clone.
///
/// The clock is tokio's, so it can be paused in tests.
///
/// ```
/// use std::time::Duration;
/// use kubewright::{ObjectKey, cache::ExpirationCache};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), kubewright::KeyError> {
/// let cache = ExpirationCache::with_ttl(|name: &&str| name.parse::<ObjectKey>(), Duration::from_secs(30));
/// cache.add("default/a")?;
/// tokio::time::advance(Duration::from_secs(20)).await;
/// cache.add("default/b")?;
/// tokio::time::advance(Duration::from_secs(20)).await;
/// assert_eq!(cache.list(), ["default/b"]);
/// # Ok(())
/// # }
/// ```
pub struct ExpirationCache<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    key: KeyFn<T>,
    policy: Box<PolicyFn<T>>,
    state: Mutex<State<T>>,
}

/// Returns the TTL of an object; `None` never expires.
type PolicyFn<T> = dyn Fn(&T) -> Option<Duration> + Send + Sync;

struct State<T> {
    /// The objects in insertion order.
    entries: BTreeMap<u64, Entry<T>>,
    order: HashMap<ObjectKey, u64>,
    next_number: u64,
}

struct Entry<T> {
    key: ObjectKey,
    object: T,
    expires: Option<Instant>,
}

impl<T> Entry<T> {
    /// Returns whether the object has not expired; the last instant is included.
    fn is_alive(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }
}

impl<T: Clone> ExpirationCache<T> {
    /// Creates a store with one TTL after the last write; zero never expires.
    pub fn with_ttl(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        ttl: Duration,
    ) -> Self {
        Self::new(key, move |_| (!ttl.is_zero()).then_some(ttl))
    }

    /// Creates a store with a TTL per object, determined on every write; `None` never expires.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright::{ObjectKey, cache::ExpirationCache};
    /// type Answer = (&'static str, bool);
    /// // Negative results expire sooner.
    /// let cache = ExpirationCache::new(
    ///     |answer: &Answer| answer.0.parse::<ObjectKey>(),
    ///     |answer| Some(if answer.1 { Duration::from_secs(300) } else { Duration::from_secs(5) }),
    /// );
    /// cache.add(("default/a", false))?;
    /// # Ok::<(), kubewright::KeyError>(())
    /// ```
    pub fn new(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        policy: impl Fn(&T) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        let state = State { entries: BTreeMap::new(), order: HashMap::new(), next_number: 0 };
        Self {
            shared: Arc::new(Shared {
                key: Arc::new(key),
                policy: Box::new(policy),
                state: Mutex::new(state),
            }),
        }
    }

    /// Stores an object, replacing the one with the same key and restarting its TTL.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        let entry = self.entry(object, Instant::now())?;
        self.shared.state.lock().put(entry);
        Ok(())
    }

    /// The same as [`ExpirationCache::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Removes the object with the same key and returns it, unless it has expired.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let removed = self.shared.state.lock().remove(&key);
        Ok(removed.filter(|entry| entry.is_alive(Instant::now())).map(|entry| entry.object))
    }

    /// Replaces all objects; their TTL starts now. Nothing changes if one of them has no key.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>) -> Result<(), KeyError> {
        let now = Instant::now();
        let entries =
            objects.into_iter().map(|object| self.entry(object, now)).collect::<Result<Vec<_>, _>>()?;
        let mut state = self.shared.state.lock();
        state.entries.clear();
        state.order.clear();
        for entry in entries {
            state.put(entry);
        }
        Ok(())
    }

    /// Returns the object with the same key, unless it has expired.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// Returns the object with a key; drops it if it has expired.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        let mut state = self.shared.state.lock();
        let entry = state.order.get(key).and_then(|number| state.entries.get(number))?;
        if entry.is_alive(Instant::now()) {
            return Some(entry.object.clone());
        }
        state.remove(key);
        None
    }

    /// Returns all objects that have not expired, in insertion order; drops the others.
    pub fn list(&self) -> Vec<T> {
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let State { entries, order, .. } = &mut *state;
        entries.retain(|_, entry| {
            let alive = entry.is_alive(now);
            if !alive {
                order.remove(&entry.key);
            }
            alive
        });
        entries.values().map(|entry| entry.object.clone()).collect()
    }

    /// Returns the keys of all objects in insertion order. Expired objects are included until they are read.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.shared.state.lock().entries.values().map(|entry| entry.key.clone()).collect()
    }

    fn entry(&self, object: T, now: Instant) -> Result<Entry<T>, KeyError> {
        let key = (self.shared.key)(&object)?;
        // A TTL that overflows the clock never expires.
        let expires = (self.shared.policy)(&object).and_then(|ttl| now.checked_add(ttl));
        Ok(Entry { key, object, expires })
    }
}

impl<T> State<T> {
    fn put(&mut self, entry: Entry<T>) {
        let number = *self.order.entry(entry.key.clone()).or_insert_with(|| {
            self.next_number += 1;
            self.next_number
        });
        self.entries.insert(number, entry);
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Entry<T>> {
        self.order.remove(key).and_then(|number| self.entries.remove(&number))
    }
}

impl<T> Clone for ExpirationCache<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for ExpirationCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.shared.state.lock().entries.len();
        f.debug_struct("ExpirationCache").field("objects", &objects).finish()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    type Item = (&'static str, u64);

    const TTL: Duration = Duration::from_secs(30);

    fn cache() -> ExpirationCache<Item> {
        ExpirationCache::with_ttl(|item: &Item| item.0.parse(), TTL)
    }

    fn keys(cache: &ExpirationCache<Item>) -> Vec<String> {
        cache.list_keys().iter().map(ToString::to_string).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_returned_until_it_expires() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        advance(TTL).await;
        assert_eq!(cache.get(&("a", 0)).unwrap(), Some(("a", 1)), "the last instant is included");
        advance(Duration::from_millis(1)).await;
        assert_eq!(keys(&cache), ["a"], "nothing is dropped before a read");
        assert_eq!(cache.get_by_key(&ObjectKey::cluster("a")), None);
        assert_eq!(keys(&cache), [] as [&str; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_restarts_the_ttl_and_keeps_the_order() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        cache.add(("b", 1)).unwrap();
        advance(TTL).await;
        cache.update(("a", 2)).unwrap();
        cache.update(("b", 2)).unwrap();
        advance(TTL).await;
        assert_eq!(cache.list(), [("a", 2), ("b", 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_object_can_be_added_again() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        advance(TTL * 2).await;
        assert_eq!(cache.get(&("a", 0)).unwrap(), None);
        cache.add(("a", 2)).unwrap();
        assert_eq!(cache.get(&("a", 0)).unwrap(), Some(("a", 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_returns_live_objects_and_drops_the_others() {
        let seconds = |item: &Item| Some(Duration::from_secs(item.1));
        let cache = ExpirationCache::new(|item: &Item| item.0.parse(), seconds);
        for item in [("a", 10), ("b", 100), ("c", 20), ("d", 100)] {
            cache.add(item).unwrap();
        }
        advance(Duration::from_secs(50)).await;
        assert_eq!(cache.list(), [("b", 100), ("d", 100)]);
        assert_eq!(keys(&cache), ["b", "d"]);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_none_and_overflowing_ttls_never_expire() {
        let key = |item: &Item| item.0.parse();
        for cache in [
            ExpirationCache::with_ttl(key, Duration::ZERO),
            ExpirationCache::new(key, |_| None),
            ExpirationCache::with_ttl(key, Duration::MAX),
        ] {
            cache.add(("a", 1)).unwrap();
            advance(Duration::from_secs(1_000_000)).await;
            assert_eq!(cache.list(), [("a", 1)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replace_replaces_all_objects_and_restarts_the_ttl() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        cache.add(("b", 1)).unwrap();
        advance(TTL).await;
        cache.replace([("c", 1), ("b", 2), ("c", 3)]).unwrap();
        advance(TTL).await;
        assert_eq!(cache.list(), [("c", 3), ("b", 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_object_is_gone() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        cache.add(("b", 1)).unwrap();
        assert_eq!(cache.delete(&("a", 0)).unwrap(), Some(("a", 1)));
        assert_eq!(cache.delete(&("a", 0)).unwrap(), None);
        advance(TTL * 2).await;
        assert_eq!(cache.delete(&("b", 0)).unwrap(), None, "an expired object is not returned");
        assert_eq!(cache.list(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_without_a_key_is_rejected_and_changes_nothing() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        assert!(
            cache.add(("", 1)).is_err() && cache.get(&("", 1)).is_err() && cache.delete(&("", 1)).is_err()
        );
        assert!(cache.replace([("b", 1), ("", 1)]).is_err());
        assert_eq!(cache.list(), [("a", 1)]);
    }
}
