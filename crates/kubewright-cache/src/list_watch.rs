//! Asking the API server for a kind: all of it now, and every change from then on.
//!
//! [`ListWatch`] is the box nearest to the server. It reads response bodies frame by frame, cuts objects out of them
//! as they arrive, and makes [`Lazy`] objects of them; it decides nothing. What to do when a watch ends is the
//! business of the [`Reflector`](super::Reflector), which is what you usually want.

use std::{fmt, sync::Arc, time::Duration};

use kube::{Client, Resource};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    fault::{Fault, Faults},
    list::ListPage,
    object::Lazy,
    request::{Query, Target},
    wire::codec::{Codec, Form, Settings},
};
pub use super::{
    request::{Failure, ListWatchError},
    watch::{WatchEvent, WatchStream},
};

/// How to list and watch one kind.
///
/// For metadata only, ask for `PartialObjectMeta<K>`: the server then leaves the rest out. For a kind that is known
/// only at run time, use [`dynamic`](Self::dynamic) with its `ApiResource`.
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
    codec: Arc<Codec<K>>,
}

/// How one page of a list is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    pub(crate) resource_version: String,
    pub(crate) limit: Option<u32>,
    pub(crate) continue_token: Option<String>,
}

/// How a watch is asked for.
#[derive(Debug, Clone)]
pub(crate) struct WatchRequest {
    pub(crate) resource_version: String,
    pub(crate) timeout: Duration,
    pub(crate) send_initial_events: bool,
}

impl<K: Resource<DynamicType = ()>> ListWatch<K> {
    /// A kind with a Rust type, in all namespaces.
    pub fn new(client: Client) -> Self {
        Self::dynamic(client, ())
    }
}

impl<K: Resource> ListWatch<K> {
    /// A kind that is described at run time, in all namespaces.
    pub fn dynamic(client: Client, dyntype: K::DynamicType) -> Self {
        let settings = Settings::default();
        Self {
            codec: codec(&dyntype, &settings),
            client,
            dyntype,
            namespace: None,
            label_selector: None,
            field_selector: None,
            streaming: false,
            settings,
        }
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects whose labels match, in the notation of `kubectl get -l`.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.label_selector = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects whose fields match, in the notation of `kubectl get --field-selector`.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.field_selector = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Whether a [`Reflector`](super::Reflector) asks for the present state as a stream: client-go's `WatchList`. False by
    /// default; servers that refuse are asked for a list.
    ///
    /// A stream is at least as new as the moment it was asked for, where a list at version 0 is what the server has in
    /// memory, and it spares servers that put a list together before they send it (before Kubernetes 1.33). It costs the
    /// server twice the time, because every object is written by itself.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// How objects are kept.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.settings.form = form;
        self.rebuilt()
    }

    /// Keeps `metadata.managedFields`, which is dropped otherwise: it is nearly half of a typical object.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.settings.keep_managed_fields = true;
        self.rebuilt()
    }

    /// Changes every object before it is kept. This costs a decode and an encode per object.
    #[must_use]
    pub fn transform(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: DeserializeOwned + Serialize + 'static,
    {
        self.settings.transform(change);
        self.rebuilt()
    }

    /// Tells this function, instead of the log, what went wrong and was carried on from.
    #[must_use]
    pub fn on_fault(mut self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.settings.faults = Faults::to(handler);
        self.rebuilt()
    }

    /// What is asked for, as the path of its URL.
    pub fn path(&self) -> String {
        K::url_path(&self.dyntype, self.namespace.as_deref())
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.streaming
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.codec.faults()
    }

    fn rebuilt(mut self) -> Self {
        self.codec = codec(&self.dyntype, &self.settings);
        self
    }

    fn target(&self) -> Target {
        Target { client: self.client.clone(), path: self.path().into(), metadata_only: K::metadata_api() }
    }

    fn query(&self) -> Query {
        Query::default()
            .with("labelSelector", self.label_selector.clone())
            .with("fieldSelector", self.field_selector.clone())
    }
}

fn codec<K: Resource>(dyntype: &K::DynamicType, settings: &Settings) -> Arc<Codec<K>> {
    let (api_version, kind) = if K::metadata_api() {
        ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned())
    } else {
        (K::api_version(dyntype).into_owned(), K::kind(dyntype).into_owned())
    };
    Arc::new(Codec::new(api_version, kind, settings.clone()))
}

impl<K: Resource + DeserializeOwned> ListWatch<K> {
    /// All objects as of now, and the version from which a watch goes on.
    pub async fn list(&self) -> Result<(Vec<Lazy<K>>, String), ListWatchError> {
        let mut objects = Vec::new();
        let mut page = self.list_page(&ListRequest::default()).await?;
        while let Some(some) = page.next(&|_| None).await? {
            objects.extend(some);
        }
        Ok((objects, page.into_meta().resource_version))
    }

    /// Every change after this version, until the server ends the watch.
    pub async fn watch(&self, resource_version: &str) -> Result<WatchStream<K>, ListWatchError> {
        let request = WatchRequest {
            resource_version: resource_version.to_owned(),
            timeout: Duration::ZERO,
            send_initial_events: false,
        };
        self.open_watch(&request).await
    }

    pub(crate) async fn list_page(&self, request: &ListRequest) -> Result<ListPage<K>, ListWatchError> {
        let target = self.target();
        // A continue token carries its version with it; servers refuse both at once.
        let version = Some(request.resource_version.clone())
            .filter(|version| !version.is_empty() && request.continue_token.is_none());
        let query = self
            .query()
            .with("limit", request.limit.map(|limit| limit.to_string()))
            .with("continue", request.continue_token.clone())
            .with("resourceVersion", version);
        let body = target.send("list", &query).await?;
        Ok(ListPage::new(target, Arc::clone(&self.codec), body))
    }

    pub(crate) async fn open_watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, ListWatchError> {
        let target = self.target();
        let initial = request.send_initial_events;
        let query = self
            .query()
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
        let body = target.send("watch", &query).await?;
        Ok(WatchStream::new(target, Arc::clone(&self.codec), body))
    }

    pub(crate) fn silent(&self, operation: &'static str, after: Duration) -> ListWatchError {
        self.target().failed(operation, Failure::Silent(after))
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
