//! The kubelets of all simulated nodes, as one controller of Pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright::{
    cache::{Event, Lazy},
    controller::{Controller, EventSink, HandlerContext, Watch},
    prelude::*,
};
use parking_lot::Mutex;

use super::{Place, addresses::Addresses, turn};
use crate::{ControllerContext, indexes::PODS_BY_NODE, nodes::SIMULATED, objects, pod};

/// One Pod at a time, so that the states of a Pod are written in order.
pub(in crate::nodes) fn controller(cluster: &ControllerContext) -> Controller {
    let addresses: Arc<Mutex<Addresses>> = Arc::default();
    let observed = Arc::clone(&addresses);
    let on_pod = move |event: &Event<Pod>, _: &HandlerContext| observed.lock().observe(event);
    Controller::of::<Pod>()
        .named("kubelet")
        .index(&PODS_BY_NODE)
        .when(|event: &Event<Pod>| event.object().load().is_ok_and(|pod| pod::node(&pod).is_some()))
        .watches(Watch::handled(on_pod))
        .watches(Watch::mapped_with(pods_of).when(|event: &Event<Node>| matches!(event, Event::Added { .. })))
        .reconcile(Kubelet { events: cluster.event_sink("kubelet"), addresses })
}

/// The keys of the Pods of a node.
fn pods_of(node: &Lazy<Node>, cx: &HandlerContext) -> Vec<ObjectKey> {
    let pods = cx.cache::<Pod>().by_index(&PODS_BY_NODE, node.name()).unwrap_or_default();
    pods.iter().map(|pod| pod.key().clone()).collect()
}

struct Kubelet {
    events: Arc<dyn EventSink>,
    addresses: Arc<Mutex<Addresses>>,
}

impl Reconciler<Pod> for Kubelet {
    async fn reconcile(&self, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.object()? else { return Ok(Action::done()) };
        let Some(name) = pod::node(&pod) else { return Ok(Action::done()) };
        let node = cx.get::<Node>(&ObjectKey::cluster(name)).await?;
        let Some(node) = node.filter(|node| objects::annotation(&node.metadata, SIMULATED).is_some()) else {
            return Ok(Action::done());
        };
        let host_ip = host_ip(&node);
        let Some(pod_ip) = self.addresses.lock().allocate(&pod, &node, &host_ip) else {
            return Err(Error::message(format!("no address is left on {name}")));
        };
        let turn = turn(&pod, Place { host_ip: &host_ip, pod_ip: &pod_ip }, cx.clock().now());
        for note in &turn.notes {
            self.events.record(&pod.object_ref(&()), note.event_type, &note.reason, &note.message);
        }
        let client = cx.client().field_owner("kubelet").of::<Pod>();
        if let Some(status) = turn.status {
            let mut told = (*pod).clone();
            told.status = Some(status);
            match client.status().update(&told).await {
                Err(error) if error.is_not_found() => return Ok(Action::done()),
                written => drop(written?),
            }
        }
        if turn.remove {
            client.delete(&pod).grace_seconds(0).await?;
        }
        Ok(turn.after.map_or(Action::done(), Action::requeue_after))
    }
}

/// The address of a node inside of the cluster.
fn host_ip(node: &Node) -> String {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let internal = addresses.iter().find(|address| address.type_ == "InternalIP");
    internal.map(|address| address.address.clone()).unwrap_or_default()
}
