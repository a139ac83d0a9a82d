//! A small cluster: API server, workload controllers and optional nodes.

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewright::{
    Clock,
    controller::EventSink,
    events::EventType,
    manager::{Manager, ManagerHandle},
};
use kubewright_apiserver::ApiServer;
use kubewright_cluster::{ControllerContext, nodes, workloads};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// The recorded events as `component Kind/name Reason message`.
#[derive(Default, Clone)]
pub(crate) struct RecordedEvents(Arc<Mutex<Vec<String>>>);

struct Component(String, RecordedEvents);

impl EventSink for Component {
    fn record(&self, about: &ObjectReference, _: EventType, reason: &str, message: &str) {
        let (kind, name) =
            (about.kind.as_deref().unwrap_or_default(), about.name.as_deref().unwrap_or_default());
        self.1.0.lock().push(format!("{} {kind}/{name} {reason} {message}", self.0));
    }
}

pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) events: RecordedEvents,
    manager: ManagerHandle,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.manager.stop();
        self.task.abort();
    }
}

impl Cluster {
    /// Starts a cluster at noon on 1 August 2026.
    pub(crate) async fn start(count: u32) -> Self {
        let start = "2026-08-01T12:00:00Z".parse().unwrap();
        let server = ApiServer::builder().clock(Clock::starting_at(start)).seed(1).in_process();
        Self::with_server(server.unwrap(), start, count).await
    }

    /// Starts controllers and optional nodes on a server.
    pub(crate) async fn with_server(server: ApiServer, start: jiff::Timestamp, count: u32) -> Self {
        let events = RecordedEvents::default();
        let recorder = {
            let events = events.clone();
            move |component: &str| -> Arc<dyn EventSink> {
                Arc::new(Component(component.to_owned(), events.clone()))
            }
        };
        let clock = Clock::starting_at(start);
        let cx = ControllerContext::new(&server.client(), &clock).with_event_sinks(recorder);
        let manager =
            Manager::builder("kube-controller-manager").caches(cx.caches()).clock(clock).signals(false);
        let mut manager = workloads::register(manager, &cx);
        if count > 0 {
            manager = nodes::register(manager, &cx, count, nodes::NodeTemplate::default());
        }
        let manager = manager.build().await.unwrap();
        let handle = manager.handle();
        let task = tokio::spawn(async move { manager.run().await.unwrap() });
        let cluster = Self { server, events, manager: handle, task };
        for number in 0..count {
            let name = format!("node-{number}");
            cluster.eventually::<Node>(&name, |node| node.status.is_some()).await;
            // Admission taints new nodes, and the node controller, which does not run here, would remove the
            // taint.
            cluster.patch::<Node>(&name, json!({"spec": {"taints": null}})).await;
        }
        cluster
    }

    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        K::api(self.server.client())
    }

    pub(crate) async fn create<K: Kind>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn get<K: Kind>(&self, name: &str) -> K {
        self.api().get(name).await.unwrap()
    }

    pub(crate) async fn list<K: Kind>(&self, labels: &str) -> Vec<K> {
        self.api().list(&ListParams::default().labels(labels)).await.unwrap().items
    }

    pub(crate) async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn delete<K: Kind>(&self, name: &str) {
        let _ = self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn pod_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits, in virtual time, until an object meets a condition.
    pub(crate) async fn eventually<K: Kind>(&self, name: &str, holds: impl Fn(&K) -> bool) -> K {
        let mut last = None;
        for _ in 0..6000 {
            if let Some(object) = self.api::<K>().get_opt(name).await.unwrap() {
                if holds(&object) {
                    return object;
                }
                last = Some(object);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{name} is not as it should be after ten minutes: {last:#?}\n{:#?}", self.events.0.lock());
    }

    /// Waits until the Pods with these labels meet a condition.
    pub(crate) async fn pods(&self, labels: &str, hold: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
        let mut last = Vec::new();
        for _ in 0..6000 {
            last = self.list::<Pod>(labels).await;
            last.sort_by_key(ResourceExt::name_any);
            if hold(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("pods are not as they should be after ten minutes: {last:#?}\n{:#?}", self.events.0.lock());
    }

    pub(crate) fn has_event(&self, text: &str) -> bool {
        self.events.0.lock().iter().any(|events| events.contains(text))
    }
}

/// A kind of the tests, in the namespace `default` or cluster-scoped.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
    fn api(client: kube::Client) -> Api<Self>;
}

macro_rules! kinds {
    ($($kind:ty),*) => {
        $(impl Kind for $kind {
            fn api(client: kube::Client) -> Api<Self> {
                Api::namespaced(client, "default")
            }
        })*
    };
}
kinds!(
    Pod,
    k8s_openapi::api::core::v1::PersistentVolumeClaim,
    k8s_openapi::api::apps::v1::Deployment,
    k8s_openapi::api::apps::v1::ReplicaSet,
    k8s_openapi::api::apps::v1::StatefulSet,
    k8s_openapi::api::apps::v1::DaemonSet,
    k8s_openapi::api::batch::v1::Job,
    k8s_openapi::api::batch::v1::CronJob,
    k8s_openapi::api::coordination::v1::Lease
);

impl Kind for Node {
    fn api(client: kube::Client) -> Api<Self> {
        Api::all(client)
    }
}

/// A Pod template with a label and annotations for the simulated kubelet.
pub(crate) fn template(app: &str, image: &str, script: &Value) -> Value {
    json!({"metadata": {"labels": {"app": app}, "annotations": script},
           "spec": {"containers": [{"name": "c", "image": image}]}})
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
