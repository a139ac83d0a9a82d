//! Cache of compiled configuration objects.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{admission::Context, registry::descriptor::Json};

/// The compiled objects of one collection, by name.
pub(super) struct Compiled<T> {
    collection: &'static str,
    make: fn(&Json) -> T,
    known: Mutex<BTreeMap<String, (u64, Arc<T>)>>,
}

impl<T> fmt::Debug for Compiled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("collection", &self.collection).finish_non_exhaustive()
    }
}

impl<T> Compiled<T> {
    pub(super) fn new(collection: &'static str, make: fn(&Json) -> T) -> Self {
        Self { collection, make, known: Mutex::default() }
    }

    /// Returns all objects of the collection, compiled, in the order of names.
    pub(super) fn all(&self, context: &Context<'_>) -> Vec<Arc<T>> {
        let stored = context.objects.snapshot().collection(self.collection);
        if stored.is_empty() {
            return Vec::new();
        }
        let mut known = self.known.lock();
        if known.len() > stored.len() {
            known.clear();
        }
        let mut out = Vec::with_capacity(stored.len());
        for (key, object) in stored.range(None, None) {
            let found = match known.get(key.name()) {
                Some((revision, found)) if *revision == object.revision => Arc::clone(found),
                _ => {
                    let made = Arc::new((self.make)(&object.decode()));
                    known.insert(key.name().to_owned(), (object.revision, Arc::clone(&made)));
                    made
                }
            };
            out.push(found);
        }
        out
    }
}
