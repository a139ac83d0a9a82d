//! Indexes that are declared once, as statics, and looked up by that declaration.

use std::fmt;

use super::{
    index::{IndexFn, IndexValues},
    object::{DecodeError, Lazy},
};

/// Index of a kind, declared as a `static`: controller-runtime's `IndexField` with the name and the function in one place.
///
/// The declaration is the handle: controllers declare it (`ControllerBuilder::index`), and lists (`List::by_index`) and
/// watches (`Watch::by_index`) look values up by it. A lookup adds the index to a cache that does not have it yet, so
/// none can be forgotten or misspelt.
///
/// ```
/// use kubewright::cache::FieldIndex;
/// use kubewright::k8s_openapi::api::core::v1::Pod;
///
/// static PODS_BY_NODE: FieldIndex<Pod> = FieldIndex::new("spec.nodeName", |pod, values| {
///     values.extend(pod.load()?.spec.iter().filter_map(|spec| spec.node_name.as_deref()));
///     Ok(())
/// });
/// # let _ = &PODS_BY_NODE;
/// ```
///
/// # Pitfalls
/// - Two indexes of one kind need two names.
/// - The function runs on every change of an object. Prefer the metadata of [`Lazy`] over [`Lazy::load`], which decodes.
pub struct FieldIndex<K> {
    name: &'static str,
    function: fn(&Lazy<K>, &mut IndexValues) -> Result<(), DecodeError>,
}

impl<K> FieldIndex<K> {
    /// Index of this name by the values that `function` extracts from an object.
    pub const fn new(
        name: &'static str,
        function: fn(&Lazy<K>, &mut IndexValues) -> Result<(), DecodeError>,
    ) -> Self {
        Self { name, function }
    }

    /// The name, as errors show it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether an object has this value.
    pub fn holds(&self, object: &Lazy<K>, value: &str) -> bool {
        let mut values = IndexValues::default();
        (self.function)(object, &mut values).is_ok() && values.iter().any(|held| held == value)
    }
}

impl<K: 'static> FieldIndex<K> {
    pub(super) fn index_fn(&self) -> IndexFn<Lazy<K>> {
        let function = self.function;
        IndexFn::with_values(self.name, move |object, values| {
            function(object, values).map_err(|error| error.to_string())
        })
    }
}

impl<K> fmt::Debug for FieldIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldIndex({:?})", self.name)
    }
}

/// Index that a lookup names: a declared [`FieldIndex`], or the name of one that was added as an [`IndexFn`].
pub enum IndexRef<K: 'static> {
    /// Declared index. It is added to a cache that does not have it.
    Declared(&'static FieldIndex<K>),
    /// Name of an index that the cache must have.
    Named(String),
}

impl<K> IndexRef<K> {
    /// The name of the index.
    pub fn name(&self) -> &str {
        match self {
            Self::Declared(index) => index.name,
            Self::Named(name) => name,
        }
    }
}

impl<K> From<&'static FieldIndex<K>> for IndexRef<K> {
    fn from(index: &'static FieldIndex<K>) -> Self {
        Self::Declared(index)
    }
}

impl<K> From<&str> for IndexRef<K> {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl<K> Clone for IndexRef<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Declared(index) => Self::Declared(index),
            Self::Named(name) => Self::Named(name.clone()),
        }
    }
}

impl<K> fmt::Debug for IndexRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexRef({:?})", self.name())
    }
}
