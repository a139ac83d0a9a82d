//! Executor of plans: writes their steps in order and records their events.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{Resource, api::Patch};
use kubewright::{
    Object as Kind, ObjectKey, Result,
    cache::Lazy,
    client::{ApiStatus, CachedClient, ClientError},
    controller::{Context, EventSink},
};

use super::{
    selector,
    step::{Note, Object, Step},
};

/// Executor of one reconcile: writes steps in order, and records events about its object.
pub(crate) struct Exec<'a> {
    client: CachedClient,
    events: &'a dyn EventSink,
    about: ObjectReference,
    /// The versions that our own writes led to, for a second write of the same object.
    versions: BTreeMap<String, String>,
}

/// Does the same with an object of whichever kind it is.
macro_rules! with {
    ($object:expr, $inner:ident => $body:expr) => {
        match $object {
            Object::Pod($inner) => $body,
            Object::Claim($inner) => $body,
            Object::ReplicaSet($inner) => $body,
            Object::Deployment($inner) => $body,
            Object::StatefulSet($inner) => $body,
            Object::DaemonSet($inner) => $body,
            Object::Revision($inner) => $body,
            Object::Job($inner) => $body,
            Object::CronJob($inner) => $body,
        }
    };
}

impl<'a> Exec<'a> {
    /// Executor for the object of a context.
    pub(crate) fn new<K: Kind + Resource<DynamicType = ()>>(
        cx: &Context<K>,
        object: &K,
        events: &'a dyn EventSink,
    ) -> Self {
        let mut about = object.object_ref(&());
        about.resource_version.clone_from(&object.meta().resource_version);
        Self { client: cx.client().clone(), events, about, versions: BTreeMap::new() }
    }

    /// Records an event about the object.
    pub(crate) fn say(&self, note: &Note) {
        self.events.record(&self.about, note.event_type, &note.reason, &note.message);
    }

    /// Executes steps until one fails; the error has the step that failed.
    pub(crate) async fn run(&mut self, steps: Vec<Step>) -> Result<(), Failed> {
        for step in steps {
            if let Err(error) = self.step(&step).await {
                return Err(Failed { step, error });
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), ClientError> {
        let meta = match step {
            Step::Say(note) => {
                self.say(note);
                return Ok(());
            }
            Step::Create(object) => with!(object, inner => self.client.create(&**inner).await?.metadata),
            Step::Update(object) => {
                with!(self.newest(object), inner => self.client.update(&*inner).await?.metadata)
            }
            Step::Status(object) => with!(self.newest(object), inner => {
                kind_of(&self.client, &*inner).status().update(&inner).await?.metadata
            }),
            Step::Patch(object, patch) => {
                let key = key_of(object.meta());
                let patched = with!(object, inner => {
                    kind_of(&self.client, &**inner).patch(&key, &Patch::Strategic(patch)).await.map(|made| made.metadata)
                });
                match patched {
                    // What is gone needs neither an owner nor the loss of a finalizer.
                    Err(error) if error.is_not_found() => return Ok(()),
                    patched => patched?,
                }
            }
            Step::Delete(object) => {
                with!(object, inner => self.client.delete(&**inner).background().await?);
                return Ok(());
            }
        };
        if let (Some(uid), Some(version)) = (meta.uid, meta.resource_version) {
            self.versions.insert(uid, version);
        }
        Ok(())
    }

    /// The object with the version that our own last write of it led to.
    fn newest(&self, object: &Object) -> Object {
        let mut object = object.clone();
        let version = object.meta().uid.as_ref().and_then(|uid| self.versions.get(uid)).cloned();
        if let Some(version) = version {
            with!(&mut object, inner => inner.metadata.resource_version = Some(version));
        }
        object
    }

    /// Creates Pods in batches that begin with one and double, until one fails. Returns how many, and the failure.
    pub(crate) async fn create_pods(&mut self, pods: &[Pod]) -> (usize, Option<ClientError>) {
        let (mut created, mut tried, mut batch) = (0, 0, 1);
        let mut failure = None;
        while tried < pods.len() && failure.is_none() {
            let end = (tried + batch).min(pods.len());
            for pod in &pods[tried..end] {
                match self.client.create(pod).await {
                    Ok(made) => {
                        created += 1;
                        let name = made.metadata.name.unwrap_or_default();
                        self.say(&Note::normal("SuccessfulCreate", format!("Created pod: {name}")));
                    }
                    // All others will fail too, and none of it is worth an event.
                    Err(error) if error.is_namespace_terminating() => return (created, None),
                    Err(error) => {
                        self.say(&Note::warning("FailedCreate", format!("Error creating: {error}")));
                        failure = Some(error);
                    }
                }
            }
            tried = end;
            batch *= 2;
        }
        (created, failure)
    }

    /// Deletes Pods. Returns how many, and the last failure.
    pub(crate) async fn delete_pods(&mut self, pods: &[Pod]) -> (usize, Option<ClientError>) {
        let mut failure = None;
        let mut deleted = 0;
        for pod in pods {
            match self.client.delete(pod).await {
                Ok(()) => {
                    deleted += 1;
                    let name = pod.metadata.name.as_deref().unwrap_or_default();
                    self.say(&Note::normal("SuccessfulDelete", format!("Deleted pod: {name}")));
                }
                Err(error) => {
                    self.say(&Note::warning("FailedDelete", format!("Error deleting: {error}")));
                    failure = Some(error);
                }
            }
        }
        (deleted, failure)
    }
}

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failed {
    /// Which.
    pub(crate) step: Step,
    /// Why.
    #[source]
    pub(crate) error: ClientError,
}

fn kind_of<K: Kind + Resource<DynamicType = ()>>(
    client: &CachedClient,
    _: &K,
) -> kubewright::client::KindClient<K> {
    client.of()
}

fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

/// The children of an owner, and the orphans in its namespace that it might adopt.
pub(crate) async fn candidates<C, K>(
    cx: &Context<K>,
    owner: &ObjectMeta,
    chosen: &LabelSelector,
) -> Result<Vec<Arc<C>>>
where
    C: Kind + Resource<DynamicType = ()>,
    K: Kind,
{
    let mut found = controlled_by(cx, owner.uid.as_deref().unwrap_or_default()).await?;
    let orphans = cx.list::<C>().namespace(cx.key().namespace().unwrap_or_default()).orphans().await?;
    let matching = |orphan: &&Lazy<C>| selector::matches_by(chosen, |key| orphan.label(key));
    for orphan in orphans.iter().filter(matching) {
        found.push(orphan.load()?);
    }
    Ok(found)
}

/// The objects of a kind, in the namespace of this reconcile, whose controller has this uid.
pub(crate) async fn controlled_by<C, K>(cx: &Context<K>, uid: &str) -> Result<Vec<Arc<C>>>
where
    C: Kind + Resource<DynamicType = ()>,
    K: Kind,
{
    let namespace = cx.key().namespace().unwrap_or_default();
    let children = cx.list::<C>().controller_uid(uid).namespace(namespace).await?;
    Ok(children.iter().map(Lazy::load).collect::<Result<_, _>>()?)
}

/// The same objects, to be changed.
pub(crate) fn to_owned<C: Clone>(objects: Vec<Arc<C>>) -> Vec<C> {
    objects.into_iter().map(Arc::unwrap_or_clone).collect()
}
