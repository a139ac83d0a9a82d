//! Runs every program of the tour against a scripted API server and compares its output with that of its Go
//! counterpart.

mod programs;
#[path = "../../../crates/kubewright/tests/support/mod.rs"]
mod support;

use std::{fmt, future::Future, sync::Arc};

use kubewright::client::Clients;
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{Ending, FakeApi, Misbehaviour, eventually};

/// Output of a program.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<String>>>);

impl Output {
    fn printer(&self) -> impl Fn(String) + Clone + Send + 'static {
        let lines = Arc::clone(&self.0);
        move |line| lines.lock().push(line)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    /// Waits for as many lines as are expected and compares.
    async fn shows(&self, expected: &[&str]) {
        eventually(&format!("{expected:?} is printed"), || self.0.lock().len() >= expected.len()).await;
        assert_eq!(self.take(), expected);
    }
}

/// Runs a program that does not end by itself until the script ends.
async fn during<T: fmt::Debug>(program: impl Future<Output = T>, script: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        ended = program => panic!("the program has ended: {ended:?}"),
        () = script => {}
    }
}

fn put_named(api: &FakeApi, collection: &str, names: &[&str]) {
    for name in names {
        api.put(collection, json!({"metadata": {"name": name}}));
    }
}

fn put_labelled(api: &FakeApi, namespace: &str, name: &str, labels: &Value) {
    api.put(
        &format!("/api/v1/namespaces/{namespace}/configmaps"),
        json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}}),
    );
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn put_pod(api: &FakeApi, name: &str, phase: &str) {
    api.put(PODS, json!({"metadata": {"namespace": "default", "name": name}, "status": {"phase": phase}}));
}

/// Serves a document.
fn serve(api: &FakeApi, path: &str, body: &Value) {
    api.put("fixed", json!({"metadata": {"name": path}, "body": body}));
}

#[tokio::test(start_paused = true)]
async fn list_namespaces_prints_their_names() {
    let (api, output) = (FakeApi::new(), Output::default());
    let names = ["default", "kube-node-lease", "kube-public", "kube-system", "tmp"];
    put_named(&api, "/api/v1/namespaces", &names);
    programs::list_namespaces::run(Clients::new(api.client()), output.printer()).await.unwrap();
    assert_eq!(output.take(), names);
}

#[tokio::test(start_paused = true)]
async fn list_watch_prints_the_list_its_version_and_then_the_changes_until_the_watch_ends() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put_config_map("tmp", "kube-root-ca.crt", "1");
    api.put_config_map("elsewhere", "unseen", "1");
    let version = api.revision().to_string();
    let script = async {
        output.shows(&["Initial list:", "kube-root-ca.crt", &version, "Start watching..."]).await;
        api.put_config_map("tmp", "hello", "1");
        api.put_config_map("tmp", "hello", "2");
        api.bookmark(api.revision());
        api.delete_config_map("tmp", "hello");
        output.shows(&["ADDED : hello", "MODIFIED : hello", "DELETED : hello"]).await;
        api.end_watches(&Ending::Clean);
    };
    let (ended, ()) = tokio::join!(programs::list_watch::run(api.client(), output.printer()), script);
    ended.unwrap();
    assert_eq!(api.requests().len(), 2, "a ListWatch does not try again: {:?}", api.requests());
}

#[tokio::test(start_paused = true)]
async fn list_watch_returns_why_it_was_refused() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.plan(Misbehaviour::RefuseList { code: 403, reason: "Forbidden", retry_after: None });
    let error = programs::list_watch::run(api.client(), output.printer()).await.unwrap_err();
    assert!(error.to_string().contains("Forbidden"), "{error}");
    assert!(output.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reflector_prints_the_deltas_of_pods_with_their_phase() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_pod(&api, "my-demo-app-7sk5h", "Running");
    put_pod(&api, "nginx-deployment-9cs68", "Running");
    let script = async {
        output
            .shows(&["Replaced : my-demo-app-7sk5h - Running", "Replaced : nginx-deployment-9cs68 - Running"])
            .await;
        put_pod(&api, "my-demo-app-7sk5h", "Running");
        output.shows(&["Updated : my-demo-app-7sk5h - Running"]).await;
        put_pod(&api, "my-demo-app-8jhjq", "Pending");
        output.shows(&["Added : my-demo-app-8jhjq - Pending"]).await;
        put_pod(&api, "my-demo-app-8jhjq", "Running");
        output.shows(&["Updated : my-demo-app-8jhjq - Running"]).await;
        api.delete(PODS, "my-demo-app-7sk5h");
        output.shows(&["Deleted : my-demo-app-7sk5h - Running"]).await;
    };
    during(programs::reflector::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn reflector_continues_after_a_pod_that_cannot_be_decoded() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put(PODS, json!({"metadata": {"namespace": "default", "name": "broken"}, "status": {"phase": 7}}));
    put_pod(&api, "sound", "Running");
    let script = output.shows(&["Replaced : broken - Unknown", "Replaced : sound - Running"]);
    during(programs::reflector::run(api.client(), output.printer()), script).await;
}

/// Needs the store of the program: the queue alone knows only what is still queued.
#[tokio::test(start_paused = true)]
async fn reflector_detects_a_deletion_that_the_watch_has_missed() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_pod(&api, "gone", "Running");
    put_pod(&api, "here", "Running");
    let script = async {
        output.shows(&["Replaced : gone - Running", "Replaced : here - Running"]).await;
        api.unseen(|api| api.delete(PODS, "gone"));
        api.compact();
        api.end_watches(&Ending::Clean);
        output.shows(&["Replaced : here - Running", "Deleted : gone - Running"]).await;
    };
    during(programs::reflector::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn controller_prints_the_deltas_of_config_maps() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        output.shows(&["Start syncing....", "Replaced: hello"]).await;
        api.put_config_map("tmp", "hello2", "1");
        output.shows(&["Added: hello2"]).await;
        api.put_config_map("tmp", "hello2", "2");
        output.shows(&["Updated: hello2"]).await;
        api.delete_config_map("tmp", "hello");
        output.shows(&["Deleted: hello"]).await;
    };
    during(programs::controller::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn informer_prints_what_was_created_updated_and_deleted() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        output.shows(&["Start syncing....", "created: hello"]).await;
        api.put_config_map("tmp", "hello", "2");
        output.shows(&["updated: hello"]).await;
        api.delete_config_map("tmp", "hello");
        output.shows(&["deleted: hello"]).await;
    };
    during(programs::informer::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn shared_informer_dispatches_to_both_handlers_over_one_watch() {
    let (api, output) = (FakeApi::new(), Output::default());
    let script = async {
        output.shows(&["Start syncing...."]).await;
        for name in ["hello", "world"] {
            eventually("the watch is open", || api.open_watches() == 1).await;
            api.put_config_map("tmp", name, "1");
            eventually("both handlers have printed", || output.0.lock().len() == 2).await;
            // Handlers are independent of each other: their order is not guaranteed.
            let mut lines = output.take();
            lines.sort();
            let name = format!("created, printing name: {name}");
            assert_eq!(lines, [&*name, "created, printing namespace: tmp"]);
        }
        assert_eq!(api.requests_with("watch=true").len(), 1);
    };
    during(programs::shared_informer::run(api.client(), output.printer()), script).await;
    eventually("the watch ends with the program", || api.open_watches() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn indexer_by_namespace_prints_one_map_by_key_and_the_keys_of_the_namespace() {
    let (api, output) = (FakeApi::new(), Output::default());
    for name in ["hello3", "hello4", "kube-root-ca.crt"] {
        api.put_config_map("tmp", name, "1");
    }
    api.put_config_map("default", "kube-root-ca.crt", "1");
    programs::indexer_by_namespace::run(api.client(), output.printer()).await.unwrap();
    assert_eq!(
        output.take(),
        ["Start syncing....", "hello4", "tmp/hello3", "tmp/hello4", "tmp/kube-root-ca.crt"]
    );
}

#[tokio::test(start_paused = true)]
async fn indexer_by_labels_prints_the_maps_of_each_label() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_labelled(&api, "default", "a", &json!({"app": "front", "tier": "web"}));
    put_labelled(&api, "tmp", "b", &json!({"app": "identity"}));
    put_labelled(&api, "tmp", "c", &json!({}));
    programs::indexer_by_labels::run(api.client(), output.printer()).await.unwrap();
    assert_eq!(output.take(), ["Start syncing....", "app: default/a", "app: tmp/b", "tier: default/a"]);
}

#[tokio::test(start_paused = true)]
async fn factory_creates_one_informer_per_kind_and_reads_its_cache() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put_config_map("tmp", "hello", "1");
    api.put_config_map("default", "other", "1");
    put_named(&api, "/api/v1/services", &["kubernetes"]);
    programs::factory::run(api.client(), output.printer()).await.unwrap();
    assert_eq!(
        output.take(),
        ["asked twice, the same informer: true", "2 config maps, 1 services", "tmp/hello"]
    );
    let requests = api.requests_with("/configmaps");
    let (watches, lists): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| request.contains("watch=true"));
    assert!(lists.len() == 1 && watches.len() <= 1, "one list and one watch per kind: {requests:?}");
    assert_eq!(api.open_watches(), 0, "a factory that is shut down watches nothing");
}

#[tokio::test(start_paused = true)]
async fn work_queue_gives_every_new_map_to_a_worker() {
    let (api, output) = (FakeApi::new(), Output::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        output.shows(&["[tmp/hello] received", "[tmp/hello] processed."]).await;
        api.put_config_map("tmp", "world", "1");
        output.shows(&["[tmp/world] received", "[tmp/world] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_drops_a_key_that_keeps_failing_after_the_retries() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_labelled(&api, "tmp", "empty", &json!({}));
    let script = output.shows(&[
        "[tmp/empty] received",
        "error processing tmp/empty: no data, retry 0",
        "error processing tmp/empty: no data, retry 1",
        "error processing tmp/empty: no data, retry 2",
        "max retries exceeded, dropping item tmp/empty out of the queue: no data",
    ]);
    during(programs::work_queue::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_completes_a_map_that_is_corrected_between_retries() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_labelled(&api, "tmp", "hello", &json!({}));
    let script = async {
        output.shows(&["[tmp/hello] received", "error processing tmp/hello: no data, retry 0"]).await;
        api.put_config_map("tmp", "hello", "1");
        output.shows(&["[tmp/hello] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_ignores_a_deleted_map() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_labelled(&api, "tmp", "hello", &json!({}));
    let script = async {
        output.shows(&["[tmp/hello] received"]).await;
        api.delete_config_map("tmp", "hello");
        output.shows(&["[tmp/hello] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), output.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn delta_fifo_prints_the_list_and_then_what_happened() {
    let output = Output::default();
    programs::delta_fifo::run(output.printer()).await.unwrap();
    assert_eq!(
        output.take(),
        [
            "[{pod1 1} {pod2 2} {pod3 3}]",
            "Add Event: {pod1 1}",
            "Add Event: {pod2 2}",
            "Add Event: {pod3 3}",
            "Update Event: {pod1-update 1}",
            "Delete Event: {pod1-update 1}",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_rest_client_requests_the_url_that_it_prints() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_pod(&api, "nginx", "Running");
    programs::clients_rest::run(Clients::new(api.client()), output.printer()).await.unwrap();
    let url = "/api/v1/namespaces/default/pods?limit=500";
    assert_eq!(output.take(), [url, "0 nginx"]);
    assert_eq!(api.requests(), [format!("GET {url}")]);
}

#[tokio::test(start_paused = true)]
async fn the_typed_client_prints_nodes() {
    let (api, output) = (FakeApi::new(), Output::default());
    put_named(&api, "/api/v1/nodes", &["master", "worker-1"]);
    programs::clients_typed::run(Clients::new(api.client()), output.printer()).await.unwrap();
    assert_eq!(output.take(), ["0 master", "1 worker-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_dynamic_client_prints_deployments_without_their_type() {
    let (api, output) = (FakeApi::new(), Output::default());
    for (name, spec) in [("my-demo-app", json!({})), ("nginx-deployment", json!({"replicas": 3}))] {
        api.put(
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"namespace": "default", "name": name}, "spec": spec}),
        );
    }
    programs::clients_dynamic::run(Clients::new(api.client()), output.printer()).await.unwrap();
    assert_eq!(output.take(), ["0 my-demo-app (1 replicas)", "1 nginx-deployment (3 replicas)"]);
    assert_eq!(api.requests(), ["GET /apis/apps/v1/deployments?"], "no discovery is needed");
}

#[tokio::test(start_paused = true)]
async fn the_discovery_client_prints_the_core_resources() {
    let (api, output) = (FakeApi::new(), Output::default());
    let list = |items: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let resource = |plural: &str, kind: &str, parts: Value| {
        json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": ["list"],
               "singularResource": kind.to_lowercase(), "subresources": parts})
    };
    let log = json!([{"subresource": "log", "responseKind": {"kind": "Pod"}, "verbs": ["get"]}]);
    let core = json!([resource("configmaps", "ConfigMap", json!([])), resource("pods", "Pod", log)]);
    let versions = json!([{"version": "v1", "freshness": "Current", "resources": core}]);
    serve(&api, "/api", &list(json!([{"metadata": {}, "versions": versions}])));
    serve(&api, "/apis", &list(json!([])));
    programs::clients_discovery::run(Clients::new(api.client()), output.printer()).await.unwrap();
    assert_eq!(output.take(), ["configmaps", "pods", "pods/log"]);
}

#[tokio::test(start_paused = true)]
async fn the_discovery_client_reports_a_missing_core_group() {
    let (api, output) = (FakeApi::new(), Output::default());
    for path in ["/api", "/apis"] {
        serve(
            &api,
            path,
            &json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []}),
        );
    }
    let refused = programs::clients_discovery::run(Clients::new(api.client()), output.printer()).await;
    assert_eq!(refused.unwrap_err().to_string(), "the server does not serve v1");
}
