//! Registering nodes and keeping them alive.

use std::time::Duration;

use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::Node,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::api::Patch;
use kubewright::{
    Error, ObjectKey, Result,
    client::{CachedClient, Refusal},
    manager::{RunContext, Runnable, Stage, runnable_fn},
};
use serde_json::json;

use super::node::{NodeTemplate, alive};

/// How often leases are renewed, and how long they are good for.
const RENEW: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// Every so many renewals the conditions get a heartbeat too: every five minutes.
const STATUS_EVERY: u32 = 30;

/// The node controller's side of so many kubelets.
pub(super) fn runnable(nodes: u32, template: NodeTemplate) -> impl Runnable {
    runnable_fn("simulated-nodes", Stage::Others, move |cx: RunContext| run(nodes, template, cx))
}

async fn run(nodes: u32, template: NodeTemplate, cx: RunContext) -> Result<(), Error> {
    let client = cx.client().field_owner("kubelet").live();
    for number in 0..nodes {
        register(&client, &template, number, &cx).await?;
    }
    // What each kubelet wrote last: it renews that, without reading it again.
    let mut leases: Vec<Option<Lease>> = vec![None; usize::try_from(nodes).unwrap_or_default()];
    let mut beats: u32 = 0;
    loop {
        for (number, lease) in (0..nodes).zip(&mut leases) {
            // A node that cannot be kept alive is for others to notice; that is what heartbeats are for.
            if let Err(error) = beat(&client, &template, number, beats, lease, &cx).await {
                tracing::warn!(node = number, %error, "heartbeat of a simulated node failed");
                *lease = None;
            }
        }
        beats = beats.wrapping_add(1);
        tokio::select! {
            biased;
            () = cx.stop().cancelled() => return Ok(()),
            () = tokio::time::sleep(RENEW) => {}
        }
    }
}

async fn register(
    client: &CachedClient,
    template: &NodeTemplate,
    number: u32,
    cx: &RunContext,
) -> Result<()> {
    match client.create(&template.node(number, cx.clock().now())).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

async fn beat(
    client: &CachedClient,
    template: &NodeTemplate,
    number: u32,
    beats: u32,
    lease: &mut Option<Lease>,
    cx: &RunContext,
) -> Result<()> {
    let key = ObjectKey::cluster(&template.name(number));
    let Some(node) = cx.client().get::<Node>(&key).await? else {
        // Somebody deleted the node; a kubelet that runs registers again.
        *lease = None;
        return register(client, template, number, cx).await;
    };
    *lease = Some(renewed(client, &node, lease.take(), cx).await?);
    if beats.is_multiple_of(STATUS_EVERY) {
        let own = template.node(number, cx.clock().now());
        let known = node.status.clone().unwrap_or_default();
        let status = alive(known, &own.status.unwrap_or_default(), cx.clock().now());
        // A patch, because somebody else may be writing taints at the same time, and heartbeats do not wait.
        let patch = Patch::Merge(json!({"status": status}));
        client.of::<Node>().status().patch(&key, &patch).await?;
    }
    Ok(())
}

/// The lease of a node with the time of now, as it is stored.
async fn renewed(client: &CachedClient, node: &Node, known: Option<Lease>, cx: &RunContext) -> Result<Lease> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let spec = LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(LEASE_SECONDS),
        renew_time: Some(cx.clock().micro_time()),
        ..LeaseSpec::default()
    };
    let key = ObjectKey::namespaced("kube-node-lease", name);
    let known = match known {
        Some(known) => Some(known),
        None => client.get::<Lease>(&key).await?.map(|lease| (*lease).clone()),
    };
    if let Some(mut lease) = known {
        lease.spec = Some(spec);
        return Ok(client.update(&lease).await?);
    }
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: name.to_owned(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("kube-node-lease".into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
    };
    Ok(client.create(&lease).await?)
}
