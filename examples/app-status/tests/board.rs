//! The board in a cluster: added and removed kinds, and objects that become ready.

use std::time::Duration;

use app_status::{Board, Row, State, options::Format, show, terminal::Output};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use kubewright_cluster::{Cluster, HarnessError};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn deployment(name: &str, annotations: &Value) -> String {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": annotations},
                     "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
    .to_string()
}

fn request_kinds(name: &str, kinds: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"kinds": kinds},
           "metadata": {"name": name, "labels": {"app-status.kubewright.dev/watch": "true"}}})
    .to_string()
}

const CARTS: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "carts.shop.example"},
    "spec": {"group": "shop.example", "scope": "Namespaced", "names": {"plural": "carts", "kind": "Cart"},
             "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;
const CART: &str = "{apiVersion: shop.example/v1, kind: Cart, metadata: {name: mine}, spec: {}}";

/// The rows, as `Kind namespace/name State ready`.
fn rows(board: &Board) -> Vec<String> {
    let say = |row: &Row| {
        let ready = row.health.ready.as_deref().unwrap_or_default();
        format!("{} {} {} {ready}", row.kind, row.path(), row.health.state.word()).trim_end().to_owned()
    };
    board.rows().iter().map(say).collect()
}

async fn until(cluster: &Cluster, what: &str, holds: impl Fn() -> bool) -> Result<(), HarnessError> {
    cluster.eventually(what, async |_: &Cluster| Ok(holds().then_some(()))).await
}

#[kubewright_cluster::test(real)]
async fn an_object_is_shown_from_creation_to_deletion(cluster: Cluster) {
    let board = Board::new(["deploy"]);
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    until(&cluster, "the board is complete", || board.is_complete()).await.unwrap();
    assert_eq!(board.kinds(), ["deployments.apps"]);
    assert!(board.rows().is_empty());

    cluster.apply(&deployment("web", &json!({"sim.kubewright.dev/start-delay": "20s"}))).await.unwrap();
    cluster.advance(5 * SECOND).await;
    assert_eq!(rows(&board), ["Deployment default/web Progressing 0/2"]);
    cluster.advance(20 * SECOND).await;
    assert_eq!(rows(&board), ["Deployment default/web Ready 2/2"]);

    let api = Api::<Deployment>::namespaced(cluster.client(), "default");
    let more = Patch::Merge(json!({"spec": {"replicas": 3}}));
    api.patch("web", &PatchParams::default(), &more).await.unwrap();
    cluster.advance(5 * SECOND).await;
    assert_eq!(rows(&board), ["Deployment default/web Progressing 2/3"]);

    cluster.delete::<Deployment>("default/web").await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.rows().is_empty());
}

#[kubewright_cluster::test(real)]
async fn a_stuck_object_is_shown_as_failed(cluster: Cluster) {
    let board = Board::new(["pods"]);
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    cluster.apply(&deployment("web", &json!({"sim.kubewright.dev/image-pull-error": "true"}))).await.unwrap();
    let failed =
        || board.rows().len() == 2 && board.rows().iter().all(|row| row.health.state == State::Failed);
    until(&cluster, "both pods have failed", failed).await.unwrap();
}

#[kubewright_cluster::test(real)]
async fn kinds_are_added_changed_and_removed_at_run_time(cluster: Cluster) {
    cluster.apply(&deployment("web", &json!({}))).await.unwrap();
    let board = Board::new(Vec::<String>::new());
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.is_complete() && board.kinds().is_empty());

    cluster.apply(&request_kinds("workloads", "deployments, rs")).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds(), ["deployments.apps", "replicasets.apps"]);
    assert_eq!(board.rows().len(), 2);

    cluster.apply(&request_kinds("workloads", "services\ndeployments")).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds(), ["services", "deployments.apps"], "in the requested order");
    assert_eq!(rows(&board), ["Service default/kubernetes Ready", "Deployment default/web Ready 2/2"]);

    // A ConfigMap of another name requests the same kinds.
    cluster.delete::<ConfigMap>("default/workloads").await.unwrap();
    cluster.apply(&request_kinds("renamed", "services deployments")).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds(), ["services", "deployments.apps"]);

    cluster.delete::<ConfigMap>("default/renamed").await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.kinds().is_empty() && board.rows().is_empty());
}

#[kubewright_cluster::test(real)]
async fn a_kind_that_two_request_stays_until_the_second_is_deleted(cluster: Cluster) {
    let board = Board::new(Vec::<String>::new());
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    cluster.apply(&request_kinds("one", "deployments")).await.unwrap();
    cluster.apply(&request_kinds("two", "deploy pods")).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds(), ["deployments.apps", "pods"]);
    cluster.delete::<ConfigMap>("default/one").await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds(), ["deployments.apps", "pods"]);
    cluster.delete::<ConfigMap>("default/two").await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.kinds().is_empty());
}

#[kubewright_cluster::test(real)]
async fn config_maps_without_the_label_are_ignored(cluster: Cluster) {
    let board = Board::new(Vec::<String>::new());
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    let foreign = request_kinds("theirs", "deployments").replace("app-status.kubewright.dev/watch", "app");
    cluster.apply(&foreign).await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.kinds().is_empty());

    // Without the label it requests nothing.
    cluster.apply(&request_kinds("ours", "deployments")).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(board.kinds().len(), 1);
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    let off = Patch::Merge(json!({"metadata": {"labels": {"app-status.kubewright.dev/watch": null}}}));
    api.patch("ours", &PatchParams::default(), &off).await.unwrap();
    cluster.settled().await.unwrap();
    assert!(board.kinds().is_empty());
}

#[kubewright_cluster::test(real)]
async fn a_custom_kind_is_shown_while_its_definition_exists(cluster: Cluster) {
    let board = Board::new(["carts", "nonsense"]);
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    cluster.settled().await.unwrap();
    let missing: Vec<String> = board.missing().into_iter().map(|(word, _)| word).collect();
    assert_eq!(missing, ["carts", "nonsense"]);

    cluster.apply(CARTS).await.unwrap();
    cluster.settled().await.unwrap();
    cluster.apply(CART).await.unwrap();
    let unknown = || rows(&board) == ["Cart default/mine Unknown"];
    until(&cluster, "it is shown without a status", unknown).await.unwrap();
    assert_eq!(board.missing().len(), 1);

    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example", "v1", "Cart"));
    let carts = Api::<DynamicObject>::namespaced_with(cluster.client(), "default", &kind);
    for (status, shown) in [
        (json!({"phase": "Packing"}), "Cart default/mine Progressing"),
        (json!({"phase": "ready"}), "Cart default/mine Ready"),
        (
            json!({"conditions": [{"type": "Ready", "status": "False", "message": "the shelf is empty"}]}),
            "Cart default/mine NotReady",
        ),
    ] {
        let patch = Patch::Merge(json!({"status": status}));
        carts.patch_status("mine", &PatchParams::default(), &patch).await.unwrap();
        until(&cluster, shown, || rows(&board) == [shown]).await.unwrap();
    }
    assert_eq!(board.rows()[0].health.message, "the shelf is empty");

    cluster.delete::<CustomResourceDefinition>("carts.shop.example").await.unwrap();
    // A real server announces a kind a moment longer than its definition exists.
    let gone = || board.kinds().is_empty() && board.rows().is_empty();
    until(&cluster, "the kind is gone", gone).await.unwrap();
    cluster.apply(CARTS).await.unwrap();
    until(&cluster, "it is back", || board.kinds() == ["carts.shop.example"]).await.unwrap();
}

#[kubewright_cluster::test(real)]
async fn after_a_restart_all_kinds_are_shown_again(cluster: Cluster) {
    cluster.apply(&request_kinds("workloads", "deployments")).await.unwrap();
    cluster.apply(&deployment("web", &json!({}))).await.unwrap();
    let first = Board::new(["services"]);
    let operator = cluster.run(app_status::operator(&first)).await.unwrap();
    cluster.settled().await.unwrap();
    drop(operator);

    cluster.apply(&deployment("late", &json!({}))).await.unwrap();
    let second = Board::new(["services"]);
    let _operator = cluster.run(app_status::operator(&second)).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(
        rows(&second),
        [
            "Service default/kubernetes Ready",
            "Deployment default/late Ready 2/2",
            "Deployment default/web Ready 2/2"
        ]
    );
}

#[kubewright_cluster::test(real)]
async fn with_one_namespace_others_are_not_shown(cluster: Cluster) {
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await.unwrap();
    cluster.apply(&deployment("web", &json!({}))).await.unwrap();
    let board = Board::new(["deployments", "nodes"]).namespace("shop");
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(rows(&board), ["Node node-0 Ready", "Node node-1 Ready", "Node node-2 Ready"]);
}

#[kubewright_cluster::test(real)]
async fn the_board_can_be_printed_once_as_a_table_and_as_json(cluster: Cluster) {
    cluster.apply(&deployment("web", &json!({}))).await.unwrap();
    cluster.settled().await.unwrap();
    let board = Board::new(["deployments", "frobs"]);
    let _operator = cluster.run(app_status::operator(&board)).await.unwrap();
    let output = Output { live: false, colour: false };
    let mut table = Vec::new();
    show::once(&board, Format::Table, output, &mut table).await.unwrap();
    let table = String::from_utf8(table).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("● Deployment  default/web  Ready        2/2"), "{table}");
    assert!(lines[2].starts_with("? frobs  the server has no \"frobs\""), "{table}");

    let mut json = Vec::new();
    show::once(&board, Format::Json, output, &mut json).await.unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let web = cluster.get::<Deployment>("default/web").await.unwrap();
    assert_eq!(json[0]["created"], json!(web.metadata.creation_timestamp));
    assert_eq!((&json[0]["state"], &json[0]["ready"]), (&json!("Ready"), &json!("2/2")));
}
