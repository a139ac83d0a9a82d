//! The scheduler as a controller of Pods.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod, PodCondition},
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PostParams},
};
use kubewright::{
    cache::Event,
    controller::{Controller, EventSink, HandlerContext, Watch},
    events::EventType,
    prelude::*,
};
use parking_lot::Mutex;
use serde_json::json;

use super::{World, cache::SchedulerCache, choose, claim_names, is_waiting, unbound};
use crate::{
    ControllerContext, objects, pod,
    volumes::{binding::SELECTED_NODE, provisioner::waits_for_consumer},
};

/// One Pod at a time, as upstream does: a decision must know of the one before.
pub(in crate::nodes) fn controller(cluster: &ControllerContext) -> Controller {
    let cache: Arc<Mutex<SchedulerCache>> = Arc::default();
    let (of_pods, of_nodes, of_claims) = (Arc::clone(&cache), Arc::clone(&cache), Arc::clone(&cache));
    let on_pod = move |event: &Event<Pod>, cx: &HandlerContext| {
        let mut cache = of_pods.lock();
        if observe_pod(&mut cache, event) {
            cx.add_all(cache.take_unschedulable());
        }
    };
    let on_node = move |event: &Event<Node>, cx: &HandlerContext| {
        let mut cache = of_nodes.lock();
        observe_node(&mut cache, event);
        if makes_room(event) {
            cx.add_all(cache.take_unschedulable());
        }
    };
    let on_claim = move |_: &Event<PersistentVolumeClaim>, cx: &HandlerContext| {
        cx.add_all(of_claims.lock().take_unschedulable());
    };
    Controller::of::<Pod>()
        .named("default-scheduler")
        .when(|event: &Event<Pod>| event.object().load().is_ok_and(|pod| is_waiting(&pod)))
        .watches(Watch::handled(on_pod))
        .watches(Watch::handled(on_node))
        .watches(Watch::handled(on_claim))
        .reconcile(Scheduler { events: cluster.event_sink("default-scheduler"), cache })
}

/// Brings the cache up to date. Returns whether a node has more room than before.
fn observe_pod(cache: &mut SchedulerCache, event: &Event<Pod>) -> bool {
    match event {
        Event::Deleted { object, .. } => {
            cache.remove_unschedulable(object.key());
            cache.remove_pod(object.uid())
        }
        Event::Added { object, .. } => object.load().is_ok_and(|pod| cache.set_pod(&pod)),
        Event::Updated { old, new } => {
            let replaced = old.uid() != new.uid() && cache.remove_pod(old.uid());
            new.load().is_ok_and(|pod| cache.set_pod(&pod)) || replaced
        }
    }
}

fn observe_node(cache: &mut SchedulerCache, event: &Event<Node>) {
    match event {
        Event::Deleted { object, .. } => cache.remove_node(object.name()),
        Event::Added { object: node, .. } | Event::Updated { new: node, .. } => {
            if let Ok(node) = node.load() {
                cache.set_node(node);
            }
        }
    }
}

/// Whether a change of a node may let a Pod onto it; heartbeats do not.
fn makes_room(event: &Event<Node>) -> bool {
    let Event::Updated { old, new } = event else { return true };
    let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    match (old.load(), new.load()) {
        (Ok(old), Ok(new)) => {
            old.spec != new.spec
                || old.metadata.labels != new.metadata.labels
                || allocatable(&old) != allocatable(&new)
        }
        _ => true,
    }
}

struct Scheduler {
    events: Arc<dyn EventSink>,
    cache: Arc<Mutex<SchedulerCache>>,
}

impl Reconciler<Pod> for Scheduler {
    async fn reconcile(&self, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.object()?.filter(|pod| is_waiting(pod)) else {
            self.cache.lock().remove_unschedulable(cx.key());
            return Ok(Action::done());
        };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        {
            let mut cache = self.cache.lock();
            if cache.is_bound(&uid) {
                return Ok(Action::done());
            }
            // Before anything is read: a change from here on brings the Pod back.
            cache.add_unschedulable(cx.key());
        }
        let (claims, delayed) = claims_of(&cx, &pod).await?;
        let decision = {
            let mut cache = self.cache.lock();
            let world = World { cache: &cache, claims: &claims, delayed: &delayed };
            let unbound = unbound(&pod, world);
            match choose(&pod, world) {
                Ok(node) if unbound.is_empty() => {
                    cache.assume(&pod, &node);
                    cache.remove_unschedulable(cx.key());
                    Decision::Bind(node)
                }
                Ok(node) => Decision::SelectNode(node, unbound.into_iter().cloned().collect()),
                Err(why) => Decision::Unschedulable(why),
            }
        };
        match decision {
            Decision::Bind(node) => {
                let bound = self.bind(&cx, &pod, &node).await;
                if !matches!(bound, Ok(true)) {
                    self.cache.lock().forget(&uid);
                }
                bound.map(|_| Action::done())
            }
            Decision::SelectNode(node, claims) => select_node(&cx, &claims, &node).await,
            Decision::Unschedulable(why) => self.give_up(&cx, &pod, why).await,
        }
    }
}

/// What is to be done about a Pod.
enum Decision {
    /// It is bound to this node.
    Bind(String),
    /// These claims are told of this node first.
    SelectNode(String, Vec<PersistentVolumeClaim>),
    /// No node fits, for this reason.
    Unschedulable(String),
}

/// The claims of a Pod that exist, and the storage classes whose volumes wait for a Pod to be placed.
async fn claims_of(cx: &Context<Pod>, pod: &Pod) -> Result<(Vec<PersistentVolumeClaim>, Vec<String>)> {
    let (mut claims, mut delayed) = (Vec::new(), Vec::new());
    for name in pod.spec.iter().flat_map(claim_names) {
        if let Some(claim) = cx.get::<PersistentVolumeClaim>(&cx.neighbour(name)).await? {
            claims.push(Arc::unwrap_or_clone(claim));
        }
    }
    if !claims.is_empty() {
        for class in cx.list::<StorageClass>().await? {
            if waits_for_consumer(&*class.load()?) {
                delayed.push(class.name().to_owned());
            }
        }
    }
    Ok((claims, delayed))
}

/// Annotates claims with the node of their Pod. The Pod is bound when they are.
async fn select_node(cx: &Context<Pod>, claims: &[PersistentVolumeClaim], node: &str) -> Result<Action> {
    for claim in claims.iter().filter(|claim| objects::annotation(&claim.metadata, SELECTED_NODE).is_none()) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: node}}}));
        let key = ObjectKey::of(claim, &())?;
        cx.client().field_owner("kube-scheduler").patch::<PersistentVolumeClaim>(&key, &patch).await?;
    }
    Ok(Action::done())
}

impl Scheduler {
    /// Binds a Pod. False when it is gone, or another scheduler has bound it.
    async fn bind(&self, cx: &Context<Pod>, pod: &Pod, node: &str) -> Result<bool> {
        let meta = &pod.metadata;
        let (space, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let binding = Binding {
            metadata: ObjectMeta { name: meta.name.clone(), uid: meta.uid.clone(), ..ObjectMeta::default() },
            target: ObjectReference {
                kind: Some("Node".into()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = Api::<Pod>::namespaced(cx.client().client().clone(), space);
        let parameters = PostParams { field_manager: Some("kube-scheduler".into()), ..PostParams::default() };
        match api
            .create_subresource::<Binding, serde_json::Value>("binding", name, &parameters, &binding)
            .await
        {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let message = format!("Successfully assigned {space}/{name} to {node}");
        self.events.record(&pod.object_ref(&()), EventType::Normal, "Scheduled", &message);
        Ok(true)
    }

    /// Writes to the Pod's status that no node fits. The next change of a node, a Pod or a claim brings it back.
    async fn give_up(&self, cx: &Context<Pod>, pod: &Pod, why: String) -> Result<Action> {
        let known = pod::condition(pod, "PodScheduled");
        if known.is_some_and(|known| known.status == "False" && known.message.as_deref() == Some(&why)) {
            return Ok(Action::done());
        }
        let mut told = pod.clone();
        let changed = known
            .filter(|known| known.status == "False")
            .and_then(|known| known.last_transition_time.clone());
        let condition = PodCondition {
            type_: "PodScheduled".into(),
            status: "False".into(),
            reason: Some("Unschedulable".into()),
            message: Some(why.clone()),
            last_transition_time: Some(changed.unwrap_or_else(|| cx.clock().time())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        let conditions = told.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != "PodScheduled");
        conditions.push(condition);
        self.events.record(&pod.object_ref(&()), EventType::Warning, "FailedScheduling", &why);
        match cx.client().field_owner("kube-scheduler").of::<Pod>().status().update(&told).await {
            Err(error) if error.is_not_found() => Ok(Action::done()),
            written => {
                written?;
                Ok(Action::done())
            }
        }
    }
}
