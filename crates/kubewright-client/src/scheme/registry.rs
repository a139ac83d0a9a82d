//! The scheme itself: kind ↔ type, and what can be done with a type.

use std::{
    any::TypeId,
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use indexmap::IndexMap;
use kube::core::{GroupVersionKind, Version};

use super::{
    Decoder, Objects, SchemeBuilder,
    convert::{Conversions, ConvertError},
    decode::typed,
    decoded::{Body, Decoded},
    object::{Registered, name_of},
};

/// The types of a program and what is known about them. It does not change once built; a clone is a handle to the
/// same scheme.
#[derive(Clone)]
pub struct Scheme {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) kinds: IndexMap<GroupVersionKind, Registered>,
    pub(super) by_type: HashMap<TypeId, usize>,
    pub(super) conversions: Conversions,
}

impl Scheme {
    /// Begins an empty scheme.
    pub fn builder() -> SchemeBuilder {
        SchemeBuilder::default()
    }

    /// The kind of a registered type.
    pub fn gvk_of<K: 'static>(&self) -> Option<&GroupVersionKind> {
        self.gvk_of_type(TypeId::of::<K>())
    }

    /// The kind of a registered type that is known by its id.
    pub fn gvk_of_type(&self, id: TypeId) -> Option<&GroupVersionKind> {
        self.by_type(id).map(|registered| &registered.gvk)
    }

    /// The type that stands for a kind.
    pub fn type_of(&self, gvk: &GroupVersionKind) -> Option<TypeId> {
        self.registered(gvk).map(|registered| registered.id)
    }

    /// Whether a type is registered.
    pub fn knows<K: 'static>(&self) -> bool {
        self.inner.by_type.contains_key(&TypeId::of::<K>())
    }

    /// All API groups with a registered kind, in alphabetical order; the core group is the empty one.
    pub fn groups(&self) -> Vec<&str> {
        let groups: BTreeSet<_> = self.inner.kinds.keys().map(|gvk| gvk.group.as_str()).collect();
        groups.into_iter().collect()
    }

    /// The versions of a group, the preferred one first: stable before beta before alpha, newer before older.
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let versions: BTreeSet<_> = self
            .inner
            .kinds
            .keys()
            .filter(|gvk| gvk.group == group)
            .map(|gvk| gvk.version.as_str())
            .collect();
        by_preference(versions, |version| version)
    }

    /// The kinds of a group in alphabetical order, each in its versions, the preferred one first.
    pub fn kinds(&self, group: &str) -> Vec<&GroupVersionKind> {
        let mut kinds =
            by_preference(self.inner.kinds.keys().filter(|gvk| gvk.group == group), |gvk| &gvk.version);
        kinds.sort_by(|one, other| one.kind.cmp(&other.kind));
        kinds
    }

    /// A kind in its preferred version.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&GroupVersionKind> {
        self.kinds(group).into_iter().find(|gvk| gvk.kind == kind)
    }

    /// Runs the defaulting functions of the object's type, in the order in which they were added.
    pub fn default_object<K: 'static>(&self, object: &mut K) {
        if let Some(registered) = self.by_type(TypeId::of::<K>()) {
            registered.apply_defaults(object);
        }
    }

    /// Converts an object to another type: itself if the types are the same, otherwise directly or over a hub.
    ///
    /// See [`SchemeBuilder::convert`] for an example. No defaults are applied.
    pub fn convert<A, B>(&self, object: &A) -> Result<B, ConvertError>
    where
        A: Clone + Send + Sync + 'static,
        B: 'static,
    {
        self.inner.conversions.convert(object)
    }

    /// Converts an object to the same kind in another `apiVersion`, as a conversion webhook does.
    ///
    /// An unstructured object is given its type first, so its kind must be registered too; convert a
    /// [`DynamicObject`](kube::core::DynamicObject) with `scheme.convert_object(object.into(), "group/version")` and
    /// [`Decoded::to_unstructured`]. An object that has the version already comes back as it is.
    pub fn convert_object(&self, object: Decoded, api_version: &str) -> Result<Decoded, ConvertError> {
        if object.gvk().api_version() == api_version {
            return Ok(object);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let target = GroupVersionKind::gvk(group, version, &object.gvk().kind);
        let unregistered = |gvk: &GroupVersionKind| ConvertError::Unregistered {
            gvk: name_of(gvk),
            registered: self.other_versions(gvk),
        };
        let to = self.registered(&target).ok_or_else(|| unregistered(&target))?;
        let from = self.registered(object.gvk()).ok_or_else(|| unregistered(object.gvk()))?;

        let described = object.describe();
        let (body, location) = object.into_parts();
        let typed =
            match body {
                Body::Typed(object) => object,
                Body::Unstructured(object) => typed(from, &object).map_err(|problem| {
                    ConvertError::Misfit { object: described, type_name: from.name, problem }
                })?,
            };
        let made = self.inner.conversions.run(&*typed, from.type_name(), to.type_name())?;
        Ok(Decoded::new(target, Body::Typed(to.adopt(made)), location, Vec::new()))
    }

    /// A decoder for YAML and JSON with settings of its own.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.clone())
    }

    /// The objects of a YAML or JSON text, strictly: `scheme.decoder().decode(input)`.
    pub fn decode<'i>(&self, input: &'i (impl AsRef<[u8]> + ?Sized)) -> Objects<'i> {
        self.decoder().decode(input)
    }

    pub(super) fn registered(&self, gvk: &GroupVersionKind) -> Option<&Registered> {
        self.inner.kinds.get(gvk)
    }

    fn by_type(&self, id: TypeId) -> Option<&Registered> {
        let index = *self.inner.by_type.get(&id)?;
        self.inner.kinds.get_index(index).map(|(_, registered)| registered)
    }

    /// The apiVersions in which a kind is registered, for messages about the one in which it is not. A kind that
    /// moved to another group counts.
    pub(super) fn other_versions(&self, gvk: &GroupVersionKind) -> Vec<String> {
        let mut versions: Vec<_> = self
            .inner
            .kinds
            .keys()
            .filter(|other| other.kind == gvk.kind)
            .map(GroupVersionKind::api_version)
            .collect();
        versions.sort();
        versions
    }
}

/// Sorts by version priority as Kubernetes does.
fn by_preference<T>(items: impl IntoIterator<Item = T>, version: impl Fn(&T) -> &str) -> Vec<T> {
    let mut items: Vec<_> = items.into_iter().collect();
    items.sort_by_cached_key(|item| Reverse(Version::parse(version(item)).priority()));
    items
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.inner.kinds.keys().map(name_of)).finish()
    }
}
