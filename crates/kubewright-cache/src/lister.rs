//! Reading a cache the way `kubectl get` reads a server: by namespace, by name, by labels.

use kube::core::{Expression, Selector};

use super::{index::NAMESPACE_INDEX, object::Lazy, store::Indexer};
use kubewright_core::ObjectKey;

/// Lists of one kind out of a cache.
///
/// ```
/// use kubewright::cache::{IndexFn, Indexer, Lazy, Lister};
/// use kubewright::k8s_openapi::api::core::v1::Pod;
/// use kubewright::kube::core::{Expression, Selector};
///
/// let store = Indexer::<Pod>::keyed();
/// store.add_index(IndexFn::namespace())?;
/// for (namespace, name, app) in [("a", "one", "web"), ("a", "two", "db"), ("b", "three", "web")] {
///     store.add(Lazy::new(serde_json::from_value(serde_json::json!({
///         "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}
///     }))?, &())?)?;
/// }
/// let pods = Lister::new(store);
/// let web: Selector = Expression::Equal("app".into(), "web".into()).into();
/// assert_eq!(pods.list(&web).len(), 2);
/// assert_eq!(pods.namespace("a").list(&web)[0].name(), "one");
/// assert!(pods.namespace("b").get("two").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lister<K> {
    store: Indexer<K>,
}

/// Lists of one kind in one namespace.
#[derive(Debug)]
pub struct NamespaceLister<K> {
    store: Indexer<K>,
    namespace: String,
}

impl<K: 'static> Lister<K> {
    /// Lists out of this cache. Lists of a namespace are quick when it has the [namespace index](NAMESPACE_INDEX),
    /// as those of informers have.
    pub fn new(store: Indexer<K>) -> Self {
        Self { store }
    }

    /// All objects whose labels match. `Selector::default()` matches all.
    pub fn list(&self, selector: &Selector) -> Vec<Lazy<K>> {
        matching(self.store.list(), selector)
    }

    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Lazy<K>> {
        self.store.get_by_key(key)
    }

    /// The same within one namespace.
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister { store: self.store.clone(), namespace: namespace.into() }
    }
}

impl<K: 'static> NamespaceLister<K> {
    /// All objects of the namespace whose labels match.
    pub fn list(&self, selector: &Selector) -> Vec<Lazy<K>> {
        let objects = self.store.by_index(NAMESPACE_INDEX, &self.namespace).unwrap_or_else(|_| {
            let mut objects = self.store.list();
            objects.retain(|object| object.namespace() == Some(&*self.namespace));
            objects
        });
        matching(objects, selector)
    }

    /// The object with this name.
    pub fn get(&self, name: &str) -> Option<Lazy<K>> {
        self.store.get_by_key(&ObjectKey::namespaced(&self.namespace, name))
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), namespace: self.namespace.clone() }
    }
}

/// Keeps the objects whose labels match.
pub fn matching<K>(mut objects: Vec<Lazy<K>>, selector: &Selector) -> Vec<Lazy<K>> {
    let expressions: Vec<Expression> = selector.clone().into_iter().collect();
    if !expressions.is_empty() {
        objects.retain(|object| expressions.iter().all(|expression| matches(object, expression)));
    }
    objects
}

/// As the API server matches labels; kube's own matching wants a map, which cached objects do not have.
pub fn matches<K>(object: &Lazy<K>, expression: &Expression) -> bool {
    match expression {
        Expression::In(key, values) => object.label(key).is_some_and(|value| values.contains(value)),
        Expression::NotIn(key, values) => !object.label(key).is_some_and(|value| values.contains(value)),
        Expression::Equal(key, value) => object.label(key) == Some(value),
        Expression::NotEqual(key, value) => object.label(key) != Some(value),
        Expression::Exists(key) => object.label(key).is_some(),
        Expression::DoesNotExist(key) => object.label(key).is_none(),
    }
}
