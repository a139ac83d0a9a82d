//! Reading many objects.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use http::Method;
use kube::{
    api::ListParams,
    core::{Expression, ObjectList, Selector},
};

use super::{ClientError, KindClient};
use kubewright_cache::{KindCache, Lazy, matching};
use kubewright_core::Object;

/// A list of objects that is being narrowed down; await it to get them.
///
/// From the cache it is a vector of handles: no object is decoded until it is looked into. In the cache's order, which is
/// that of arrival.
#[must_use = "a list does nothing until it is awaited"]
#[derive(Debug)]
pub struct List<K: Object> {
    kind: KindClient<K>,
    namespace: Option<String>,
    selector: Selector,
    index: Option<(String, String)>,
}

impl<K: Object> KindClient<K> {
    /// Many objects: narrow it down, then await it.
    pub fn list(&self) -> List<K> {
        List { kind: self.clone(), namespace: None, selector: Selector::default(), index: None }
    }
}

impl<K: Object> KindClient<K> {
    /// Asks the server for a list of one object, to learn whether it would answer.
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
    /// Only this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only objects that have this label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.selector.extend([Expression::Equal(key.to_owned(), value.to_owned())]);
        self
    }

    /// Only objects whose labels match.
    pub fn selector(mut self, selector: &Selector) -> Self {
        self.selector.extend(selector.clone());
        self
    }

    /// Only objects that have this value in an index of the cache.
    pub fn by_index(mut self, index: &str, value: &str) -> Self {
        self.index = Some((index.to_owned(), value.to_owned()));
        self
    }

    async fn read(self) -> Result<Vec<Lazy<K>>, ClientError> {
        if self.kind.client.settings.live {
            return self.served().await;
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
        self.kind.synced(&cache).await?;
        if self.kind.caught_up(&cache).await {
            return self.cached(&cache);
        }
        self.served().await
    }

    fn cached(&self, cache: &KindCache<K>) -> Result<Vec<Lazy<K>>, ClientError> {
        let objects = match (&self.index, &self.namespace) {
            (Some((index, value)), namespace) => {
                let mut objects = cache.by_index(index, value)?;
                if let Some(namespace) = namespace {
                    objects.retain(|object| object.namespace() == Some(namespace));
                }
                objects
            }
            (None, Some(namespace)) => cache.in_namespace(namespace),
            (None, None) => cache.list(),
        };
        Ok(matching(objects, &self.selector))
    }

    async fn served(&self) -> Result<Vec<Lazy<K>>, ClientError> {
        let kind = &self.kind;
        if let Some((index, _)) = &self.index {
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
                objects.push(Lazy::new(object, &kind.dyntype)?);
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
        Box::pin(self.read())
    }
}
