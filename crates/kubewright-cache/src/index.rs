//! Index of a store: from a value to the objects that have it.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;

use super::object::{Lazy, Untyped};
use kubewright_core::{ObjectKey, panic_message};

/// The index by namespace that every informer has.
pub const NAMESPACE_INDEX: &str = "namespace";

/// The index by controlling owner that [`KindCache`](super::KindCache) adds when it is first looked up.
pub(super) const CONTROLLER_INDEX: &str = "metadata.ownerReferences.controller";

/// Error of an index function for an object.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[error(
    "index {index:?} has no entry for {key}: {reason}; the object is stored, and the next change of it tries again"
)]
pub struct IndexError {
    /// The index.
    pub index: Arc<str>,
    /// The object.
    pub key: ObjectKey,
    /// The message of the function.
    pub reason: String,
}

/// Return type of an index function: no value, one, several, or an error.
pub trait IntoIndexValues {
    /// Adds each value to `values`.
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String>;
}

/// The index values of one object.
#[derive(Debug, Default)]
pub struct IndexValues {
    text: String,
    ends: Vec<usize>,
}

impl IndexValues {
    /// Adds a value, unless it was added before.
    pub fn push(&mut self, value: &str) {
        if !self.iter().any(|held| held == value) {
            self.text.push_str(value);
            self.ends.push(self.text.len());
        }
    }

    /// Adds each of these values.
    pub fn extend<S: AsRef<str>>(&mut self, values: impl IntoIterator<Item = S>) {
        values.into_iter().for_each(|value| self.push(value.as_ref()));
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let value = &self.text[start..*end];
            start = *end;
            value
        })
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

impl IntoIndexValues for () {
    fn collect_into(self, _: &mut IndexValues) -> Result<(), String> {
        Ok(())
    }
}

impl IntoIndexValues for &str {
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String> {
        values.push(self);
        Ok(())
    }
}

impl IntoIndexValues for String {
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String> {
        values.push(&self);
        Ok(())
    }
}

impl<V: IntoIndexValues> IntoIndexValues for Option<V> {
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String> {
        self.map_or(Ok(()), |value| value.collect_into(values))
    }
}

impl<V: IntoIndexValues> IntoIndexValues for Vec<V> {
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String> {
        self.into_iter().try_for_each(|value| value.collect_into(values))
    }
}

impl<V: IntoIndexValues, E: fmt::Display> IntoIndexValues for Result<V, E> {
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String> {
        self.map_err(|error| error.to_string())?.collect_into(values)
    }
}

type Function<T> = Arc<dyn Fn(&T, &mut IndexValues) -> Result<(), String> + Send + Sync>;

/// A named function from an object to its index values; client-go's `IndexFunc`.
pub struct IndexFn<T> {
    name: Arc<str>,
    function: Function<T>,
}

impl<T> IndexFn<T> {
    /// Creates an index function that returns a string, an option or a list of strings, or a result of those.
    ///
    /// ```
    /// use kubewright::cache::{IndexFn, Lazy};
    /// use kubewright::k8s_openapi::api::core::v1::Pod;
    ///
    /// let by_node = IndexFn::new("node", |pod: &Lazy<Pod>| {
    ///     pod.load().map(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
    /// });
    /// let by_app = IndexFn::new("app", |pod: &Lazy<Pod>| pod.label("app").map(str::to_owned));
    /// ```
    pub fn new<V: IntoIndexValues>(name: &str, function: impl Fn(&T) -> V + Send + Sync + 'static) -> Self {
        Self::with_values(name, move |object, values| function(object).collect_into(values))
    }

    /// Creates an index function that adds its values without allocating.
    pub fn with_values(
        name: &str,
        function: impl Fn(&T, &mut IndexValues) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function) }
    }

    /// Returns the name of the index.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<K: 'static> IndexFn<Lazy<K>> {
    /// Creates the function of [`NAMESPACE_INDEX`]: client-go's `MetaNamespaceIndexFunc`.
    pub fn namespace() -> Self {
        Self::with_values(NAMESPACE_INDEX, |object: &Lazy<K>, values| {
            values.push(object.namespace().unwrap_or_default());
            Ok(())
        })
    }

    /// Creates an index function by the value of one label.
    pub fn label(name: &str, label: &str) -> Self {
        let label = label.to_owned();
        Self::with_values(name, move |object: &Lazy<K>, values| {
            object.label(&label).into_iter().for_each(|value| values.push(value));
            Ok(())
        })
    }

    /// The index [`CONTROLLER_INDEX`]: the uid of the controlling owner, or [`orphans_of`] the namespace.
    pub(super) fn controller() -> Self {
        Self::with_values(CONTROLLER_INDEX, |object: &Lazy<K>, values| {
            match object.controller() {
                Some(controller) => values.push(controller.uid),
                None => values.push(&orphans_of(object.namespace())),
            }
            Ok(())
        })
    }

    /// Returns the same index for the untyped store.
    pub(super) fn untyped(self) -> IndexFn<Lazy<Untyped>> {
        let function = self.function;
        // A handle, and no copy of the object.
        IndexFn {
            name: self.name,
            function: Arc::new(move |object, values| function(&object.clone().cast(), values)),
        }
    }

    /// Creates an index function by the uid of every owner.
    pub fn owner_uid(name: &str) -> Self {
        Self::with_values(name, |object: &Lazy<K>, values| {
            object.owners().for_each(|owner| values.push(owner.uid));
            Ok(())
        })
    }
}

/// The value of [`CONTROLLER_INDEX`] that objects without a controller have. No uid contains a slash.
pub(super) fn orphans_of(namespace: Option<&str>) -> String {
    format!("/{}", namespace.unwrap_or_default())
}

impl<T> Clone for IndexFn<T> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), function: Arc::clone(&self.function) }
    }
}

impl<T> fmt::Debug for IndexFn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexFn({:?})", self.name)
    }
}

/// The position of an object in an index: the value, and the place in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) index: u32,
    value: u32,
    place: u32,
}

/// The positions of an object in all indexes. One, usually by namespace, is stored inline.
pub(super) type Postings = SmallVec<[Posting; 1]>;

/// The objects by value. Objects are identified by their slots in the store.
pub(super) struct Index<T> {
    function: IndexFn<T>,
    table: HashTable<u32>,
    values: Vec<Value>,
    free: Vec<u32>,
    /// The last value looked up: objects of one namespace often follow each other.
    last: u32,
    scratch: IndexValues,
}

struct Value {
    text: Box<str>,
    slots: Vec<u32>,
}

/// Hashes with a fixed seed, so that table layouts are deterministic.
fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

impl<T> Index<T> {
    pub(super) fn new(function: IndexFn<T>) -> Self {
        Self {
            function,
            table: HashTable::new(),
            values: Vec::new(),
            free: Vec::new(),
            last: 0,
            scratch: IndexValues::default(),
        }
    }

    pub(super) fn function(&self) -> &IndexFn<T> {
        &self.function
    }

    /// Returns the slots of the objects that have this value.
    pub(super) fn slots(&self, value: &str) -> &[u32] {
        self.find(value).map_or(&[], |id| &self.values[id as usize].slots)
    }

    /// Iterates over all values that at least one object has, in order of first occurrence.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter(|value| !value.slots.is_empty()).map(|value| &*value.text)
    }

    /// Runs the index function. A panic is an error.
    fn evaluate(&mut self, key: &ObjectKey, object: &T) -> Result<(), IndexError> {
        self.scratch.clear();
        let (function, scratch) = (&self.function.function, &mut self.scratch);
        std::panic::catch_unwind(AssertUnwindSafe(|| function(object, scratch)))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic))))
            .map_err(|reason| {
                self.scratch.clear();
                IndexError { index: Arc::clone(&self.function.name), key: key.clone(), reason }
            })
    }

    /// Updates the postings of one object, touching only values that changed.
    ///
    /// `moved` collects every other object whose place in a list changed.
    pub(super) fn update(
        &mut self,
        number: u32,
        slot: u32,
        key: &ObjectKey,
        object: &T,
        postings: &mut Postings,
        moved: &mut Vec<Moved>,
    ) -> Result<(), IndexError> {
        let result = self.evaluate(key, object);
        let scratch = std::mem::take(&mut self.scratch);
        if !self.unchanged(number, postings, &scratch) {
            postings.retain(|posting| {
                let keep = posting.index != number
                    || scratch.iter().any(|value| *self.values[posting.value as usize].text == *value);
                if !keep {
                    self.remove(*posting, moved);
                }
                keep
            });
            for value in scratch.iter() {
                let id = self.intern(value);
                if !postings.iter().any(|held| held.index == number && held.value == id) {
                    let slots = &mut self.values[id as usize].slots;
                    let place = u32::try_from(slots.len()).expect("slots are numbered in 32 bits");
                    slots.push(slot);
                    postings.push(Posting { index: number, value: id, place });
                }
            }
        }
        self.scratch = scratch;
        result
    }

    fn unchanged(&self, number: u32, postings: &[Posting], values: &IndexValues) -> bool {
        let mut held = postings.iter().filter(|posting| posting.index == number);
        values.iter().all(|value| {
            held.next().is_some_and(|posting| *self.values[posting.value as usize].text == *value)
        }) && held.next().is_none()
    }

    /// Removes one object from one value.
    pub(super) fn remove(&mut self, posting: Posting, moved: &mut Vec<Moved>) {
        let value = &mut self.values[posting.value as usize];
        value.slots.swap_remove(posting.place as usize);
        if let Some(slot) = value.slots.get(posting.place as usize) {
            moved.push(Moved { slot: *slot, posting });
        }
        if value.slots.is_empty() {
            let text = std::mem::take(&mut value.text);
            value.slots = Vec::new();
            if let Ok(entry) = self.table.find_entry(hash(&text), |id| *id == posting.value) {
                entry.remove();
            }
            self.free.push(posting.value);
        }
    }

    fn find(&self, value: &str) -> Option<u32> {
        self.table.find(hash(value), |id| *self.values[*id as usize].text == *value).copied()
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(value) = self.values.get(self.last as usize)
            && *value.text == *text
            && !value.slots.is_empty()
        {
            return self.last;
        }
        if let Some(id) = self.find(text) {
            self.last = id;
            return id;
        }
        let value = Value { text: text.into(), slots: Vec::new() };
        let id = if let Some(id) = self.free.pop() {
            self.values[id as usize] = value;
            id
        } else {
            let id = u32::try_from(self.values.len()).expect("an index has fewer values than 32 bits");
            self.values.push(value);
            id
        };
        let values = &self.values;
        self.table.insert_unique(hash(text), id, |id| hash(&values[*id as usize].text));
        self.last = id;
        id
    }
}

/// An object that took the place of a removed one in a list.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) slot: u32,
    posting: Posting,
}

impl Moved {
    /// Corrects the postings of the moved object.
    pub(super) fn apply(&self, postings: &mut [Posting]) {
        let (index, value) = (self.posting.index, self.posting.value);
        if let Some(held) = postings.iter_mut().find(|held| held.index == index && held.value == value) {
            held.place = self.posting.place;
        }
    }
}
