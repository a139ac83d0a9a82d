//! One index over a store: from a value to the objects that have it.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;

use super::object::Lazy;
use kubewright_core::{ObjectKey, panic_message};

/// The index by namespace that every informer has.
pub const NAMESPACE_INDEX: &str = "namespace";

/// The index by controlling owner that [`KindCache`](super::KindCache) adds when it is first looked up.
pub(super) const CONTROLLER_INDEX: &str = "metadata.ownerReferences.controller";

/// An index function failed for an object.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "index {index:?} has no entry for {key}: {reason}; the object is stored, and the next change of it tries again"
)]
pub struct IndexError {
    /// The index.
    pub index: Arc<str>,
    /// The object it failed for.
    pub key: ObjectKey,
    /// What the function said.
    pub reason: String,
}

/// What an index function may return: no value, one, several, or an error.
pub trait IntoIndexValues {
    /// Hands each value over.
    fn collect_into(self, values: &mut IndexValues) -> Result<(), String>;
}

/// The values that an index function gave for one object.
#[derive(Debug, Default)]
pub struct IndexValues {
    text: String,
    ends: Vec<usize>,
}

impl IndexValues {
    /// Adds a value. Adding one twice is adding it once.
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

/// A named function from an object to the values under which an index finds it.
pub struct IndexFn<T> {
    name: Arc<str>,
    function: Function<T>,
}

impl<T> IndexFn<T> {
    /// An index by any function. It returns a text, an option or a list of texts, or a result of those.
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
        Self::pushing(name, move |object, values| function(object).collect_into(values))
    }

    /// An index whose function hands its values over without allocating.
    pub fn pushing(
        name: &str,
        function: impl Fn(&T, &mut IndexValues) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function) }
    }

    /// The name under which the index is asked.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<K: 'static> IndexFn<Lazy<K>> {
    /// The index [`NAMESPACE_INDEX`]: client-go's `MetaNamespaceIndexFunc`.
    pub fn namespace() -> Self {
        Self::pushing(NAMESPACE_INDEX, |object: &Lazy<K>, values| {
            values.push(object.namespace().unwrap_or_default());
            Ok(())
        })
    }

    /// An index by the value of one label.
    pub fn label(name: &str, label: &str) -> Self {
        let label = label.to_owned();
        Self::pushing(name, move |object: &Lazy<K>, values| {
            object.label(&label).into_iter().for_each(|value| values.push(value));
            Ok(())
        })
    }

    /// The index [`CONTROLLER_INDEX`]: the uid of the controlling owner, or [`orphans_of`] the namespace.
    pub(super) fn controller() -> Self {
        Self::pushing(CONTROLLER_INDEX, |object: &Lazy<K>, values| {
            match object.controller() {
                Some(controller) => values.push(controller.uid),
                None => values.push(&orphans_of(object.namespace())),
            }
            Ok(())
        })
    }

    /// An index by the identity of every owner.
    pub fn owner_uid(name: &str) -> Self {
        Self::pushing(name, |object: &Lazy<K>, values| {
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

/// Where an object stands in an index: which value, and at which place in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) index: u32,
    value: u32,
    place: u32,
}

/// Where an object stands in all indexes. Most stores have one, by namespace: that one needs no memory of its own.
pub(super) type Postings = SmallVec<[Posting; 1]>;

/// The objects by value. Objects are numbers here: their slots in the store.
pub(super) struct Index<T> {
    function: IndexFn<T>,
    table: HashTable<u32>,
    values: Vec<Value>,
    free: Vec<u32>,
    /// The value that was looked for last: objects of one namespace come one after the other.
    last: u32,
    scratch: IndexValues,
}

struct Value {
    text: Box<str>,
    slots: Vec<u32>,
}

/// Fixed, so that equal runs lay their tables out equally.
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

    /// The slots of the objects that have this value.
    pub(super) fn slots(&self, value: &str) -> &[u32] {
        self.find(value).map_or(&[], |id| &self.values[id as usize].slots)
    }

    /// All values that at least one object has, in the order in which they first appeared.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter(|value| !value.slots.is_empty()).map(|value| &*value.text)
    }

    /// The values of the object, by the index function. A panic in it is a failure like any other.
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

    /// Brings the postings of one object up to date, touching only values that changed.
    ///
    /// `moved` is told of every other object whose place in a list changed thereby.
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

    /// Takes one object out from under one value.
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

/// Another object took the place that a removed one had in a list.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) slot: u32,
    posting: Posting,
}

impl Moved {
    /// Corrects the postings of the object that moved.
    pub(super) fn apply(&self, postings: &mut [Posting]) {
        let (index, value) = (self.posting.index, self.posting.value);
        if let Some(held) = postings.iter_mut().find(|held| held.index == index && held.value == value) {
            held.place = self.posting.place;
        }
    }
}
