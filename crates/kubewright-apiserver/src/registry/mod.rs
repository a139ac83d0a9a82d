//! Served types, stored objects and the verbs on them.
//!
//! A [`Registry`] holds the types that are served ([`Descriptor`]s, built in or added at run time) and the storage. A
//! verb is one function for all types, in `verbs`; subresources with an implementation of their own (binding, eviction,
//! scale, …) are in `actions`. What differs between types is data in the descriptor or a function in `strategy`;
//! decoding, patches and field ownership are pure functions over schemas, in `schematic`.
//!
//! The registry knows neither HTTP nor users' rights. Requests reach it through the layers of [`crate::http`], and a
//! write brings the admission that it has to pass in its [`Call`].

pub(crate) mod actions;
pub(crate) mod builtin;
pub(crate) mod call;
mod conversion;
pub(crate) mod custom;
mod definitions;
pub(crate) mod descriptor;
pub(crate) mod json;
pub(crate) mod objectmeta;
pub mod quantity;
mod reader;
pub(crate) mod schematic;
pub(crate) mod semantics;
pub(crate) mod strategy;
pub(crate) mod validation;
pub(crate) mod verbs;

pub use kubewright_core::selector;
use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewright_core::{Clock, Random};
use parking_lot::Mutex;

pub use self::{
    call::{Call, WriteOptions},
    descriptor::Descriptor,
    reader::ObjectReader,
    semantics::FieldValidation,
};
use crate::storage::{Expect, Storage};

/// The types that are served at one moment, with the documents that describe them.
#[derive(Debug, Clone, Default)]
pub struct Types {
    /// By group, version and plural.
    by_path: BTreeMap<(String, String, String), Arc<Descriptor>>,
    /// In the order of discovery.
    ordered: Vec<Arc<Descriptor>>,
    /// Discovery and `OpenAPI` documents, encoded on first use.
    documents: Documents,
}

/// Encoded documents about the types, kept as long as the types are the same.
#[derive(Debug, Default)]
struct Documents(Mutex<BTreeMap<String, Bytes>>);

impl Clone for Documents {
    /// Returns an empty cache: types are only cloned to be changed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Types {
    /// Returns a type by its place in the URL.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Descriptor>> {
        // The key is made of owned text; three short strings per request are not worth a cleverer map.
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Returns all types in the order in which they were added.
    pub fn all(&self) -> &[Arc<Descriptor>] {
        &self.ordered
    }

    /// Returns a document about the types, encoded by `make` on first use. A missing document is not cached.
    pub(crate) fn document(&self, name: &str, make: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        if let Some(known) = self.documents.0.lock().get(name) {
            return Some(known.clone());
        }
        // Not under the lock: encoding a large document takes a while, and encoding one twice does no harm.
        let made = make()?;
        self.documents.0.lock().insert(name.to_owned(), made.clone());
        Some(made)
    }

    /// Returns whether a group has any type.
    pub fn has_group(&self, group: &str) -> bool {
        self.ordered.iter().any(|t| t.group == group)
    }

    /// Returns whether a version of a group has any type.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.ordered.iter().any(|t| t.group == group && t.version == version)
    }

    fn add(&mut self, descriptor: Descriptor) {
        let key =
            (descriptor.group.to_string(), descriptor.version.to_string(), descriptor.plural.to_string());
        let descriptor = Arc::new(descriptor);
        self.ordered.push(Arc::clone(&descriptor));
        self.by_path.insert(key, descriptor);
    }
}

/// The served types, the storage and the verbs on them.
pub struct Registry {
    types: ArcSwap<Types>,
    changing_types: Mutex<()>,
    /// Held while definitions are brought up to date.
    updating_definitions: Mutex<()>,
    storage: Arc<Storage>,
    clock: Clock,
    /// Source of uids and name suffixes.
    random: Random,
    /// Cluster IPs and node ports that are in use.
    allocator: strategy::service::Allocator,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("types", &self.types.load().ordered.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// Creates a registry of the built-in types.
    pub(crate) fn new(storage: Arc<Storage>, clock: Clock, random: Random) -> Self {
        let mut types = Types::default();
        for descriptor in builtin::descriptors() {
            types.add(descriptor);
        }
        Self {
            types: ArcSwap::from_pointee(types),
            changing_types: Mutex::new(()),
            updating_definitions: Mutex::new(()),
            storage,
            clock,
            random,
            allocator: strategy::service::Allocator::default(),
        }
    }

    /// Creates an independent registry that begins with a [fork](Storage::fork) of this one's objects.
    pub(crate) fn fork(&self, clock: Clock) -> Self {
        let fork = Self::new(Arc::new(self.storage.fork()), clock, Random::seeded(self.random.next()));
        fork.restore();
        fork
    }

    /// Derives what is not stored from the stored objects: allocated addresses and ports, and served custom resources.
    pub(crate) fn restore(&self) {
        self.allocator.restore(self);
        self.restore_definitions();
    }

    /// Reserves the cluster IP of the Service `default/kubernetes`.
    pub(crate) fn reserve_first_address(&self) -> String {
        self.allocator.restore(self);
        self.allocator.reserve_first()
    }

    /// Stores an object of the server's own, unless there is one of that name.
    pub(crate) fn put_if_absent(
        &self,
        (group, version, plural): (&str, &str, &str),
        object: serde_json::Value,
    ) {
        let (Some(ty), serde_json::Value::Object(mut object)) =
            (self.resolve(group, version, plural), object)
        else {
            return;
        };
        let metadata = json::meta_mut(&mut object);
        metadata.insert("uid".into(), self.random.uuid().into());
        metadata.insert("creationTimestamp".into(), self.now().into());
        let metadata = json::meta(&object);
        let key = kubewright_core::ObjectKey::new(
            Some(json::text(metadata, "namespace")),
            json::text(metadata, "name"),
        );
        schematic::canonicalise(&ty, &mut object);
        // An object that is there already was written by an earlier start, and users may have changed it since.
        let _ = self.storage.put(&ty.storage, &key, Expect::Absent, ty.draft(&object));
    }

    /// Returns the stored objects.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Returns the clock of all timestamps.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the source of uids and name suffixes.
    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    /// Returns the types that are served now.
    pub fn types(&self) -> Arc<Types> {
        self.types.load_full()
    }

    /// Returns a type that is served now.
    pub fn resolve(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Descriptor>> {
        self.types.load().get(group, version, plural).cloned()
    }

    /// Serves a resource in these versions and no others. Without versions it is withdrawn and its watches end.
    fn replace_types(&self, group: &str, plural: &str, descriptors: Vec<Descriptor>) {
        let _changing = self.changing_types.lock();
        let mut types = Types::clone(&self.types.load());
        let is_other = |ty: &Descriptor| ty.group != group || ty.plural != plural;
        if descriptors.is_empty() {
            let withdrawn = types.ordered.iter().filter(|ty| !is_other(ty));
            withdrawn.filter_map(|ty| ty.custom.as_ref()).for_each(|custom| custom.definition().close());
        }
        types.ordered.retain(|ty| is_other(ty));
        types.by_path.retain(|_, ty| is_other(ty));
        for descriptor in descriptors {
            types.add(descriptor);
        }
        self.types.store(Arc::new(types));
    }

    /// Returns the present time as `metadata` writes it.
    pub fn now(&self) -> String {
        crate::clock::seconds(self.clock.now())
    }
}
