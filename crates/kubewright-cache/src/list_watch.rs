//! List and watch requests of one kind.
//!
//! [`ListWatch`] is the component nearest to the server. It reads response bodies frame by frame, splits them
//! into objects as they arrive, and makes [`Lazy`] objects of them. It has no policy: the
//! [`Reflector`](super::Reflector), which most programs use, decides what to do when a watch ends.

use std::{fmt, sync::Arc, time::Duration};

use kube::{Client, Resource};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    fault::{Fault, Faults},
    list::ListPage,
    object::Lazy,
    request::{Query, Target},
    watch::EventStream,
    wire::codec::{Codec, Form, Settings},
};
pub use super::{
    request::{ListWatchError, ListWatchErrorKind},
    watch::{WatchEvent, WatchStream},
};

/// Lists and watches one kind.
///
/// For metadata only, use `PartialObjectMeta<K>`: the server then leaves the rest out. For a kind that is
/// known only at run time, use [`dynamic`](Self::dynamic) with its `ApiResource`.
///
/// ```no_run
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::{cache::ListWatch, k8s_openapi::api::core::v1::ConfigMap};
///
/// let maps = ListWatch::<ConfigMap>::new(client).namespace("tmp");
/// let (objects, version) = maps.list().await?;
/// for map in &objects {
///     println!("{}", map.name());
/// }
/// let mut changes = maps.watch(&version).await?;
/// while let Some(event) = changes.next().await {
///     println!("{:?}", event?);
/// }
/// # Ok(()) }
/// ```
pub struct ListWatch<K: Resource> {
    client: Client,
    dyntype: K::DynamicType,
    namespace: Option<String>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    streaming: bool,
    settings: Settings,
    codec: Arc<Codec>,
}

/// What a [`ListWatch`] asks for, whatever kind it is of.
pub(crate) struct ListerWatcher {
    target: Target,
    query: Query,
    pub(super) streaming: bool,
    codec: Arc<Codec>,
}

/// Parameters of one page of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    pub(crate) resource_version: String,
    pub(crate) limit: Option<u32>,
    pub(crate) continue_token: Option<String>,
}

/// Parameters of a watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchRequest {
    pub(crate) resource_version: String,
    pub(crate) timeout: Duration,
    pub(crate) send_initial_events: bool,
}

impl<K: Resource<DynamicType = ()>> ListWatch<K> {
    /// Creates a list-watch of a kind with a Rust type, in all namespaces.
    pub fn new(client: Client) -> Self {
        Self::dynamic(client, ())
    }
}

impl<K: Resource> ListWatch<K> {
    /// Creates a list-watch of a kind that is known only at run time, in all namespaces.
    pub fn dynamic(client: Client, dyntype: K::DynamicType) -> Self {
        let settings = Settings::default();
        Self {
            codec: codec::<K>(&dyntype, &settings),
            client,
            dyntype,
            namespace: None,
            label_selector: None,
            field_selector: None,
            streaming: false,
            settings,
        }
    }

    /// Restricts it to one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Restricts it to objects whose labels match, in the syntax of `kubectl get -l`.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.label_selector = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Restricts it to objects whose fields match, in the syntax of `kubectl get --field-selector`.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.field_selector = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Sets whether a [`Reflector`](super::Reflector) reads the initial state as a stream: client-go's
    /// `WatchList`. False by default; falls back to a list if the server rejects it.
    ///
    /// A stream is at least as new as the request, whereas a list at version 0 comes from the server's watch
    /// cache, and it saves memory on servers that assemble a list before sending it (before Kubernetes 1.33).
    /// It costs the server twice the time, because every object is serialised by itself.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Sets the storage form of objects.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        self.settings.form::<K>(form);
        self.rebuilt()
    }

    /// Keeps `metadata.managedFields`, which is dropped by default: it is nearly half of a typical object.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.settings.keep_managed_fields = true;
        self.rebuilt()
    }

    /// Transforms every object before it is stored. This costs a decode and an encode per object.
    #[must_use]
    pub fn transform(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: DeserializeOwned + Serialize + 'static,
    {
        self.settings.transform(change);
        self.rebuilt()
    }

    /// Sets the handler of faults; the default logs them.
    #[must_use]
    pub fn on_fault(mut self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.settings.faults = Faults::new(handler);
        self.rebuilt()
    }

    /// Returns the path of the URL.
    pub fn path(&self) -> String {
        K::url_path(&self.dyntype, self.namespace.as_deref())
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.codec.faults()
    }

    fn lister_watcher(&self) -> ListerWatcher {
        let target = Target {
            client: self.client.clone(),
            path: self.path().into(),
            metadata_only: K::metadata_api(),
        };
        let query = Query::default()
            .with("labelSelector", self.label_selector.clone())
            .with("fieldSelector", self.field_selector.clone());
        ListerWatcher { target, query, streaming: self.streaming, codec: Arc::clone(&self.codec) }
    }

    pub(crate) fn into_lister_watcher(self) -> ListerWatcher {
        self.lister_watcher()
    }

    fn rebuilt(mut self) -> Self {
        self.codec = codec::<K>(&self.dyntype, &self.settings);
        self
    }
}

fn codec<K: Resource>(dyntype: &K::DynamicType, settings: &Settings) -> Arc<Codec> {
    let (api_version, kind) = if K::metadata_api() {
        ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned())
    } else {
        (K::api_version(dyntype).into_owned(), K::kind(dyntype).into_owned())
    };
    Arc::new(Codec::new(api_version, kind, settings.clone()))
}

impl<K: Resource> ListWatch<K> {
    /// Returns all objects, and the version to watch from.
    pub async fn list(&self) -> Result<(Vec<Lazy<K>>, String), ListWatchError> {
        let mut objects = Vec::new();
        let mut page = self.lister_watcher().list_page(&ListRequest::default()).await?;
        while let Some(some) = page.next(&|_| None).await? {
            objects.extend(some.into_iter().map(Lazy::cast));
        }
        Ok((objects, page.into_meta().resource_version))
    }

    /// Watches the changes after this version, until the server ends the watch.
    pub async fn watch(&self, resource_version: &str) -> Result<WatchStream<K>, ListWatchError> {
        let request = WatchRequest {
            resource_version: resource_version.to_owned(),
            timeout: Duration::ZERO,
            send_initial_events: false,
        };
        self.lister_watcher().open_watch(&request).await.map(WatchStream::new)
    }
}

impl ListerWatcher {
    pub(crate) fn faults(&self) -> &Faults {
        self.codec.faults()
    }

    pub(crate) async fn list_page(&self, request: &ListRequest) -> Result<ListPage, ListWatchError> {
        // A continue token implies its version; servers reject both at once.
        let version = Some(request.resource_version.clone())
            .filter(|version| !version.is_empty() && request.continue_token.is_none());
        let query = self
            .query
            .clone()
            .with("limit", request.limit.map(|limit| limit.to_string()))
            .with("continue", request.continue_token.clone())
            .with("resourceVersion", version);
        let body = self.target.send("list", &query).await?;
        Ok(ListPage::new(self.target.clone(), Arc::clone(&self.codec), body))
    }

    pub(crate) async fn open_watch(&self, request: &WatchRequest) -> Result<EventStream, ListWatchError> {
        let initial = request.send_initial_events;
        let query = self
            .query
            .clone()
            .with("watch", "true".to_owned())
            .with("allowWatchBookmarks", "true".to_owned())
            .with(
                "resourceVersion",
                Some(request.resource_version.clone()).filter(|version| !version.is_empty()),
            )
            .with("sendInitialEvents", initial.then(|| "true".to_owned()))
            .with("resourceVersionMatch", initial.then(|| "NotOlderThan".to_owned()))
            .with(
                "timeoutSeconds",
                Some(request.timeout.as_secs())
                    .filter(|seconds| *seconds > 0)
                    .map(|seconds| seconds.to_string()),
            );
        let body = self.target.send("watch", &query).await?;
        Ok(EventStream::new(self.target.clone(), Arc::clone(&self.codec), body))
    }

    pub(crate) fn timed_out(&self, operation: &'static str, after: Duration) -> ListWatchError {
        self.target.failed(operation, ListWatchErrorKind::Timeout(after))
    }
}

impl<K: Resource<DynamicType: Clone>> Clone for ListWatch<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            dyntype: self.dyntype.clone(),
            namespace: self.namespace.clone(),
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            streaming: self.streaming,
            settings: self.settings.clone(),
            codec: Arc::clone(&self.codec),
        }
    }
}

impl<K: Resource> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("path", &self.path())
            .field("labels", &self.label_selector)
            .field("fields", &self.field_selector)
            .finish_non_exhaustive()
    }
}
