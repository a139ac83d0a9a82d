//! The garbage collector: objects go when their owners have gone.
//!
//! - [`graph`]: who owns whom, over every kind that the server serves.
//! - [`judge`]: what is to be done with an object whose owners' state is known.
//!
//! [`Collector`] runs them: changes go into the graph, the graph gives turns, workers take them.

pub mod graph;
pub mod judge;
mod sweep;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewright::{
    cache::{Event, Lazy},
    client::ResourceInfo,
    manager::{RunContext, Runnable, RunnableFuture, Stage},
    queue::RateLimitingQueue,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use self::{
    graph::{Graph, Node, Turn},
    sweep::Sweeper,
};
use super::monitors::Metadata;
use crate::ControllerContext;

/// How many objects are looked at at the same time.
const WORKERS: usize = 4;

/// The collector, to be run by a manager.
pub struct Collector {
    sweeper: Arc<Sweeper>,
    queue: RateLimitingQueue<Turn>,
}

impl Collector {
    /// A collector over the monitors of a cluster. Make it before the monitors run.
    pub fn new(cluster: &ControllerContext) -> Self {
        let graph: Arc<Mutex<Graph>> = Arc::default();
        let queue = RateLimitingQueue::named("garbage-collector");
        let (told, turns) = (Arc::clone(&graph), queue.clone());
        cluster.monitors().listen(move |resource, event| {
            let found = match event {
                Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                    let node = node(resource, object);
                    told.lock().observe(node)
                }
                Event::Deleted { object, .. } => told.lock().forget(object.uid()),
            };
            for turn in found {
                turns.add(turn);
            }
        });
        let sweeper = Sweeper {
            client: cluster.clients().client(),
            monitors: cluster.monitors().clone(),
            graph,
            recorder: cluster.recorder("garbage-collector-controller"),
        };
        Self { sweeper: Arc::new(sweeper), queue }
    }
}

impl Runnable for Collector {
    fn name(&self) -> String {
        "garbage-collector".to_owned()
    }

    fn stage(&self) -> Stage {
        Stage::Elected
    }

    fn run(self: Box<Self>, cx: RunContext) -> RunnableFuture<'static> {
        Box::pin(async move {
            let mut workers = JoinSet::new();
            for _ in 0..WORKERS {
                workers.spawn(work(Arc::clone(&self.sweeper), self.queue.clone()));
            }
            cx.stop().cancelled().await;
            self.queue.shut_down();
            while workers.join_next().await.is_some() {}
            Ok(())
        })
    }
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("waiting", &self.queue.len()).finish_non_exhaustive()
    }
}

async fn work(sweeper: Arc<Sweeper>, queue: RateLimitingQueue<Turn>) {
    while let Some(item) = queue.get().await {
        match sweeper.take(item.key()).await {
            Ok(turns) => {
                item.forget();
                for turn in turns {
                    queue.add(turn);
                }
            }
            Err(error) => {
                tracing::debug!(%error, turn = ?item.key(), "the garbage collector tries again");
                item.retry(error);
            }
        }
    }
}

/// What the graph needs of an object.
fn node(resource: &ResourceInfo, object: &Lazy<Metadata>) -> Node {
    let api_version = match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    };
    let mut node = Node {
        uid: object.uid().to_owned(),
        api_version,
        kind: resource.kind.clone(),
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
        owners: Vec::new(),
        deleting: object.is_deleting(),
        finalizers: Vec::new(),
    };
    // Most objects have no owner and are not being deleted: for those the metadata at hand is enough.
    if object.is_deleting() || object.owners().next().is_some() {
        match object.load() {
            Ok(full) => {
                node.owners = full.metadata.owner_references.clone().unwrap_or_default();
                node.finalizers = full.metadata.finalizers.clone().unwrap_or_default();
            }
            Err(error) => {
                tracing::warn!(%error, "an object's metadata cannot be read");
                node.owners = object.owners().map(reference).collect();
            }
        }
    }
    node
}

fn reference(owner: kubewright::cache::Owner<'_>) -> OwnerReference {
    OwnerReference {
        api_version: owner.api_version.to_owned(),
        kind: owner.kind.to_owned(),
        name: owner.name.to_owned(),
        uid: owner.uid.to_owned(),
        controller: Some(owner.controller),
        // Not at hand; an owner that waits must not be let go too early.
        block_owner_deletion: Some(true),
    }
}
