//! Deleting one object, or many.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use http::Method;
use kube::{
    api::{DeleteParams, ListParams, Preconditions, PropagationPolicy},
    core::{Expression, Selector},
};

use super::{
    ClientError, KindClient,
    kind_client::{PartialMeta, PartialResponse},
};
use kubewright_cache::{RecordedDeletion, filter_by_labels};
use kubewright_client::ApiStatus;
use kubewright_core::{Object, ObjectKey};

/// Deletion of one object; sent when awaited.
///
/// Deletes the object with the given uid and not a later one of the same name. An object that is already gone
/// is a success. An object with finalizers stays until they are removed; with
/// [`foreground`](Self::foreground) it stays until its dependents are gone.
#[must_use = "a deletion does nothing until it is awaited"]
#[derive(Debug)]
pub struct Delete<K: Object> {
    kind: KindClient<K>,
    object: K,
    params: DeleteParams,
}

impl<K: Object> KindClient<K> {
    /// Deletes this object, and not a later one of the same name. An object that is already gone is a
    /// success.
    pub fn delete(&self, object: &K) -> Delete<K> {
        let dry_run = self.client.settings.dry_run;
        let params = DeleteParams { dry_run, ..DeleteParams::default() };
        Delete { kind: self.clone(), object: object.clone(), params }
    }

    /// Starts the deletion of many objects; restrict it, then await it.
    pub fn delete_all(&self) -> DeleteAll<K> {
        DeleteAll { kind: self.clone(), namespace: None, selector: Selector::default() }
    }
}

impl<K: Object> Delete<K> {
    /// Deletes the dependents first, then the object.
    pub fn foreground(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Foreground);
        self
    }

    /// Deletes the object first, then its dependents.
    pub fn background(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Background);
        self
    }

    /// Keeps the dependents.
    pub fn orphan(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Orphan);
        self
    }

    /// Sets the grace period in seconds, for kinds that have one.
    pub fn grace_seconds(mut self, seconds: u32) -> Self {
        self.params.grace_period_seconds = Some(seconds);
        self
    }

    /// Fails with a conflict if the object has changed since it was read.
    pub fn if_unchanged(mut self) -> Self {
        let version = self.object.meta().resource_version.clone();
        self.params.preconditions.get_or_insert_default().resource_version = version;
        self
    }

    async fn send(mut self) -> Result<(), ClientError> {
        let kind = &self.kind;
        let key = kind.key(&self.object)?;
        let meta = self.object.meta();
        let (uid, read) = (meta.uid.clone(), meta.resource_version.clone());
        if let Some(uid) = &uid {
            let preconditions: &mut Preconditions = self.params.preconditions.get_or_insert_default();
            preconditions.uid = Some(uid.clone());
        }
        let versioned =
            self.params.preconditions.as_ref().is_some_and(|these| these.resource_version.is_some());
        let operation = kind.operation("delete", &key, None);
        let params = &self.params;
        let response = kind
            .request::<PartialResponse>(
                &operation,
                Method::DELETE,
                Some(&key),
                key.namespace(),
                |request, name| request.delete(name, params),
            )
            .await;
        match response {
            Ok(response) => {
                record_deletion(kind, &key, response, uid, read.as_deref());
                Ok(())
            }
            // A uid conflict means that the object to delete is already gone.
            Err(error) if error.is_not_found() || (error.is_conflict() && uid.is_some() && !versioned) => {
                kind.record_write(&key, read.as_deref(), uid.map(deletion).as_ref());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Records the deletion: cached reads then see the object terminating, or not at all.
fn record_deletion<K: Object>(
    kind: &KindClient<K>,
    key: &ObjectKey,
    response: PartialResponse,
    uid: Option<String>,
    read: Option<&str>,
) {
    let PartialMeta { uid: response_uid, resource_version, deletion_timestamp } =
        response.metadata.filter(|_| response.kind.as_deref() != Some("Status")).unwrap_or_default();
    if deletion_timestamp.is_some() {
        kind.record_write(key, resource_version.as_deref(), None);
    } else {
        let uid = response_uid.or_else(|| response.details.and_then(|details| details.uid)).or(uid);
        kind.record_write(key, read, uid.map(deletion).as_ref());
    }
}

fn deletion(uid: String) -> RecordedDeletion {
    RecordedDeletion { uid, removed: false }
}

impl<K: Object> IntoFuture for Delete<K> {
    type Output = Result<(), ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Deletion of many objects; sent when awaited.
#[must_use = "a deletion does nothing until it is awaited"]
#[derive(Debug)]
pub struct DeleteAll<K: Object> {
    kind: KindClient<K>,
    namespace: Option<String>,
    selector: Selector,
}

impl<K: Object> DeleteAll<K> {
    /// Restricts the deletion to one namespace. Required for namespaced kinds.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Restricts the deletion to objects that have this label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.selector.extend([Expression::Equal(key.to_owned(), value.to_owned())]);
        self
    }

    /// Restricts the deletion to objects whose labels match.
    pub fn selector(mut self, selector: &Selector) -> Self {
        self.selector.extend(selector.clone());
        self
    }

    async fn send(self) -> Result<(), ClientError> {
        let kind = &self.kind;
        let operation = match &self.namespace {
            Some(namespace) => format!("delete all {} in {namespace}", kind.kind()),
            None => format!("delete all {}", kind.kind()),
        };
        let delete = DeleteParams { dry_run: kind.client.settings.dry_run, ..DeleteParams::default() };
        let list = ListParams::default().labels_from(&self.selector);
        kind.request::<serde::de::IgnoredAny>(
            &operation,
            Method::DELETE,
            None,
            self.namespace.as_deref(),
            |request, _| request.delete_collection(&delete, &list),
        )
        .await?;
        let cache = kind.cache();
        let held = match &self.namespace {
            Some(namespace) => cache.in_namespace(namespace),
            None => cache.list(),
        };
        for object in filter_by_labels(held, &self.selector) {
            kind.record_write(object.key(), None, Some(&deletion(object.uid().to_owned())));
        }
        Ok(())
    }
}

impl<K: Object> IntoFuture for DeleteAll<K> {
    type Output = Result<(), ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
