//! A store that forgets.
//!
//! [`ExpirationCache`] keeps each object for a time after it was last written. Nothing runs in the background: an
//! object that has outlived its time is dropped when somebody asks for it. Use it for answers that are costly to get
//! and may be a little old, not for the state of the cluster, which an informer keeps fresh.

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

/// Objects by key, each for a limited time. A clone is a handle to the same store.
///
/// The clock is tokio's, so it stands still in tests that pause it.
///
/// ```
/// use std::time::Duration;
/// use kubewright::{ObjectKey, cache::ExpirationCache};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), kubewright::KeyError> {
/// let cache = ExpirationCache::ttl(|name: &&str| name.parse::<ObjectKey>(), Duration::from_secs(30));
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

/// How long an object is kept; `None` is for ever.
type PolicyFn<T> = dyn Fn(&T) -> Option<Duration> + Send + Sync;

struct State<T> {
    /// The objects in the order in which they came in.
    entries: BTreeMap<u64, Entry<T>>,
    places: HashMap<ObjectKey, u64>,
    next_place: u64,
}

struct Entry<T> {
    key: ObjectKey,
    object: T,
    expires: Option<Instant>,
}

impl<T> Entry<T> {
    /// An object lives up to and including the last moment of its time.
    fn is_alive(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }
}

impl<T: Clone> ExpirationCache<T> {
    /// A store that keeps every object for the same time after it was last written; zero keeps it for ever.
    pub fn ttl(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        ttl: Duration,
    ) -> Self {
        Self::new(key, move |_| (!ttl.is_zero()).then_some(ttl))
    }

    /// A store that asks how long each object is to be kept, when the object is written; `None` is for ever.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright::{ObjectKey, cache::ExpirationCache};
    /// type Answer = (&'static str, bool);
    /// // What is known not to exist is asked for again sooner.
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
        let state = State { entries: BTreeMap::new(), places: HashMap::new(), next_place: 0 };
        Self {
            shared: Arc::new(Shared {
                key: Arc::new(key),
                policy: Box::new(policy),
                state: Mutex::new(state),
            }),
        }
    }

    /// Stores an object; one under the same key is replaced, and its time begins anew.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        let entry = self.entry(object, Instant::now())?;
        self.shared.state.lock().put(entry);
        Ok(())
    }

    /// The same as [`ExpirationCache::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Takes out the object under the key of this one and returns it, if it is there and still alive.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let removed = self.shared.state.lock().remove(&key);
        Ok(removed.filter(|entry| entry.is_alive(Instant::now())).map(|entry| entry.object))
    }

    /// Puts these objects in the place of all others; the time of all of them begins now. Nothing changes if one of
    /// them has no key.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>) -> Result<(), KeyError> {
        let now = Instant::now();
        let entries =
            objects.into_iter().map(|object| self.entry(object, now)).collect::<Result<Vec<_>, _>>()?;
        let mut state = self.shared.state.lock();
        state.entries.clear();
        state.places.clear();
        for entry in entries {
            state.put(entry);
        }
        Ok(())
    }

    /// The object with the same key as this one, if it is still alive.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// The object under a key, if it is still alive; one that is not is dropped.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        let mut state = self.shared.state.lock();
        let entry = state.places.get(key).and_then(|place| state.entries.get(place))?;
        if entry.is_alive(Instant::now()) {
            return Some(entry.object.clone());
        }
        state.remove(key);
        None
    }

    /// All objects that are still alive, in the order in which they came in; the others are dropped.
    pub fn list(&self) -> Vec<T> {
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let State { entries, places, .. } = &mut *state;
        entries.retain(|_, entry| {
            let alive = entry.is_alive(now);
            if !alive {
                places.remove(&entry.key);
            }
            alive
        });
        entries.values().map(|entry| entry.object.clone()).collect()
    }

    /// The keys of all objects in the order in which they came in. An object that has outlived its time counts until
    /// it is asked for.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.shared.state.lock().entries.values().map(|entry| entry.key.clone()).collect()
    }

    fn entry(&self, object: T, now: Instant) -> Result<Entry<T>, KeyError> {
        let key = (self.shared.key)(&object)?;
        // A time too long to be added to the clock is for ever.
        let expires = (self.shared.policy)(&object).and_then(|ttl| now.checked_add(ttl));
        Ok(Entry { key, object, expires })
    }
}

impl<T> State<T> {
    fn put(&mut self, entry: Entry<T>) {
        let place = *self.places.entry(entry.key.clone()).or_insert_with(|| {
            self.next_place += 1;
            self.next_place
        });
        self.entries.insert(place, entry);
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Entry<T>> {
        self.places.remove(key).and_then(|place| self.entries.remove(&place))
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
        ExpirationCache::ttl(|item: &Item| item.0.parse(), TTL)
    }

    fn keys(cache: &ExpirationCache<Item>) -> Vec<String> {
        cache.list_keys().iter().map(ToString::to_string).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_there_until_its_time_is_over() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        advance(TTL).await;
        assert_eq!(cache.get(&("a", 0)).unwrap(), Some(("a", 1)), "the last moment still counts");
        advance(Duration::from_millis(1)).await;
        assert_eq!(keys(&cache), ["a"], "nothing is dropped before somebody asks");
        assert_eq!(cache.get_by_key(&ObjectKey::cluster("a")), None);
        assert_eq!(keys(&cache), [] as [&str; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_begins_the_time_anew_and_keeps_the_place() {
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
    async fn what_has_expired_can_be_added_again() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        advance(TTL * 2).await;
        assert_eq!(cache.get(&("a", 0)).unwrap(), None);
        cache.add(("a", 2)).unwrap();
        assert_eq!(cache.get(&("a", 0)).unwrap(), Some(("a", 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_holds_what_is_alive_and_drops_the_rest() {
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
    async fn zero_and_none_and_more_than_the_clock_can_count_are_for_ever() {
        let key = |item: &Item| item.0.parse();
        for cache in [
            ExpirationCache::ttl(key, Duration::ZERO),
            ExpirationCache::new(key, |_| None),
            ExpirationCache::ttl(key, Duration::MAX),
        ] {
            cache.add(("a", 1)).unwrap();
            advance(Duration::from_secs(1_000_000)).await;
            assert_eq!(cache.list(), [("a", 1)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replace_takes_the_place_of_everything_and_begins_anew() {
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
        assert_eq!(cache.delete(&("b", 0)).unwrap(), None, "what is deleted after its time was not there");
        assert_eq!(cache.list(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_without_a_key_is_refused_and_changes_nothing() {
        let cache = cache();
        cache.add(("a", 1)).unwrap();
        assert!(
            cache.add(("", 1)).is_err() && cache.get(&("", 1)).is_err() && cache.delete(&("", 1)).is_err()
        );
        assert!(cache.replace([("b", 1), ("", 1)]).is_err());
        assert_eq!(cache.list(), [("a", 1)]);
    }
}
