//! The scheduler as a controller of pods.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod, PodCondition},
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PostParams},
};
use kubewright::{
    cache::{Event, KindCache, Lazy},
    controller::{Controller, EventSink, Requests, Watch},
    events::EventType,
    prelude::*,
};
use parking_lot::Mutex;
use serde_json::json;

use super::{World, choose, is_waiting, unbound};
use crate::{volumes::binding::SELECTED_NODE, workloads::pods};

/// One pod at a time, as upstream does: a decision must know of the one before.
pub(in crate::nodes) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known: Arc<std::sync::OnceLock<KindCache<Pod>>> = Arc::default();
    let waiting = known.clone();
    let wake = move |requests: &Requests| {
        for pod in waiting.get().map(KindCache::list).unwrap_or_default() {
            if pod.load().is_ok_and(|pod| is_waiting(&pod)) {
                requests.add(pod.key().clone());
            }
        }
    };
    let (by_pods, by_claims, by_nodes) = (wake.clone(), wake.clone(), wake);
    Controller::of::<Pod>()
        .named("default-scheduler")
        .when(|event: &Event<Pod>| event.object().load().is_ok_and(|pod| is_waiting(&pod)))
        .watches(
            Watch::<Pod>::handled(move |_: &Event<Pod>, requests: &Requests| by_pods(requests))
                .when(frees_room),
        )
        .watches(
            Watch::<Node>::handled(move |_: &Event<Node>, requests: &Requests| by_nodes(requests))
                .when(makes_room),
        )
        .watches(Watch::<PersistentVolumeClaim>::handled(
            move |_: &Event<PersistentVolumeClaim>, requests: &Requests| by_claims(requests),
        ))
        .reconcile(Scheduler { events, known, assumed: Mutex::default() })
}

/// A pod that ends or goes leaves room for others.
fn frees_room(event: &Event<Pod>) -> bool {
    let busy =
        |pod: &Lazy<Pod>| pod.load().is_ok_and(|pod| pods::node(&pod).is_some() && !pods::is_finished(&pod));
    match event {
        Event::Added { .. } => false,
        Event::Updated { old, new } => busy(old) && !busy(new),
        Event::Deleted { object, .. } => busy(object),
    }
}

/// Heartbeats make no room.
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
    known: Arc<std::sync::OnceLock<KindCache<Pod>>>,
    /// What was bound and may not have come back through the cache yet, by uid.
    assumed: Mutex<BTreeMap<String, String>>,
}

impl Reconciler<Pod> for Scheduler {
    async fn reconcile(&self, cx: Context<Pod>) -> Result<Action> {
        self.known.get_or_init(|| cx.own_kind().cache());
        let Some(pod) = cx.object()?.filter(|pod| is_waiting(pod)) else { return Ok(Action::done()) };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if self.assumed.lock().contains_key(&uid) {
            return Ok(Action::done());
        }
        let mut nodes = Vec::new();
        for node in cx.list::<Node>().await? {
            nodes.push(Arc::unwrap_or_clone(node.load()?));
        }
        nodes.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let bound = self.bound(&cx).await?;
        let mut claims: Vec<PersistentVolumeClaim> = Vec::new();
        if pod.spec.as_ref().is_some_and(|spec| spec.volumes.is_some()) {
            for claim in cx.list().namespace(cx.key().namespace().unwrap_or_default()).await? {
                claims.push(Arc::unwrap_or_clone(claim.load()?));
            }
        }
        let mut patient = Vec::new();
        if !claims.is_empty() {
            for class in cx.list::<StorageClass>().await? {
                if class.load()?.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer") {
                    patient.push(class.name().to_owned());
                }
            }
        }
        let world = World { nodes: &nodes, pods: &bound, claims: &claims, patient: &patient };
        match choose(&pod, world) {
            Ok(node) => {
                let waiting = unbound(&pod, world);
                if waiting.is_empty() {
                    return self.bind(&cx, &pod, &node).await;
                }
                select_node(&cx, &waiting, &node).await
            }
            Err(why) => self.give_up(&cx, &pod, why).await,
        }
    }
}

/// Tells claims where their pod goes. It is bound when they are.
async fn select_node(cx: &Context<Pod>, claims: &[&PersistentVolumeClaim], node: &str) -> Result<Action> {
    for claim in claims.iter().filter(|claim| pods::annotation(&claim.metadata, SELECTED_NODE).is_none()) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: node}}}));
        let key = ObjectKey::of(*claim, &())?;
        cx.client().field_owner("kube-scheduler").patch::<PersistentVolumeClaim>(&key, &patch).await?;
    }
    Ok(Action::done())
}

impl Scheduler {
    /// The pods that have a node, those included whose binding the cache has not seen yet.
    async fn bound(&self, cx: &Context<Pod>) -> Result<Vec<Pod>> {
        let mut bound = Vec::new();
        let mut seen = BTreeMap::new();
        let all = cx.list::<Pod>().await?;
        let mut assumed = self.assumed.lock();
        for handle in all {
            let mut pod = Arc::unwrap_or_clone(handle.load()?);
            let uid = handle.uid().to_owned();
            if let Some(node) = assumed.get(&uid)
                && pods::node(&pod).is_none()
            {
                pod.spec.get_or_insert_default().node_name = Some(node.clone());
                seen.insert(uid, node.clone());
            }
            if pods::node(&pod).is_some() && !pods::is_finished(&pod) {
                bound.push(pod);
            }
        }
        // What the cache shows as bound, or no more, needs no memory.
        *assumed = seen;
        Ok(bound)
    }

    async fn bind(&self, cx: &Context<Pod>, pod: &Pod, node: &str) -> Result<Action> {
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
            // Gone, or bound by somebody else.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {
                return Ok(Action::done());
            }
            Err(error) => return Err(error.into()),
        }
        self.assumed.lock().insert(meta.uid.clone().unwrap_or_default(), node.to_owned());
        let message = format!("Successfully assigned {space}/{name} to {node}");
        self.events.record(&pod.object_ref(&()), EventType::Normal, "Scheduled", &message);
        Ok(Action::done())
    }

    /// Says on the pod that there is no node for it. The next change of a node, a pod or a claim brings it back.
    async fn give_up(&self, cx: &Context<Pod>, pod: &Pod, why: String) -> Result<Action> {
        let known = pods::condition(pod, "PodScheduled");
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
