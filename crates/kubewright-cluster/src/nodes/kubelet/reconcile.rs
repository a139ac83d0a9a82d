//! The kubelets of all simulated nodes, as one controller of pods.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright::{
    cache::Event,
    controller::{Controller, EventSink, Watch},
    prelude::*,
};

use super::{Place, turn};
use crate::{
    nodes::SIMULATED,
    workloads::{pods, wake::Known},
};

/// One pod at a time: addresses must not be given twice.
pub(in crate::nodes) fn controller(events: Arc<dyn EventSink>) -> Controller {
    let known = Known::new();
    Controller::of::<Pod>()
        .named("kubelet")
        .when(|event: &Event<Pod>| event.object().load().is_ok_and(|pod| pods::node(&pod).is_some()))
        .watches(
            Watch::<Node>::handled(known.everyone())
                .when(|event: &Event<Node>| matches!(event, Event::Added { .. })),
        )
        .reconcile(Kubelet { events, known })
}

struct Kubelet {
    events: Arc<dyn EventSink>,
    known: Known<Pod>,
}

impl Reconciler<Pod> for Kubelet {
    async fn reconcile(&self, cx: Context<Pod>) -> Result<Action> {
        self.known.is(|| cx.own_kind().cache());
        let Some(pod) = cx.object()? else { return Ok(Action::done()) };
        let Some(name) = pods::node(&pod) else { return Ok(Action::done()) };
        let node = cx.get::<Node>(&ObjectKey::cluster(name)).await?;
        let Some(node) = node.filter(|node| pods::annotation(&node.metadata, SIMULATED).is_some()) else {
            return Ok(Action::done());
        };
        let host_ip = host_ip(&node);
        let pod_ip = address(&cx, &pod, &node, &host_ip).await?;
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

/// The address of a pod: the one it has, that of its host, or the lowest that is free in the range of the node.
async fn address(cx: &Context<Pod>, pod: &Pod, node: &Node, host_ip: &str) -> Result<String> {
    if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) {
        return Ok(address);
    }
    if pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true) {
        return Ok(host_ip.to_owned());
    }
    let range = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref()).unwrap_or("10.128.0.0/24");
    let stem = range.rsplit_once('.').map_or("10.128.0", |(stem, _)| stem);
    let mut taken = BTreeSet::new();
    for other in cx.list::<Pod>().await? {
        let other = other.load()?;
        if pods::node(&other) == node.metadata.name.as_deref() && !pods::is_finished(&other) {
            taken.extend(other.status.as_ref().and_then(|status| status.pod_ip.clone()));
        }
    }
    let free = (2..255).map(|last| format!("{stem}.{last}")).find(|address| !taken.contains(address));
    free.ok_or_else(|| {
        Error::message(format!("no address is left on {}", node.metadata.name.as_deref().unwrap_or_default()))
    })
}
