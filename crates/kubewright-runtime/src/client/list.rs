//! Lists of the cached client.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use http::Method;
use kube::{
    Resource,
    api::ListParams,
    core::{Expression, ObjectList, Selector},
};

use super::{ClientError, KindClient};
use kubewright_cache::{IndexRef, KindCache, Lazy, filter_by_labels};
use kubewright_core::Object;

/// List of objects; read when awaited.
///
/// From the cache it is a vector of handles that are decoded on access, in insertion order.
#[must_use = "a list does nothing until it is awaited"]
#[derive(Debug)]
pub struct List<K: Object> {
    kind: KindClient<K>,
    namespace: Option<String>,
    selector: Selector,
    by: By<K>,
}

/// What is looked up before namespace and labels are compared.
#[derive(Debug)]
enum By<K: Object> {
    All,
    Index { index: IndexRef<K>, value: String },
    Controller { uid: String },
    Orphans,
}

impl<K: Object> KindClient<K> {
    /// Starts a list; restrict it, then await it.
    pub fn list(&self) -> List<K> {
        List { kind: self.clone(), namespace: None, selector: Selector::default(), by: By::All }
    }
}

impl<K: Object> KindClient<K> {
    /// Lists one object from the server, to check that the kind can be listed.
    pub(crate) async fn probe(&self) -> Result<(), ClientError> {
        let params = ListParams::default().limit(1);
        let operation = format!("list {}", self.kind());
        self.request::<serde::de::IgnoredAny>(&operation, Method::GET, None, None, |request, _| {
            if K::metadata_api() { request.list_metadata(&params) } else { request.list(&params) }
        })
        .await?;
        Ok(())
    }
}

impl<K: Object> List<K> {
    /// Restricts the list to one namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Restricts the list to objects that have this label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.selector.extend([Expression::Equal(key.to_owned(), value.to_owned())]);
        self
    }

    /// Restricts the list to objects whose labels match.
    pub fn selector(mut self, selector: &Selector) -> Self {
        self.selector.extend(selector.clone());
        self
    }

    /// Restricts the list to objects with this value in an index: a declared [`FieldIndex`](kubewright_cache::FieldIndex), or one of
    /// this name. It replaces an earlier choice of index, [owner](Self::controlled_by) or [orphans](Self::orphans).
    pub fn by_index(mut self, index: impl Into<IndexRef<K>>, value: &str) -> Self {
        self.by = By::Index { index: index.into(), value: value.to_owned() };
        self
    }

    /// Only objects that this object controls.
    pub fn controlled_by(self, owner: &impl Resource) -> Self {
        self.controller_uid(owner.meta().uid.as_deref().unwrap_or_default())
    }

    /// Only objects that the object with this uid controls.
    pub fn controller_uid(mut self, uid: &str) -> Self {
        self.by = By::Controller { uid: uid.to_owned() };
        self
    }

    /// Only objects that no owner controls.
    pub fn orphans(mut self) -> Self {
        self.by = By::Orphans;
        self
    }

    async fn run(self) -> Result<Vec<Lazy<K>>, ClientError> {
        if self.kind.client.settings.live {
            return self.list_live().await;
        }
        let cache = self.kind.cache();
        let covered = match &self.namespace {
            Some(namespace) => cache.covers(Some(namespace)),
            None => true,
        };
        if !covered {
            let kind = self.kind.kind();
            return Err(ClientError::NotCached { kind, namespace: self.namespace });
        }
        self.kind.wait_synced(&cache).await?;
        if self.kind.wait_caught_up(&cache).await {
            return self.list_cached(&cache);
        }
        self.list_live().await
    }

    fn list_cached(&self, cache: &KindCache<K>) -> Result<Vec<Lazy<K>>, ClientError> {
        let namespace = self.namespace.as_deref();
        let mut objects = match (&self.by, namespace) {
            (By::All, Some(namespace)) => {
                return Ok(filter_by_labels(cache.in_namespace(namespace), &self.selector));
            }
            (By::Index { index, value }, _) => cache.by_index(index.clone(), value)?,
            (By::Controller { uid }, _) => cache.controlled_by(uid),
            (By::Orphans, Some(namespace)) => cache.orphans(Some(namespace)),
            (By::All | By::Orphans, None) => cache.list(),
        };
        if let Some(namespace) = namespace {
            objects.retain(|object| object.namespace() == Some(namespace));
        } else if matches!(self.by, By::Orphans) {
            objects.retain(|object| object.controller().is_none());
        }
        Ok(filter_by_labels(objects, &self.selector))
    }

    /// Whether an object that was not looked up in an index is among those that were asked for.
    fn is_meant(&self, object: &Lazy<K>) -> bool {
        match &self.by {
            By::All | By::Index { index: IndexRef::Named(_), .. } => true,
            By::Index { index: IndexRef::Declared(index), value } => index.holds(object, value),
            By::Controller { uid } => object.controller().is_some_and(|owner| owner.uid == uid),
            By::Orphans => object.controller().is_none(),
        }
    }

    async fn list_live(&self) -> Result<Vec<Lazy<K>>, ClientError> {
        let kind = &self.kind;
        if let By::Index { index: IndexRef::Named(index), .. } = &self.by {
            return Err(ClientError::IndexNeedsCache { kind: kind.kind(), index: index.clone() });
        }
        let operation = format!("list {}", kind.kind());
        let mut objects = Vec::new();
        let mut params = ListParams::default().labels_from(&self.selector).limit(500);
        loop {
            let page: ObjectList<K> = kind
                .request(&operation, Method::GET, None, self.namespace.as_deref(), |request, _| {
                    if K::metadata_api() { request.list_metadata(&params) } else { request.list(&params) }
                })
                .await?;
            for object in page.items {
                let object = Lazy::new(object, &kind.dyntype)?;
                if self.is_meant(&object) {
                    objects.push(object);
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }
}

impl<K: Object> IntoFuture for List<K> {
    type Output = Result<Vec<Lazy<K>>, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
