//! The collector at work: turns out of the graph, fresh reads, and what follows from them.

use std::sync::Arc;

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kubewright::{
    Error,
    client::{Refusal, ResourceInfo},
    events::{Recorder, Reference},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    graph::{FOREGROUND, Graph, Node, ORPHAN, Turn},
    judge::{self, Dependents, Owner, Propagation, Verdict},
};
use crate::{
    lifecycle::monitors::{Monitors, api_of},
    objects::FIELD_MANAGER,
};

/// What a worker needs.
pub(super) struct Sweeper {
    pub(super) client: kube::Client,
    pub(super) monitors: Monitors,
    pub(super) graph: Arc<Mutex<Graph>>,
    pub(super) recorder: Recorder,
}

/// An object as the server has it now, and where.
struct Live {
    resource: Arc<ResourceInfo>,
    meta: ObjectMeta,
}

impl Sweeper {
    /// Does what a turn asks for; gives the turns that follow from it.
    pub(super) async fn take(&self, turn: &Turn) -> Result<Vec<Turn>, Error> {
        match turn {
            Turn::Examine(uid) => self.examine(uid).await,
            Turn::Orphan(uid) => self.orphan(uid).await,
        }
    }

    async fn examine(&self, uid: &str) -> Result<Vec<Turn>, Error> {
        let Some(node) = self.graph.lock().node(uid).cloned() else { return Ok(Vec::new()) };
        if node.deleting && !node.waits_for_dependents() {
            return Ok(Vec::new());
        }
        let Some(live) = self.read(&node).await? else { return Ok(self.graph.lock().forget(uid)) };
        if live.meta.deletion_timestamp.is_some() {
            let waits = finalizers(&live.meta).iter().any(|finalizer| finalizer == FOREGROUND);
            return if waits { self.finish(&node, &live).await } else { Ok(Vec::new()) };
        }
        let mut owners = Vec::new();
        for owner in live.meta.owner_references.iter().flatten() {
            let Some(state) = self.state_of(&node, owner).await? else { return Ok(Vec::new()) };
            owners.push((owner.clone(), state));
        }
        let dependents = {
            let graph = self.graph.lock();
            let waiting = graph.dependents(uid).any(Node::waits_for_dependents);
            Dependents { any: graph.dependents(uid).next().is_some(), waiting }
        };
        match judge::judge(&owners, finalizers(&live.meta), dependents) {
            Verdict::Keep => {}
            Verdict::Release(uids) => self.release(&live, &uids).await?,
            Verdict::Delete { propagation, unblock } => {
                if unblock {
                    self.unblock(&live).await?;
                }
                self.delete(&live, propagation).await?;
            }
        }
        Ok(Vec::new())
    }

    /// An owner that waits for its dependents goes when none of them holds it back.
    async fn finish(&self, node: &Node, live: &Live) -> Result<Vec<Turn>, Error> {
        let turns: Option<Vec<Turn>> = {
            let graph = self.graph.lock();
            let blocking: Vec<&Node> = graph.blocking(&node.uid).collect();
            let waiting = blocking.iter().filter(|dependent| !dependent.deleting);
            (!blocking.is_empty()).then(|| waiting.map(|one| Turn::Examine(one.uid.clone())).collect())
        };
        if let Some(turns) = turns {
            return Ok(turns);
        }
        self.remove_finalizer(live, FOREGROUND).await?;
        Ok(Vec::new())
    }

    /// The dependents of a node lose their reference to it, then it may go.
    async fn orphan(&self, uid: &str) -> Result<Vec<Turn>, Error> {
        let (node, dependents) = {
            let graph = self.graph.lock();
            let Some(node) = graph.node(uid).cloned() else { return Ok(Vec::new()) };
            let dependents: Vec<Node> = graph.dependents(uid).cloned().collect();
            (node, dependents)
        };
        for dependent in &dependents {
            if let Some(live) = self.read(dependent).await? {
                self.release(&live, &[uid.to_owned()]).await?;
            }
        }
        if let Some(live) = self.read(&node).await? {
            self.remove_finalizer(&live, ORPHAN).await?;
        }
        Ok(Vec::new())
    }

    /// How it stands with an owner; `None` when an object like this cannot have an owner like that.
    async fn state_of(&self, node: &Node, owner: &OwnerReference) -> Result<Option<Owner>, Error> {
        {
            let graph = self.graph.lock();
            // What has been seen and not gone is there; only absence needs proof.
            if graph.knows_owner(owner, node.namespace.as_deref()) {
                let waits = graph.node(&owner.uid).is_some_and(Node::waits_for_dependents);
                return Ok(Some(if waits { Owner::Waiting } else { Owner::Present }));
            }
        }
        let Some(resource) = self.monitors.resource(&owner.api_version, &owner.kind).await? else {
            let what = format!("{} of {}", owner.kind, owner.api_version);
            return Err(Error::message(format!("the server does not serve the owner's kind {what}")));
        };
        if resource.is_namespaced() && node.namespace.is_none() {
            self.report(node, owner);
            return Ok(None);
        }
        let api = api_of(self.client.clone(), &resource, node.namespace.as_deref());
        let found = api.get_metadata_opt(&owner.name).await?.map(|found| found.metadata);
        Ok(Some(match found.filter(|meta| meta.uid.as_ref() == Some(&owner.uid)) {
            None => {
                let elsewhere = self.graph.lock().node(&owner.uid).map(|seen| seen.namespace.clone());
                if elsewhere.is_some_and(|namespace| namespace != node.namespace) {
                    self.report(node, owner);
                }
                Owner::Gone
            }
            Some(meta)
                if meta.deletion_timestamp.is_some()
                    && finalizers(&meta).iter().any(|finalizer| finalizer == FOREGROUND) =>
            {
                Owner::Waiting
            }
            Some(_) => Owner::Present,
        }))
    }

    /// A reference across namespaces is a mistake that its author should hear of.
    fn report(&self, node: &Node, owner: &OwnerReference) {
        let namespace = node.namespace.as_deref().unwrap_or_default();
        let OwnerReference { api_version, kind, name, uid, .. } = owner;
        let message = format!(
            "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in \
             namespace {namespace:?}"
        );
        let about = Reference::from(ObjectReference {
            api_version: Some(node.api_version.clone()),
            kind: Some(node.kind.clone()),
            name: Some(node.name.clone()),
            namespace: node.namespace.clone(),
            uid: Some(node.uid.clone()),
            ..ObjectReference::default()
        });
        self.recorder.warning(&about, "OwnerRefInvalidNamespace", message);
    }

    async fn read(&self, node: &Node) -> Result<Option<Live>, Error> {
        let Some(resource) = self.monitors.resource(&node.api_version, &node.kind).await? else {
            return Ok(None);
        };
        let api = api_of(self.client.clone(), &resource, node.namespace.as_deref());
        let found = api.get_metadata_opt(&node.name).await?.map(|found| found.metadata);
        let found = found.filter(|meta| meta.uid.as_deref() == Some(node.uid.as_str()));
        Ok(found.map(|meta| Live { resource, meta }))
    }

    async fn release(&self, live: &Live, uids: &[String]) -> Result<(), Error> {
        let owners = live.meta.owner_references.as_deref().unwrap_or_default();
        let kept: Vec<&OwnerReference> = owners.iter().filter(|owner| !uids.contains(&owner.uid)).collect();
        if kept.len() == owners.len() {
            return Ok(());
        }
        let kept = if kept.is_empty() { Value::Null } else { serde_json::to_value(kept)? };
        self.patch(live, "ownerReferences", kept).await
    }

    async fn unblock(&self, live: &Live) -> Result<(), Error> {
        let mut owners = live.meta.owner_references.clone().unwrap_or_default();
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        self.patch(live, "ownerReferences", serde_json::to_value(owners)?).await
    }

    async fn remove_finalizer(&self, live: &Live, finalizer: &str) -> Result<(), Error> {
        let held = finalizers(&live.meta);
        let kept: Vec<&String> = held.iter().filter(|held| *held != finalizer).collect();
        if kept.len() == held.len() {
            return Ok(());
        }
        let kept = if kept.is_empty() { Value::Null } else { serde_json::to_value(kept)? };
        self.patch(live, "finalizers", kept).await
    }

    /// Changes one member of an object's metadata, if it is still the object that was read.
    async fn patch(&self, live: &Live, member: &str, value: Value) -> Result<(), Error> {
        let meta = &live.meta;
        let mut patch = json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}});
        patch["metadata"][member] = value;
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let api = api_of(self.client.clone(), &live.resource, meta.namespace.as_deref());
        let name = meta.name.as_deref().unwrap_or_default();
        ignore_not_found(api.patch_metadata(name, &params, &Patch::Merge(patch)).await)
    }

    async fn delete(&self, live: &Live, propagation: Propagation) -> Result<(), Error> {
        let meta = &live.meta;
        let policy = match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        };
        let preconditions =
            Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let api = api_of(self.client.clone(), &live.resource, meta.namespace.as_deref());
        ignore_not_found(api.delete(meta.name.as_deref().unwrap_or_default(), &params).await)
    }
}

fn finalizers(meta: &ObjectMeta) -> &[String] {
    meta.finalizers.as_deref().unwrap_or_default()
}

fn ignore_not_found<T>(answer: Result<T, kube::Error>) -> Result<(), Error> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
