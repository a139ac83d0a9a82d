//! A queue of objects that holds each object once, in its latest state.
//!
//! [`Fifo`] is for a consumer that wants to see every object once, as it is now, and does not care about objects
//! that are gone: an object that changes while it waits is replaced in its place, and one that is deleted leaves the
//! queue. A consumer that must hear of deletions, or of every step in between, wants a `DeltaFifo`; one that works on
//! keys and may fail wants a work queue.
//!
//! Where this queue is stricter than client-go's: objects come out in the order in which they came in, after
//! [`Fifo::replace`] too; an object that is deleted and added again goes to the end; and a deletion counts towards
//! [`Fifo::has_synced`] at once instead of with the next pop.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{KeyError, ObjectKey};

/// Tells the key of an object.
pub(super) type KeyFn<T> = dyn Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync;

/// A queue in which every object waits once, in its latest state. A clone is a handle to the same queue.
///
/// ```
/// use kubewright::{ObjectKey, cache::Fifo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::KeyError> {
/// let fifo = Fifo::new(|line: &(&str, u32)| line.0.parse::<ObjectKey>());
/// fifo.add(("default/a", 1))?;
/// fifo.add(("default/b", 1))?;
/// fifo.add(("default/a", 2))?;               // replaces the first one, which keeps its place
/// fifo.delete(&("default/b", 0))?;           // b will never be seen
///
/// assert_eq!(fifo.pop().await, Some(("default/a", 2)));
/// fifo.close();
/// assert_eq!(fifo.pop().await, None);
/// # Ok(())
/// # }
/// ```
pub struct Fifo<T> {
    shared: Arc<Shared<T>>,
}

/// What [`Fifo::pop_process`] does with the object after the function has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popped<R> {
    /// The object is done with.
    Done(R),
    /// The object goes back to the end of the queue, unless a newer state of it has come in the meantime.
    Requeue(R),
}

struct Shared<T> {
    key: Box<KeyFn<T>>,
    state: Mutex<State<T>>,
    arrivals: Notify,
}

struct State<T> {
    /// The objects by the order in which they wait.
    queue: BTreeMap<u64, Waiting<T>>,
    places: HashMap<ObjectKey, u64>,
    next_place: u64,
    /// Whether anything was ever put in; the first `replace` counts as the initial list only before that.
    populated: bool,
    /// Objects of the initial list that still wait or are being processed.
    initial_left: usize,
    closed: bool,
}

struct Waiting<T> {
    key: ObjectKey,
    object: T,
    initial: bool,
}

impl<T: Clone> Fifo<T> {
    /// An empty queue of objects whose key the function tells; for a `Fifo<Arc<Pod>>` that is
    /// `|pod| ObjectKey::of(&**pod, &())`.
    pub fn new(key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static) -> Self {
        let state = State {
            queue: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
            populated: false,
            initial_left: 0,
            closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                key: Box::new(key),
                state: Mutex::new(state),
                arrivals: Notify::new(),
            }),
        }
    }

    /// Queues an object, or replaces the state of the one that waits under the same key.
    pub fn add(&self, object: T) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        state.put(key, object, true);
        drop(state);
        self.shared.arrivals.notify_one();
        Ok(())
    }

    /// Queues an object unless one waits under its key: for putting back what could not be processed, without
    /// overwriting a newer state.
    pub fn add_if_not_present(&self, object: T) -> Result<(), KeyError> {
        let key = (self.shared.key)(&object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        state.put(key, object, false);
        drop(state);
        self.shared.arrivals.notify_one();
        Ok(())
    }

    /// The same as [`Fifo::add`].
    pub fn update(&self, object: T) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Takes an object out of the queue; nobody will see it. Returns what waited under its key.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        state.populated = true;
        Ok(state.remove(&key))
    }

    /// Puts these objects in the place of all that wait, in the given order; the last of several under one key
    /// counts. Nothing changes if one of them has no key.
    ///
    /// The first `replace` of a queue that was never touched is its initial list; see [`Fifo::has_synced`].
    pub fn replace(&self, objects: impl IntoIterator<Item = T>) -> Result<(), KeyError> {
        let keyed = objects
            .into_iter()
            .map(|object| (self.shared.key)(&object).map(|key| (key, object)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        let first = !std::mem::replace(&mut state.populated, true);
        let old = std::mem::take(&mut state.queue);
        state.places.clear();
        // An object of the initial list that is still in the new list is still to be waited for.
        let initial: HashMap<_, _> =
            old.into_values().map(|waiting| (waiting.key, waiting.initial)).collect();
        let waited_for = initial.values().filter(|initial| **initial).count();
        state.initial_left -= waited_for;
        for (key, object) in keyed {
            let initial = first || initial.get(&key).copied().unwrap_or(false);
            if !state.places.contains_key(&key) {
                state.initial_left += usize::from(initial);
            }
            state.put(key.clone(), object, true);
            state.mark_initial(&key, initial);
        }
        self.shared.arrivals.notify_waiters();
        Ok(())
    }

    /// Does nothing: whatever is in the queue waits to be popped. It is here because every queue of a reflector has
    /// it.
    pub fn resync(&self) {}

    /// Whether the initial list has been worked off: every object of the first [`Fifo::replace`] was popped and
    /// processed, or is gone. A queue that begins with anything else than a `replace` has no initial list and is in
    /// sync at once.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().has_synced()
    }

    /// Takes the next object out, waiting until there is one. `None` once the queue is closed and empty.
    ///
    /// A caller that stops waiting loses nothing: an object leaves the queue only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        let (waiting, _) = self.next().await?;
        drop(Counted { shared: &self.shared, initial: waiting.initial });
        Some(waiting.object)
    }

    /// Takes the next object out and hands it to a function, together with whether it is part of the initial list
    /// that is not worked off yet. The function says whether the object goes back.
    ///
    /// [`Fifo::has_synced`] counts the object only after the function has returned. The queue is not locked in the
    /// meantime: the function may use it.
    ///
    /// ```
    /// # use kubewright::{ObjectKey, cache::{Fifo, Popped}};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kubewright::KeyError> {
    /// let fifo = Fifo::new(|name: &String| name.parse::<ObjectKey>());
    /// fifo.replace(["default/a".to_owned()])?;
    /// let failed = fifo.pop_process(|_, initial| Popped::Requeue(initial)).await;
    /// assert_eq!(failed, Some(true));
    /// assert_eq!(fifo.pop().await.as_deref(), Some("default/a"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pop_process<R>(&self, process: impl FnOnce(&T, bool) -> Popped<R>) -> Option<R> {
        let (waiting, in_initial_list) = self.next().await?;
        // Counts the object even if the function panics.
        let _counted = Counted { shared: &self.shared, initial: waiting.initial };
        match process(&waiting.object, in_initial_list) {
            Popped::Done(result) => Some(result),
            Popped::Requeue(result) => {
                self.shared.state.lock().put(waiting.key, waiting.object, false);
                self.shared.arrivals.notify_one();
                Some(result)
            }
        }
    }

    async fn next(&self) -> Option<(Waiting<T>, bool)> {
        loop {
            // Registered before the look at the queue, so that an arrival in between is not missed.
            let mut arrival = std::pin::pin!(self.shared.arrivals.notified());
            arrival.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                let in_initial_list = !state.has_synced();
                if let Some((_, waiting)) = state.queue.pop_first() {
                    state.places.remove(&waiting.key);
                    return Some((waiting, in_initial_list));
                }
                if state.closed {
                    return None;
                }
            }
            arrival.await;
        }
    }

    /// The object that waits under a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        let state = self.shared.state.lock();
        state.places.get(key).and_then(|place| state.queue.get(place)).map(|waiting| waiting.object.clone())
    }

    /// All objects that wait, the next one first.
    pub fn list(&self) -> Vec<T> {
        self.shared.state.lock().queue.values().map(|waiting| waiting.object.clone()).collect()
    }

    /// How many objects wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: what waits can still be popped, then `pop` returns `None`. Objects can still be added.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }
}

impl<T> State<T> {
    /// Queues an object. If one waits under the key it keeps its place, and its state is replaced if `overwrite`.
    fn put(&mut self, key: ObjectKey, object: T, overwrite: bool) {
        if let Some(waiting) = self.places.get(&key).and_then(|place| self.queue.get_mut(place)) {
            if overwrite {
                waiting.object = object;
            }
            return;
        }
        self.places.insert(key.clone(), self.next_place);
        self.queue.insert(self.next_place, Waiting { key, object, initial: false });
        self.next_place += 1;
    }

    fn mark_initial(&mut self, key: &ObjectKey, initial: bool) {
        if let Some(waiting) = self.places.get(key).and_then(|place| self.queue.get_mut(place)) {
            waiting.initial = initial;
        }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        let place = self.places.remove(key)?;
        let waiting = self.queue.remove(&place)?;
        self.initial_left -= usize::from(waiting.initial);
        Some(waiting.object)
    }

    fn has_synced(&self) -> bool {
        self.populated && self.initial_left == 0
    }
}

/// An object of the initial list on its way through a process function.
struct Counted<'a, T> {
    shared: &'a Shared<T>,
    initial: bool,
}

impl<T> Drop for Counted<'_, T> {
    fn drop(&mut self) {
        if self.initial {
            self.shared.state.lock().initial_left -= 1;
        }
    }
}

impl<T> Clone for Fifo<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Fifo").field("waiting", &state.queue.len()).field("closed", &state.closed).finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};
    use proptest::prelude::*;

    use super::*;

    type Item = (&'static str, u32);

    fn fifo() -> Fifo<Item> {
        Fifo::new(|item: &Item| item.0.parse())
    }

    /// What can be popped without waiting.
    fn drain(fifo: &Fifo<Item>) -> Vec<Item> {
        std::iter::from_fn(|| fifo.pop().now_or_never().flatten()).collect()
    }

    #[test]
    fn objects_come_out_in_the_order_in_which_they_came_in() {
        let fifo = fifo();
        for item in [("c", 1), ("a", 2), ("b", 3)] {
            fifo.add(item).unwrap();
        }
        assert_eq!(fifo.list(), [("c", 1), ("a", 2), ("b", 3)]);
        assert_eq!(drain(&fifo), [("c", 1), ("a", 2), ("b", 3)]);
        assert!(fifo.is_empty());
    }

    #[test]
    fn only_the_latest_state_of_an_object_is_seen_in_its_old_place() {
        let fifo = fifo();
        fifo.add(("a", 1)).unwrap();
        fifo.add(("b", 1)).unwrap();
        fifo.update(("a", 2)).unwrap();
        assert_eq!((fifo.len(), fifo.get_by_key(&ObjectKey::cluster("a"))), (2, Some(("a", 2))));
        assert_eq!(drain(&fifo), [("a", 2), ("b", 1)]);
        fifo.add(("a", 3)).unwrap();
        assert_eq!(drain(&fifo), [("a", 3)]);
    }

    #[test]
    fn a_deleted_object_vanishes_and_comes_back_at_the_end() {
        let fifo = fifo();
        for item in [("a", 1), ("b", 1), ("c", 1)] {
            fifo.add(item).unwrap();
        }
        assert_eq!(fifo.delete(&("a", 9)).unwrap(), Some(("a", 1)));
        assert_eq!(fifo.delete(&("a", 9)).unwrap(), None);
        assert_eq!(fifo.get_by_key(&ObjectKey::cluster("a")), None);
        fifo.add(("a", 2)).unwrap();
        assert_eq!(drain(&fifo), [("b", 1), ("c", 1), ("a", 2)]);
    }

    #[test]
    fn adding_what_is_present_changes_nothing() {
        let fifo = fifo();
        fifo.add(("a", 2)).unwrap();
        fifo.add_if_not_present(("a", 1)).unwrap();
        fifo.add_if_not_present(("b", 1)).unwrap();
        assert_eq!(drain(&fifo), [("a", 2), ("b", 1)]);
    }

    #[test]
    fn replace_takes_the_place_of_everything() {
        let fifo = fifo();
        fifo.add(("a", 1)).unwrap();
        fifo.add(("b", 1)).unwrap();
        fifo.replace([("c", 1), ("b", 2), ("c", 3)]).unwrap();
        fifo.resync();
        assert_eq!(drain(&fifo), [("c", 3), ("b", 2)]);
    }

    #[test]
    fn an_object_without_a_key_is_refused_and_changes_nothing() {
        let fifo = fifo();
        fifo.add(("a", 1)).unwrap();
        assert!(fifo.add(("", 1)).is_err());
        assert!(fifo.add_if_not_present(("a/b/c", 1)).is_err());
        assert!(fifo.delete(&("", 1)).is_err());
        assert!(fifo.replace([("b", 1), ("", 1)]).is_err());
        assert_eq!(drain(&fifo), [("a", 1)]);
    }

    #[test]
    fn the_initial_list_is_in_sync_when_it_is_worked_off() {
        let pop = |fifo: &Fifo<Item>| fifo.pop().now_or_never().flatten();
        let untouched = fifo();
        assert!(!untouched.has_synced());

        let empty = fifo();
        empty.replace([]).unwrap();
        assert!(empty.has_synced(), "an empty initial list is worked off at once");

        for begin in [Fifo::add, Fifo::update, Fifo::add_if_not_present] {
            let fifo = fifo();
            begin(&fifo, ("a", 1)).unwrap();
            assert!(fifo.has_synced(), "a queue that begins otherwise has no initial list");
            fifo.replace([("b", 1)]).unwrap();
            assert!(fifo.has_synced());
        }
        let deleted = fifo();
        deleted.delete(&("a", 1)).unwrap();
        assert!(deleted.has_synced());

        let fifo = fifo();
        fifo.replace([("a", 1), ("b", 1)]).unwrap();
        fifo.add(("z", 1)).unwrap();
        assert!(!fifo.has_synced());
        pop(&fifo);
        assert!(!fifo.has_synced());
        pop(&fifo);
        assert!(fifo.has_synced() && fifo.len() == 1);
    }

    #[test]
    fn what_is_deleted_or_replaced_away_is_not_waited_for() {
        let fifo = fifo();
        fifo.replace([("a", 1), ("b", 1), ("c", 1)]).unwrap();
        fifo.delete(&("a", 1)).unwrap();
        fifo.replace([("b", 2), ("new", 1)]).unwrap();
        assert!(!fifo.has_synced(), "b is still to be seen");
        assert_eq!(fifo.pop().now_or_never().flatten(), Some(("b", 2)));
        assert!(fifo.has_synced());
    }

    #[tokio::test]
    async fn the_process_function_knows_the_initial_list_and_can_put_back() {
        let fifo = fifo();
        fifo.replace([("a", 1)]).unwrap();
        let seen = fifo
            .pop_process(|item, initial| {
                assert!(!fifo.has_synced(), "an object counts when it is processed");
                fifo.add(("b", 1)).unwrap();
                Popped::Requeue((*item, initial))
            })
            .await;
        assert_eq!(seen, Some((("a", 1), true)));
        assert!(fifo.has_synced());
        let later = fifo.pop_process(|item, initial| Popped::Done((*item, initial))).await;
        assert_eq!(later, Some((("b", 1), false)));
        assert_eq!(drain(&fifo), [("a", 1)]);
    }

    #[tokio::test]
    async fn putting_back_does_not_overwrite_a_newer_state() {
        let fifo = fifo();
        fifo.add(("a", 1)).unwrap();
        fifo.pop_process(|_, _| {
            fifo.add(("a", 2)).unwrap();
            Popped::Requeue(())
        })
        .await;
        assert_eq!(drain(&fifo), [("a", 2)]);
    }

    #[test]
    fn a_function_that_panics_leaves_the_queue_in_order() {
        let fifo = fifo();
        fifo.replace([("a", 1), ("b", 1)]).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            fifo.pop_process(|_, _| -> Popped<()> { panic!("on purpose") }).now_or_never()
        }));
        assert!(panicked.is_err());
        assert_eq!(drain(&fifo), [("b", 1)]);
        assert!(fifo.has_synced());
    }

    #[tokio::test(start_paused = true)]
    async fn pop_waits_for_the_next_object() {
        let fifo = fifo();
        let waiting = tokio::spawn({
            let fifo = fifo.clone();
            async move { fifo.pop().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        fifo.add(("a", 1)).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(("a", 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiter_gets_an_object_of_its_own() {
        let fifo = fifo();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let fifo = fifo.clone();
                    async move { fifo.pop().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        fifo.replace([("a", 1), ("b", 1)]).unwrap();
        fifo.add(("c", 1)).unwrap();
        let mut got: Vec<_> =
            join_all(waiters).await.into_iter().map(|item| item.unwrap().unwrap().0).collect();
        got.sort_unstable();
        assert_eq!(got, ["a", "b", "c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_takes_nothing_with_it() {
        let fifo = fifo();
        let mut first = Box::pin(fifo.pop());
        let mut second = Box::pin(fifo.pop());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        fifo.add(("a", 1)).unwrap();
        // The first has been woken and goes away without looking.
        drop(first);
        assert_eq!(second.await, Some(("a", 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_queue_is_emptied_and_then_ends() {
        let fifo = fifo();
        let waiting = tokio::spawn({
            let fifo = fifo.clone();
            async move { (fifo.pop().await, fifo.pop().await) }
        });
        tokio::task::yield_now().await;
        fifo.add(("a", 1)).unwrap();
        fifo.close();
        assert!(fifo.is_closed());
        assert_eq!(waiting.await.unwrap(), (Some(("a", 1)), None));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add(usize, u32),
        AddIfNotPresent(usize, u32),
        Delete(usize),
        Replace(Vec<(usize, u32)>),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let item = || (0_usize..4, any::<u32>());
        prop_oneof![
            item().prop_map(|(key, value)| Step::Add(key, value)),
            item().prop_map(|(key, value)| Step::AddIfNotPresent(key, value)),
            (0_usize..4).prop_map(Step::Delete),
            prop::collection::vec(item(), 0..4).prop_map(Step::Replace),
            Just(Step::Pop),
        ]
    }

    proptest! {
           /// The queue behaves like a plain list that is searched from the front.
           #[test]
           fn the_queue_agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..60)) {
               const NAMES: [&str; 4] = ["a", "b", "c", "d"];
               let fifo = fifo();
               let mut model: Vec<Item> = Vec::new();
               let put = |model: &mut Vec<Item>, item: Item, overwrite: bool| {
                   match model.iter_mut().find(|old| old.0 == item.0) {
                       Some(old) if overwrite => *old = item,
                       Some(_) => {}
                       None => model.push(item),
                   }
               };
               for step in steps {
                   match step {
                       Step::Add(key, value) => {
                           fifo.add((NAMES[key], value)).unwrap();
                           put(&mut model, (NAMES[key], value), true);
                       }
                       Step::AddIfNotPresent(key, value) => {
                           fifo.add_if_not_present((NAMES[key], value)).unwrap();
                           put(&mut model, (NAMES[key], value), false);
                       }
                       Step::Delete(key) => {
                           fifo.delete(&(NAMES[key], 0)).unwrap();
                           model.retain(|item| item.0 != NAMES[key]);
                       }
                       Step::Replace(items) => {
                           let items: Vec<_> = items.into_iter().map(|(key, value)| (NAMES[key], value)).collect();
                           fifo.replace(items.clone()).unwrap();
                           model.clear();
                           for item in items {
    put(&mut model, item, true);
    }
                       }
                       Step::Pop => {
                           let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                           prop_assert_eq!(fifo.pop().now_or_never().flatten(), expected);
                       }
                   }
                   prop_assert_eq!(&fifo.list(), &model);
               }
               drain(&fifo);
               prop_assert!(fifo.has_synced() || !fifo.shared.state.lock().populated);
           }
       }
}
