//! All resources and all verbs.
//!
//! A [`Registry`] holds the types that are served ([`Descriptor`]s, built in or added at run time), the storage, and
//! the places where behaviour plugs in: strategies per type, [`semantics`] for schemas and patches, admission plugins.
//! A verb is one function for all types, in [`verbs`]; what only one subresource does (binding, eviction, scale, …) is
//! in [`actions`].

pub mod actions;
pub mod builtin;
pub mod call;
mod conversion;
pub mod custom;
mod definitions;
pub mod descriptor;
pub mod json;
pub mod objectmeta;
pub mod quantity;
pub mod schematic;
pub mod semantics;
pub mod strategy;
pub mod validation;
pub mod verbs;

pub use kubewright_core::selector;
use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;

use self::{descriptor::Descriptor, semantics::Semantics};
use crate::{admission::Chain, authz::Authorizer, clock::SharedClock, random::Random, storage::Storage};

/// The types that are served at one moment.
#[derive(Debug, Clone, Default)]
pub struct Types {
    /// By group, version and plural.
    by_path: BTreeMap<(String, String, String), Arc<Descriptor>>,
    /// In the order of discovery.
    ordered: Vec<Arc<Descriptor>>,
    /// What was told about them so far.
    documents: Documents,
}

/// Documents about types, made when they are first asked for and kept as long as the types are the same.
#[derive(Debug, Default)]
struct Documents(Mutex<BTreeMap<String, Bytes>>);

impl Clone for Documents {
    /// A copy of the types is made to change them.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Types {
    /// A type by its place in the URL.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Descriptor>> {
        // The key is made of owned text; three short strings per request are not worth a cleverer map.
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Every type, in the order in which they were added.
    pub fn all(&self) -> &[Arc<Descriptor>] {
        &self.ordered
    }

    /// A document about the types: `make` is called when nobody has asked for it before. What is not there is not kept.
    pub(crate) fn document(&self, name: &str, make: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        if let Some(known) = self.documents.0.lock().get(name) {
            return Some(known.clone());
        }
        // Not under the lock: a large document takes a while, and two of the same do no harm.
        let made = make()?;
        self.documents.0.lock().insert(name.to_owned(), made.clone());
        Some(made)
    }

    /// Whether a group has any type.
    pub fn has_group(&self, group: &str) -> bool {
        self.ordered.iter().any(|t| t.group == group)
    }

    /// Whether a version of a group has any type.
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

/// Everything that serves requests, without HTTP.
pub struct Registry {
    types: ArcSwap<Types>,
    changing_types: Mutex<()>,
    /// Held while definitions are brought up to date.
    settling: Mutex<()>,
    /// What is stored.
    pub storage: Arc<Storage>,
    /// The time.
    pub clock: SharedClock,
    /// Uids and name suffixes.
    pub random: Random,
    /// Schemas, patches and field ownership.
    pub semantics: Arc<dyn Semantics>,
    /// Admission.
    pub admission: Chain,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// Who asks.
    pub authenticator: crate::authn::Authenticator,
    /// Keys and issuer of `ServiceAccount` tokens.
    pub tokens: Arc<crate::authn::service_account::Issuer>,
    /// Cluster IPs and node ports.
    pub allocator: strategy::service::Allocator,
}

/// What a registry is made of.
pub struct Parts {
    /// What is stored.
    pub storage: Arc<Storage>,
    /// The time.
    pub clock: SharedClock,
    /// Uids and name suffixes.
    pub random: Random,
    /// Schemas, patches and field ownership.
    pub semantics: Arc<dyn Semantics>,
    /// Admission.
    pub admission: Chain,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// Who asks.
    pub authenticator: crate::authn::Authenticator,
    /// Keys and issuer of `ServiceAccount` tokens.
    pub tokens: Arc<crate::authn::service_account::Issuer>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("types", &self.types.load().ordered.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// A registry of the built-in types.
    pub fn new(parts: Parts) -> Self {
        let mut types = Types::default();
        for descriptor in builtin::descriptors() {
            types.add(descriptor);
        }
        Self {
            types: ArcSwap::from_pointee(types),
            changing_types: Mutex::new(()),
            settling: Mutex::new(()),
            storage: parts.storage,
            clock: parts.clock,
            random: parts.random,
            semantics: parts.semantics,
            admission: parts.admission,
            authorizer: parts.authorizer,
            authenticator: parts.authenticator,
            tokens: parts.tokens,
            allocator: strategy::service::Allocator::default(),
        }
    }

    /// What a registry of its own is made of that begins with a [fork](Storage::fork) of this one's objects.
    pub(crate) fn fork(&self, clock: SharedClock) -> Parts {
        Parts {
            storage: Arc::new(self.storage.fork()),
            clock,
            random: Random::from_seed(self.random.next()),
            semantics: Arc::clone(&self.semantics),
            admission: self.admission.clone(),
            authorizer: self.authorizer.fork(),
            authenticator: self.authenticator.clone(),
            tokens: Arc::clone(&self.tokens),
        }
    }

    /// The types that are served now.
    pub fn types(&self) -> Arc<Types> {
        self.types.load_full()
    }

    /// A type that is served now.
    pub fn resolve(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Descriptor>> {
        self.types.load().get(group, version, plural).cloned()
    }

    /// Serves a resource in these versions and no others; in none, it is served no longer and its watches end.
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

    /// The moment, as `metadata` writes it.
    pub fn now(&self) -> String {
        crate::clock::seconds(self.clock.now())
    }
}
