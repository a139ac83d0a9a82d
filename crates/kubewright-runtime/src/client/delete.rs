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
    kind_client::{Answer, AnswerMeta},
};
use kubewright_cache::{Gone, matching};
use kubewright_client::Refusal;
use kubewright_core::{Object, ObjectKey};

/// The deletion of one object; await it to have it done.
///
/// It deletes the object in hand and not a later one of the same name. That it is gone already is a success. An object
/// with finalizers stays until they are done; so may one of its dependents, see [`foreground`](Self::foreground).
#[must_use = "a deletion does nothing until it is awaited"]
#[derive(Debug)]
pub struct Delete<K: Object> {
    kind: KindClient<K>,
    object: K,
    params: DeleteParams,
}

impl<K: Object> KindClient<K> {
    /// Deletes this object, and not a later one of the same name. That it is gone already is a success.
    pub fn delete(&self, object: &K) -> Delete<K> {
        let dry_run = self.client.settings.dry_run;
        let params = DeleteParams { dry_run, ..DeleteParams::default() };
        Delete { kind: self.clone(), object: object.clone(), params }
    }

    /// Deletes many objects: narrow it down, then await it.
    pub fn delete_all(&self) -> DeleteAll<K> {
        DeleteAll { kind: self.clone(), namespace: None, selector: Selector::default() }
    }
}

impl<K: Object> Delete<K> {
    /// The object goes when its dependents are gone.
    pub fn foreground(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Foreground);
        self
    }

    /// The dependents follow the object.
    pub fn background(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Background);
        self
    }

    /// The dependents stay.
    pub fn orphan(mut self) -> Self {
        self.params.propagation_policy = Some(PropagationPolicy::Orphan);
        self
    }

    /// How many seconds the object may take to end, where its kind knows of that.
    pub fn grace_seconds(mut self, seconds: u32) -> Self {
        self.params.grace_period_seconds = Some(seconds);
        self
    }

    /// Refused as a conflict if the object has changed since it was read.
    pub fn unchanged(mut self) -> Self {
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
        let locked = self.params.preconditions.as_ref().is_some_and(|these| these.resource_version.is_some());
        let operation = kind.operation("delete", &key, None);
        let params = &self.params;
        let answer = kind
            .request::<Answer>(&operation, Method::DELETE, Some(&key), key.namespace(), |request, name| {
                request.delete(name, params)
            })
            .await;
        match answer {
            Ok(answer) => {
                note(kind, &key, answer, uid, read.as_deref());
                Ok(())
            }
            // A conflict over the identity says that the one we meant is gone.
            Err(error) if error.is_not_found() || (error.is_conflict() && uid.is_some() && !locked) => {
                kind.note(&key, read.as_deref(), uid.map(going).as_ref());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The cache must see either the object on its way out, or no more of it.
fn note<K: Object>(
    kind: &KindClient<K>,
    key: &ObjectKey,
    answer: Answer,
    uid: Option<String>,
    read: Option<&str>,
) {
    let AnswerMeta { uid: answered, resource_version, deletion_timestamp } =
        answer.metadata.filter(|_| answer.kind.as_deref() != Some("Status")).unwrap_or_default();
    if deletion_timestamp.is_some() {
        kind.note(key, resource_version.as_deref(), None);
    } else {
        let uid = answered.or_else(|| answer.details.and_then(|details| details.uid)).or(uid);
        kind.note(key, read, uid.map(going).as_ref());
    }
}

fn going(uid: String) -> Gone {
    Gone { uid, for_good: false }
}

impl<K: Object> IntoFuture for Delete<K> {
    type Output = Result<(), ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The deletion of many objects that is being narrowed down; await it to have it done.
#[must_use = "a deletion does nothing until it is awaited"]
#[derive(Debug)]
pub struct DeleteAll<K: Object> {
    kind: KindClient<K>,
    namespace: Option<String>,
    selector: Selector,
}

impl<K: Object> DeleteAll<K> {
    /// In this namespace. Kinds that have namespaces need one.
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
        for object in matching(held, &self.selector) {
            kind.note(object.key(), None, Some(&going(object.uid().to_owned())));
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
