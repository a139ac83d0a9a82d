//! A queue of objects that hands out the smallest first.
//!
//! [`Heap`] is what a scheduler needs: objects by priority, found and changed by their key while they wait. Objects
//! of the same rank come out in the order in which they came in.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::fifo::KeyFn;
use crate::{KeyError, ObjectKey};

/// Why a heap did not take an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// The heap was closed; nothing can be added any more.
    #[error("the heap is closed; nothing can be added to it")]
    Closed,
    /// The object has no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A priority queue of objects with keys. A clone is a handle to the same heap.
///
/// ```
/// use kubewright::{ObjectKey, cache::Heap};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kubewright::cache::HeapError> {
/// type Job = (&'static str, u32);
/// let heap = Heap::new(|job: &Job| job.0.parse::<ObjectKey>(), |one: &Job, other: &Job| one.1 < other.1);
/// heap.bulk_add([("default/slow", 30), ("default/fast", 1), ("default/medium", 5)])?;
/// heap.update(("default/slow", 2))?;          // moves up
///
/// assert_eq!(heap.pop().await, Some(("default/fast", 1)));
/// assert_eq!(heap.pop().await, Some(("default/slow", 2)));
/// # Ok(())
/// # }
/// ```
pub struct Heap<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    key: Box<KeyFn<T>>,
    less: Box<LessFn<T>>,
    state: Mutex<State<T>>,
    arrivals: Notify,
}

type LessFn<T> = dyn Fn(&T, &T) -> bool + Send + Sync;

struct State<T> {
    entries: IndexMap<ObjectKey, Entry<T>>,
    /// Indexes into `entries`, each parent before its children.
    order: Vec<usize>,
    next_arrival: u64,
    closed: bool,
}

struct Entry<T> {
    object: T,
    /// When the object came, to keep equals in order.
    arrival: u64,
    /// Where `State::order` names this entry.
    position: usize,
}

impl<T: Clone> Heap<T> {
    /// An empty heap. `less` says whether the first object comes out before the second; it must be consistent and
    /// must not use the heap.
    pub fn new(
        key: impl Fn(&T) -> Result<ObjectKey, KeyError> + Send + Sync + 'static,
        less: impl Fn(&T, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let state = State { entries: IndexMap::new(), order: Vec::new(), next_arrival: 0, closed: false };
        Self {
            shared: Arc::new(Shared {
                key: Box::new(key),
                less: Box::new(less),
                state: Mutex::new(state),
                arrivals: Notify::new(),
            }),
        }
    }

    /// Adds an object, or replaces the one under its key and moves it to its new place.
    pub fn add(&self, object: T) -> Result<(), HeapError> {
        self.put([object], true)
    }

    /// Adds objects all at once: nobody who waits sees the first of them before the last is in. Nothing changes if
    /// one of them has no key.
    pub fn bulk_add(&self, objects: impl IntoIterator<Item = T>) -> Result<(), HeapError> {
        self.put(objects, true)
    }

    /// Adds an object unless there is one under its key: for putting back what could not be processed, without
    /// overwriting a newer state. This is client-go's `AddIfNotPresent`.
    pub fn add_if_absent(&self, object: T) -> Result<(), HeapError> {
        self.put([object], false)
    }

    /// The same as [`Heap::add`].
    pub fn update(&self, object: T) -> Result<(), HeapError> {
        self.add(object)
    }

    fn put(&self, objects: impl IntoIterator<Item = T>, overwrite: bool) -> Result<(), HeapError> {
        let keyed = objects
            .into_iter()
            .map(|object| (self.shared.key)(&object).map(|key| (key, object)))
            .collect::<Result<Vec<_>, _>>()?;
        let several = keyed.len() > 1;
        let mut state = self.shared.state.lock();
        if state.closed {
            return Err(HeapError::Closed);
        }
        for (key, object) in keyed {
            state.put(key, object, overwrite, &*self.shared.less);
        }
        drop(state);
        if several {
            self.shared.arrivals.notify_waiters();
        } else {
            self.shared.arrivals.notify_one();
        }
        Ok(())
    }

    /// Takes out the object under the key of this one and returns it; `None` if there is none.
    pub fn delete(&self, object: &T) -> Result<Option<T>, KeyError> {
        let key = (self.shared.key)(object)?;
        let mut state = self.shared.state.lock();
        let Some(entry) = state.entries.get(&key) else { return Ok(None) };
        let position = entry.position;
        Ok(state.take(position, &*self.shared.less))
    }

    /// Takes the smallest object out, waiting until there is one. `None` once the heap is closed and empty.
    ///
    /// A caller that stops waiting loses nothing: an object leaves the heap only when it is returned.
    pub async fn pop(&self) -> Option<T> {
        loop {
            // Registered before the look at the heap, so that an arrival in between is not missed.
            let mut arrival = std::pin::pin!(self.shared.arrivals.notified());
            arrival.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                if let Some(object) = state.take(0, &*self.shared.less) {
                    return Some(object);
                }
                if state.closed {
                    return None;
                }
            }
            arrival.await;
        }
    }

    /// The object with the same key as this one.
    pub fn get(&self, object: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&(self.shared.key)(object)?))
    }

    /// The object under a key.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<T> {
        self.shared.state.lock().entries.get(key).map(|entry| entry.object.clone())
    }

    /// All objects in the order in which they came in, which is not the order in which they will come out.
    pub fn list(&self) -> Vec<T> {
        self.collect(|_, entry| entry.object.clone())
    }

    /// The keys of all objects in the order in which they came in.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.collect(|key, _| key.clone())
    }

    fn collect<R>(&self, show: impl Fn(&ObjectKey, &Entry<T>) -> R) -> Vec<R> {
        let state = self.shared.state.lock();
        let mut entries: Vec<_> = state.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.arrival);
        entries.into_iter().map(|(key, entry)| show(key, entry)).collect()
    }

    /// How many objects are in the heap.
    pub fn len(&self) -> usize {
        self.shared.state.lock().order.len()
    }

    /// Whether the heap is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the heap: nothing can be added, what is in it can still be popped, then `pop` returns `None`.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Whether the heap was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }
}

impl<T> State<T> {
    fn put(&mut self, key: ObjectKey, object: T, overwrite: bool, less: &LessFn<T>) {
        if let Some(entry) = self.entries.get_mut(&key) {
            if overwrite {
                entry.object = object;
                let position = entry.position;
                self.restore(position, less);
            }
            return;
        }
        let position = self.order.len();
        let (index, _) =
            self.entries.insert_full(key, Entry { object, arrival: self.next_arrival, position });
        self.next_arrival += 1;
        self.order.push(index);
        self.up(position, less);
    }

    /// Takes out the entry at a position; `None` if there is no such position.
    fn take(&mut self, position: usize, less: &LessFn<T>) -> Option<T> {
        if position >= self.order.len() {
            return None;
        }
        let last = self.order.len() - 1;
        self.swap(position, last);
        let index = self.order.pop()?;
        let (_, entry) = self.entries.swap_remove_index(index)?;
        // The last entry has moved to the free index; its position must name it there.
        if let Some((_, moved)) = self.entries.get_index(index) {
            self.order[moved.position] = index;
        }
        if position < self.order.len() {
            self.restore(position, less);
        }
        Some(entry.object)
    }

    /// Moves the entry at a position to where it belongs, when all others are in order.
    fn restore(&mut self, position: usize, less: &LessFn<T>) {
        if self.up(position, less) == position {
            self.down(position, less);
        }
    }

    fn up(&mut self, mut position: usize, less: &LessFn<T>) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if !self.before(position, parent, less) {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
        position
    }

    fn down(&mut self, mut position: usize, less: &LessFn<T>) {
        loop {
            let children = [2 * position + 1, 2 * position + 2];
            let mut smallest = position;
            for child in children {
                if child < self.order.len() && self.before(child, smallest, less) {
                    smallest = child;
                }
            }
            if smallest == position {
                return;
            }
            self.swap(position, smallest);
            position = smallest;
        }
    }

    /// Whether the entry at one position comes out before the one at another.
    fn before(&self, one: usize, other: usize, less: &LessFn<T>) -> bool {
        let (one, other) = (&self.entries[self.order[one]], &self.entries[self.order[other]]);
        less(&one.object, &other.object) || (one.arrival < other.arrival && !less(&other.object, &one.object))
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.order.swap(one, other);
        for position in [one, other] {
            self.entries[self.order[position]].position = position;
        }
    }
}

impl<T> Clone for Heap<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Heap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Heap").field("objects", &state.order.len()).field("closed", &state.closed).finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    type Item = (&'static str, i32);

    fn heap() -> Heap<Item> {
        Heap::new(|item: &Item| item.0.parse(), |one: &Item, other: &Item| one.1 < other.1)
    }

    fn filled(items: &[Item]) -> Heap<Item> {
        let heap = heap();
        heap.bulk_add(items.iter().copied()).unwrap();
        heap
    }

    fn drain(heap: &Heap<Item>) -> Vec<Item> {
        std::iter::from_fn(|| heap.pop().now_or_never().flatten()).collect()
    }

    #[test]
    fn the_smallest_comes_out_first_and_adding_again_updates() {
        let heap = heap();
        for item in [("foo", 10), ("bar", 1), ("baz", 11), ("zab", 30), ("foo", 13)] {
            heap.add(item).unwrap();
        }
        assert_eq!(heap.pop().now_or_never().flatten(), Some(("bar", 1)));
        assert_eq!(heap.pop().now_or_never().flatten(), Some(("baz", 11)));
        assert_eq!(heap.delete(&("baz", 11)).unwrap(), None, "what was popped is gone");
        heap.add(("foo", 14)).unwrap();
        assert_eq!(drain(&heap), [("foo", 14), ("zab", 30)]);
    }

    #[test]
    fn equals_come_out_in_the_order_in_which_they_came_in() {
        let heap = filled(&[("c", 1), ("a", 1), ("z", 0), ("b", 1)]);
        heap.update(("a", 0)).unwrap();
        assert_eq!(drain(&heap), [("a", 0), ("z", 0), ("c", 1), ("b", 1)]);
    }

    #[test]
    fn adding_what_is_absent_only_leaves_the_present_alone() {
        let heap = heap();
        for item in [("foo", 10), ("bar", 1), ("baz", 11), ("zab", 30), ("foo", 13)] {
            heap.add_if_absent(item).unwrap();
        }
        assert_eq!((heap.len(), heap.get(&("foo", 0)).unwrap()), (4, Some(("foo", 10))));
        assert_eq!(heap.pop().now_or_never().flatten(), Some(("bar", 1)));
        heap.add_if_absent(("bar", 14)).unwrap();
        assert_eq!(drain(&heap), [("foo", 10), ("baz", 11), ("bar", 14), ("zab", 30)]);
    }

    #[test]
    fn deleting_head_middle_and_tail_keeps_the_order() {
        let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
        assert_eq!(heap.delete(&("bar", 200)).unwrap(), Some(("bar", 1)), "the key counts, not the value");
        assert_eq!(heap.pop().now_or_never().flatten(), Some(("foo", 10)));
        heap.bulk_add([("zab", 30), ("faz", 30)]).unwrap();
        assert_eq!(heap.delete(&("nobody", 10)).unwrap(), None);
        assert_eq!(heap.len(), 4);
        assert_eq!(heap.delete(&("bal", 31)).unwrap(), Some(("bal", 31)));
        assert_eq!(heap.delete(&("zab", 30)).unwrap(), Some(("zab", 30)));
        assert_eq!(drain(&heap), [("baz", 11), ("faz", 30)]);
        assert!(heap.is_empty());
    }

    #[test]
    fn an_update_moves_both_ways() {
        let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
        heap.update(("baz", 0)).unwrap();
        assert_eq!(heap.pop().now_or_never().flatten(), Some(("baz", 0)));
        heap.update(("bar", 100)).unwrap();
        assert_eq!(drain(&heap), [("foo", 10), ("bal", 31), ("bar", 100)]);
    }

    #[test]
    fn objects_are_found_by_key_and_listed_as_they_came() {
        let heap = filled(&[("foo", 10), ("bar", 1), ("bal", 31), ("baz", 11)]);
        assert_eq!(heap.get_by_key(&ObjectKey::cluster("baz")), Some(("baz", 11)));
        assert_eq!(heap.get_by_key(&ObjectKey::cluster("nobody")), None);
        assert_eq!(heap.get(&("nobody", 0)).unwrap(), None);
        heap.delete(&("foo", 0)).unwrap();
        heap.add(("foo", 0)).unwrap();
        heap.update(("bal", 5)).unwrap();
        assert_eq!(heap.list(), [("bar", 1), ("bal", 5), ("baz", 11), ("foo", 0)]);
        let keys: Vec<_> = heap.list_keys().iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["bar", "bal", "baz", "foo"]);
    }

    #[test]
    fn an_object_without_a_key_is_refused_and_changes_nothing() {
        let heap = filled(&[("a", 1)]);
        assert!(matches!(heap.add(("", 0)), Err(HeapError::Key(_))));
        assert!(matches!(heap.bulk_add([("b", 0), ("", 0)]), Err(HeapError::Key(_))));
        assert!(heap.get(&("", 0)).is_err() && heap.delete(&("", 0)).is_err());
        assert_eq!(drain(&heap), [("a", 1)]);
    }

    #[test]
    fn a_closed_heap_takes_nothing_and_gives_what_it_has() {
        let heap = filled(&[("a", 1)]);
        assert!(!heap.is_closed());
        heap.close();
        assert!(heap.is_closed());
        assert_eq!(heap.add(("b", 1)), Err(HeapError::Closed));
        assert_eq!(heap.update(("a", 1)), Err(HeapError::Closed));
        assert_eq!(heap.add_if_absent(("b", 1)), Err(HeapError::Closed));
        assert_eq!(heap.bulk_add([("b", 1)]), Err(HeapError::Closed));
        assert_eq!(heap.pop().now_or_never(), Some(Some(("a", 1))));
        assert_eq!(heap.pop().now_or_never(), Some(None));
    }

    #[tokio::test(start_paused = true)]
    async fn pop_waits_for_an_object_or_the_end() {
        let heap = heap();
        let waiting = tokio::spawn({
            let heap = heap.clone();
            async move { (heap.pop().await, heap.pop().await) }
        });
        tokio::task::yield_now().await;
        heap.add(("a", 1)).unwrap();
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        heap.close();
        assert_eq!(waiting.await.unwrap(), (Some(("a", 1)), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_sees_a_bulk_only_when_it_is_whole() {
        let heap = heap();
        let mut first = Box::pin(heap.pop());
        let mut second = Box::pin(heap.pop());
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        heap.bulk_add([("c", 3), ("b", 2), ("a", 1)]).unwrap();
        assert_eq!((first.await, second.await), (Some(("a", 1)), Some(("b", 2))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_takes_nothing_with_it() {
        let heap = heap();
        let mut first = Box::pin(heap.pop());
        let mut second = Box::pin(heap.pop());
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        heap.add(("a", 1)).unwrap();
        drop(first);
        assert_eq!(second.await, Some(("a", 1)));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add(usize, i32),
        AddIfAbsent(usize, i32),
        BulkAdd(Vec<(usize, i32)>),
        Delete(usize),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let item = || (0_usize..12, 0_i32..6);
        prop_oneof![
            4 => item().prop_map(|(key, rank)| Step::Add(key, rank)),
            1 => item().prop_map(|(key, rank)| Step::AddIfAbsent(key, rank)),
            1 => prop::collection::vec(item(), 0..6).prop_map(Step::BulkAdd),
            2 => (0_usize..12).prop_map(Step::Delete),
            2 => Just(Step::Pop),
        ]
    }

    proptest! {
           /// The heap behaves like a list in order of arrival from which the smallest is picked.
           #[test]
           fn the_heap_agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..120)) {
               const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
               let heap = heap();
               let mut model: Vec<Item> = Vec::new();
               let put = |model: &mut Vec<Item>, item: Item, overwrite: bool| {
                   match model.iter_mut().find(|old| old.0 == item.0) {
                       Some(old) if overwrite => *old = item,
                       Some(_) => {}
                       None => model.push(item),
                   }
               };
               let pop = |model: &mut Vec<Item>| {
                   let smallest = (0..model.len()).min_by_key(|index| (model[*index].1, *index))?;
                   Some(model.remove(smallest))
               };
               for step in steps {
                   match step {
                       Step::Add(key, rank) => {
                           heap.add((NAMES[key], rank)).unwrap();
                           put(&mut model, (NAMES[key], rank), true);
                       }
                       Step::AddIfAbsent(key, rank) => {
                           heap.add_if_absent((NAMES[key], rank)).unwrap();
                           put(&mut model, (NAMES[key], rank), false);
                       }
                       Step::BulkAdd(items) => {
                           let items: Vec<_> = items.into_iter().map(|(key, rank)| (NAMES[key], rank)).collect();
                           heap.bulk_add(items.clone()).unwrap();
                           for item in items {
    put(&mut model, item, true);
    }
                       }
                       Step::Delete(key) => {
                           let expected = model.iter().position(|item| item.0 == NAMES[key]).map(|at| model.remove(at));
                           prop_assert_eq!(heap.delete(&(NAMES[key], 0)).unwrap(), expected);
                       }
                       Step::Pop => prop_assert_eq!(heap.pop().now_or_never().flatten(), pop(&mut model)),
                   }
                   prop_assert_eq!(&heap.list(), &model);
               }
               let rest: Vec<_> = std::iter::from_fn(|| pop(&mut model)).collect();
               prop_assert_eq!(drain(&heap), rest);
           }
       }
}
