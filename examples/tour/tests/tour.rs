//! Every program of the tour, run against a scripted API server, prints what its Go counterpart prints.

mod programs;
#[path = "../../../crates/kubewright/tests/support/mod.rs"]
mod support;

use std::{fmt, future::Future, sync::Arc};

use kubewright::client::Clients;
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{Ending, FakeApi, Misbehaviour, eventually};

/// What a program has printed.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<String>>>);

impl Paper {
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

/// Runs a program that has no end of its own for as long as the script takes.
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

/// A document that is served as it is.
fn serve(api: &FakeApi, path: &str, body: &Value) {
    api.put("fixed", json!({"metadata": {"name": path}, "body": body}));
}

#[tokio::test(start_paused = true)]
async fn list_namespaces_prints_their_names() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    let names = ["default", "kube-node-lease", "kube-public", "kube-system", "tmp"];
    put_named(&api, "/api/v1/namespaces", &names);
    programs::list_namespaces::run(Clients::new(api.client()), paper.printer()).await.unwrap();
    assert_eq!(paper.take(), names);
}

#[tokio::test(start_paused = true)]
async fn list_watch_prints_the_list_its_version_and_then_the_changes_until_the_watch_ends() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put_config_map("tmp", "kube-root-ca.crt", "1");
    api.put_config_map("elsewhere", "unseen", "1");
    let version = api.revision().to_string();
    let script = async {
        paper.shows(&["Initial list:", "kube-root-ca.crt", &version, "Start watching..."]).await;
        api.put_config_map("tmp", "hello", "1");
        api.put_config_map("tmp", "hello", "2");
        api.bookmark(api.revision());
        api.delete_config_map("tmp", "hello");
        paper.shows(&["ADDED : hello", "MODIFIED : hello", "DELETED : hello"]).await;
        api.end_watches(&Ending::Clean);
    };
    let (ended, ()) = tokio::join!(programs::list_watch::run(api.client(), paper.printer()), script);
    ended.unwrap();
    assert_eq!(api.requests().len(), 2, "a ListWatch does not try again: {:?}", api.requests());
}

#[tokio::test(start_paused = true)]
async fn list_watch_says_why_it_was_refused() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.plan(Misbehaviour::RefuseList { code: 403, reason: "Forbidden", retry_after: None });
    let error = programs::list_watch::run(api.client(), paper.printer()).await.unwrap_err();
    assert!(error.to_string().contains("Forbidden"), "{error}");
    assert!(paper.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reflector_prints_the_deltas_of_pods_with_their_phase() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_pod(&api, "my-demo-app-7sk5h", "Running");
    put_pod(&api, "nginx-deployment-9cs68", "Running");
    let script = async {
        paper
            .shows(&["Replaced : my-demo-app-7sk5h - Running", "Replaced : nginx-deployment-9cs68 - Running"])
            .await;
        put_pod(&api, "my-demo-app-7sk5h", "Running");
        paper.shows(&["Updated : my-demo-app-7sk5h - Running"]).await;
        put_pod(&api, "my-demo-app-8jhjq", "Pending");
        paper.shows(&["Added : my-demo-app-8jhjq - Pending"]).await;
        put_pod(&api, "my-demo-app-8jhjq", "Running");
        paper.shows(&["Updated : my-demo-app-8jhjq - Running"]).await;
        api.delete(PODS, "my-demo-app-7sk5h");
        paper.shows(&["Deleted : my-demo-app-7sk5h - Running"]).await;
    };
    during(programs::reflector::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn reflector_goes_on_after_a_pod_that_cannot_be_decoded() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put(PODS, json!({"metadata": {"namespace": "default", "name": "broken"}, "status": {"phase": 7}}));
    put_pod(&api, "sound", "Running");
    let script = paper.shows(&["Replaced : broken - Unknown", "Replaced : sound - Running"]);
    during(programs::reflector::run(api.client(), paper.printer()), script).await;
}

/// The store of the program is what makes this possible: the queue alone knows only what is still queued.
#[tokio::test(start_paused = true)]
async fn reflector_finds_a_deletion_that_the_watch_has_missed() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_pod(&api, "gone", "Running");
    put_pod(&api, "here", "Running");
    let script = async {
        paper.shows(&["Replaced : gone - Running", "Replaced : here - Running"]).await;
        api.unseen(|api| api.delete(PODS, "gone"));
        api.compact();
        api.end_watches(&Ending::Clean);
        paper.shows(&["Replaced : here - Running", "Deleted : gone - Running"]).await;
    };
    during(programs::reflector::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn controller_prints_the_deltas_of_config_maps() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        paper.shows(&["Start syncing....", "Replaced: hello"]).await;
        api.put_config_map("tmp", "hello2", "1");
        paper.shows(&["Added: hello2"]).await;
        api.put_config_map("tmp", "hello2", "2");
        paper.shows(&["Updated: hello2"]).await;
        api.delete_config_map("tmp", "hello");
        paper.shows(&["Deleted: hello"]).await;
    };
    during(programs::controller::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn informer_prints_what_was_created_updated_and_deleted() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        paper.shows(&["Start syncing....", "created: hello"]).await;
        api.put_config_map("tmp", "hello", "2");
        paper.shows(&["updated: hello"]).await;
        api.delete_config_map("tmp", "hello");
        paper.shows(&["deleted: hello"]).await;
    };
    during(programs::informer::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn shared_informer_tells_both_handlers_over_one_watch() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    let script = async {
        paper.shows(&["Start syncing...."]).await;
        for name in ["hello", "world"] {
            eventually("the watch is open", || api.open_watches() == 1).await;
            api.put_config_map("tmp", name, "1");
            eventually("both handlers have printed", || paper.0.lock().len() == 2).await;
            // Handlers are independent of each other: which one is first is not promised.
            let mut lines = paper.take();
            lines.sort();
            let name = format!("created, printing name: {name}");
            assert_eq!(lines, [&*name, "created, printing namespace: tmp"]);
        }
        assert_eq!(api.requests_with("watch=true").len(), 1);
    };
    during(programs::shared_informer::run(api.client(), paper.printer()), script).await;
    eventually("the watch ends with the program", || api.open_watches() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn indexer_by_namespace_prints_one_map_by_key_and_the_keys_of_the_namespace() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    for name in ["hello3", "hello4", "kube-root-ca.crt"] {
        api.put_config_map("tmp", name, "1");
    }
    api.put_config_map("default", "kube-root-ca.crt", "1");
    programs::indexer_by_namespace::run(api.client(), paper.printer()).await.unwrap();
    assert_eq!(
        paper.take(),
        ["Start syncing....", "hello4", "tmp/hello3", "tmp/hello4", "tmp/kube-root-ca.crt"]
    );
}

#[tokio::test(start_paused = true)]
async fn indexer_by_labels_prints_the_maps_of_each_label() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_labelled(&api, "default", "a", &json!({"app": "front", "tier": "web"}));
    put_labelled(&api, "tmp", "b", &json!({"app": "identity"}));
    put_labelled(&api, "tmp", "c", &json!({}));
    programs::indexer_by_labels::run(api.client(), paper.printer()).await.unwrap();
    assert_eq!(paper.take(), ["Start syncing....", "app: default/a", "app: tmp/b", "tier: default/a"]);
}

#[tokio::test(start_paused = true)]
async fn factory_makes_one_informer_per_kind_and_reads_its_cache() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put_config_map("tmp", "hello", "1");
    api.put_config_map("default", "other", "1");
    put_named(&api, "/api/v1/services", &["kubernetes"]);
    programs::factory::run(api.client(), paper.printer()).await.unwrap();
    assert_eq!(
        paper.take(),
        ["asked twice, the same informer: true", "2 config maps, 1 services", "tmp/hello"]
    );
    let requests = api.requests_with("/configmaps");
    let (watches, lists): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| request.contains("watch=true"));
    assert!(lists.len() == 1 && watches.len() <= 1, "one list and one watch per kind: {requests:?}");
    assert_eq!(api.open_watches(), 0, "a factory that is shut down watches nothing");
}

#[tokio::test(start_paused = true)]
async fn work_queue_hands_every_new_map_to_a_worker() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    api.put_config_map("tmp", "hello", "1");
    let script = async {
        paper.shows(&["[tmp/hello] received", "[tmp/hello] processed."]).await;
        api.put_config_map("tmp", "world", "1");
        paper.shows(&["[tmp/world] received", "[tmp/world] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_drops_what_keeps_failing_after_the_retries() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_labelled(&api, "tmp", "empty", &json!({}));
    let script = paper.shows(&[
        "[tmp/empty] received",
        "error processing tmp/empty: no data, retry 0",
        "error processing tmp/empty: no data, retry 1",
        "error processing tmp/empty: no data, retry 2",
        "max retries exceeded, dropping item tmp/empty out of the queue: no data",
    ]);
    during(programs::work_queue::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_finishes_what_is_mended_between_two_tries() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_labelled(&api, "tmp", "hello", &json!({}));
    let script = async {
        paper.shows(&["[tmp/hello] received", "error processing tmp/hello: no data, retry 0"]).await;
        api.put_config_map("tmp", "hello", "1");
        paper.shows(&["[tmp/hello] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn work_queue_has_nothing_to_do_for_a_map_that_is_gone() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_labelled(&api, "tmp", "hello", &json!({}));
    let script = async {
        paper.shows(&["[tmp/hello] received"]).await;
        api.delete_config_map("tmp", "hello");
        paper.shows(&["[tmp/hello] processed."]).await;
    };
    during(programs::work_queue::run(api.client(), paper.printer()), script).await;
}

#[tokio::test(start_paused = true)]
async fn delta_fifo_prints_the_list_and_then_what_happened() {
    let paper = Paper::default();
    programs::delta_fifo::run(paper.printer()).await.unwrap();
    assert_eq!(
        paper.take(),
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
async fn the_rest_client_asks_the_url_that_it_prints() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_pod(&api, "nginx", "Running");
    programs::clients_rest::run(Clients::new(api.client()), paper.printer()).await.unwrap();
    let url = "/api/v1/namespaces/default/pods?limit=500";
    assert_eq!(paper.take(), [url, "0 nginx"]);
    assert_eq!(api.requests(), [format!("GET {url}")]);
}

#[tokio::test(start_paused = true)]
async fn the_typed_client_prints_nodes() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    put_named(&api, "/api/v1/nodes", &["master", "worker-1"]);
    programs::clients_typed::run(Clients::new(api.client()), paper.printer()).await.unwrap();
    assert_eq!(paper.take(), ["0 master", "1 worker-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_dynamic_client_prints_deployments_without_knowing_their_type() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    for (name, spec) in [("my-demo-app", json!({})), ("nginx-deployment", json!({"replicas": 3}))] {
        api.put(
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"namespace": "default", "name": name}, "spec": spec}),
        );
    }
    programs::clients_dynamic::run(Clients::new(api.client()), paper.printer()).await.unwrap();
    assert_eq!(paper.take(), ["0 my-demo-app (1 replicas)", "1 nginx-deployment (3 replicas)"]);
    assert_eq!(api.requests(), ["GET /apis/apps/v1/deployments?"], "no discovery is needed");
}

#[tokio::test(start_paused = true)]
async fn the_discovery_client_prints_the_core_resources() {
    let (api, paper) = (FakeApi::new(), Paper::default());
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
    programs::clients_discovery::run(Clients::new(api.client()), paper.printer()).await.unwrap();
    assert_eq!(paper.take(), ["configmaps", "pods", "pods/log"]);
}

#[tokio::test(start_paused = true)]
async fn the_discovery_client_says_when_there_is_no_core_group() {
    let (api, paper) = (FakeApi::new(), Paper::default());
    for path in ["/api", "/apis"] {
        serve(
            &api,
            path,
            &json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []}),
        );
    }
    let refused = programs::clients_discovery::run(Clients::new(api.client()), paper.printer()).await;
    assert_eq!(refused.unwrap_err().to_string(), "the server does not serve v1");
}
