//! Operations on any resource, as they are sent and as they are answered.

use futures::StreamExt as _;
use k8s_openapi::{api::autoscaling::v1::Scale, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::WatchEvent,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    ApiError, Clients, Refusal as _,
    testing::{
        self, Log,
        cluster::{Cluster, Form},
    },
};

/// A server with discovery, which answers everything else with `answer`.
fn serve(answer: Value) -> (Log, DynamicClient) {
    let cluster = Cluster::new(Form::Aggregated);
    let (log, client) = testing::client(move |seen| {
        if seen.line == "GET /api" || seen.line == "GET /apis" {
            return cluster.answer(seen);
        }
        testing::json(200, &answer)
    });
    (log, Clients::new(client).dynamic())
}

fn widgets() -> GroupVersionResource {
    GroupVersionResource::gvr("a.example.com", "v1", "widgets")
}

fn widget(name: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "a.example.com/v1", "kind": "Widget",
        "metadata": { "name": name, "namespace": "shop" }, "spec": { "size": 3 },
    }))
    .unwrap()
}

#[tokio::test]
async fn every_operation_is_the_request_that_it_should_be() {
    let (log, client) = serve(json!(widget("w")));
    let shop = client.resource(&widgets()).namespace("shop");
    let object = widget("w");
    shop.get("w").await.unwrap();
    shop.create(&PostParams { dry_run: true, field_manager: Some("me".into()) }, &object).await.unwrap();
    shop.update(&PostParams::default(), &object).await.unwrap();
    shop.patch("w", &PatchParams::default(), &Patch::Merge(json!({ "spec": null }))).await.unwrap();
    shop.apply(&PatchParams::apply("me").force(), &object).await.unwrap();
    shop.delete("w", &DeleteParams::background()).await.unwrap();
    shop.delete_collection(&DeleteParams::default(), &ListParams::default().labels("a=b")).await.unwrap();
    let _: DynamicObject = shop.status().get("w").await.unwrap();
    let _: DynamicObject = shop.status().update("w", &PostParams::default(), &object).await.unwrap();
    let _: DynamicObject =
        shop.status().patch("w", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
    shop.status().apply(&PatchParams::apply("me"), &object).await.unwrap();
    let _: Value = shop.scale().get("w").await.unwrap();
    let _: Value =
        shop.subresource("eviction").create("w", &PostParams::default(), &json!({})).await.unwrap();
    client.resource(&GroupVersionResource::gvr("", "v1", "nodes")).get("system:n 1?x").await.unwrap();
    // kube leaves a lone `?` where there are no parameters.
    let lines: Vec<_> =
        log.lines().iter().map(|line| line.replace("?&", "?").trim_end_matches('?').to_owned()).collect();
    let base = "/apis/a.example.com/v1/namespaces/shop/widgets";
    assert_eq!(
        lines,
        [
            format!("GET {base}/w"),
            format!("POST {base}?dryRun=All&fieldManager=me"),
            format!("PUT {base}/w"),
            format!("PATCH {base}/w"),
            format!("PATCH {base}/w?force=true&fieldManager=me"),
            format!("DELETE {base}/w"),
            format!("DELETE {base}?labelSelector=a%3Db"),
            format!("GET {base}/w/status"),
            format!("PUT {base}/w/status"),
            format!("PATCH {base}/w/status"),
            format!("PATCH {base}/w/status?fieldManager=me"),
            format!("GET {base}/w/scale"),
            format!("POST {base}/w/eviction"),
            "GET /api/v1/nodes/system:n%201%3Fx".to_owned(),
        ]
    );
    assert_eq!(log.all()[4].headers["content-type"], "application/apply-patch+yaml");
}

#[tokio::test]
async fn a_kind_is_found_through_the_mapper_and_its_scope_is_known() {
    let (log, client) = serve(json!({ "metadata": { "name": "x" } }));
    let deployments = client.kind(&GroupVersionKind::gvk("apps", "v1", "Deployment")).await.unwrap();
    assert_eq!(deployments.api_resource().plural, "deployments");
    let error = deployments.get("web").await.unwrap_err();
    assert!(matches!(error, ApiError::Request { .. }), "{error}");
    assert!(error.to_string().contains(".namespace("), "{error}");
    log.clear();
    deployments.clone().default_namespace().get("web").await.unwrap();
    client.find("ns").await.unwrap().namespace("ignored").get("shop").await.unwrap();
    let lines = log.lines();
    assert_eq!(
        lines,
        ["GET /apis/apps/v1/namespaces/default/deployments/web", "GET /api/v1/namespaces/shop"]
    );
    assert!(client.find("nonsense").await.unwrap_err().is_no_match());
}

#[tokio::test]
async fn an_object_leads_to_its_resource_and_namespace() {
    let (log, client) = serve(json!(widget("w")));
    let object = widget("w");
    client.object(&object).await.unwrap().update(&PostParams::default(), &object).await.unwrap();
    let put = log.lines().pop().unwrap();
    assert!(put.starts_with("PUT /apis/a.example.com/v1/namespaces/shop/widgets/w"), "{put}");
    let mut untyped = object.clone();
    untyped.types = None;
    assert!(matches!(client.object(&untyped).await.unwrap_err(), MapperError::Untyped));
}

#[tokio::test]
async fn items_of_a_list_know_what_they_are() {
    let (_, client) = serve(json!({
        "apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": { "resourceVersion": "5", "continue": "more" },
        "items": [{ "metadata": { "name": "a" } }, { "apiVersion": "x/v1", "kind": "Own", "metadata": { "name": "b" } }],
    }));
    let list = client.resource(&widgets()).list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(list.metadata.continue_.as_deref(), Some("more"));
    let kinds: Vec<_> = list.items.iter().map(|item| item.types.as_ref().unwrap()).collect();
    assert_eq!((kinds[0].api_version.as_str(), kinds[0].kind.as_str()), ("apps/v1", "Deployment"));
    assert_eq!(kinds[1].kind, "Own", "what an item says itself stands");
    let (_, client) = serve(json!({ "kind": "List", "apiVersion": "v1", "items": null }));
    assert!(client.resource(&widgets()).list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_deletion_is_done_or_pending() {
    let (_, client) = serve(json!({ "kind": "Status", "status": "Success", "details": { "name": "w" } }));
    let done = client.resource(&widgets()).delete("w", &DeleteParams::default()).await.unwrap();
    assert!(matches!(done, Deletion::Done(status) if status.is_success()));
    let (_, client) = serve(json!(widget("w")));
    let pending = client.resource(&widgets()).delete("w", &DeleteParams::default()).await.unwrap();
    assert!(matches!(pending, Deletion::Pending(object) if object.metadata.name.as_deref() == Some("w")));
}

#[tokio::test]
async fn a_subresource_has_a_kind_of_its_own_and_its_errors_name_it() {
    let (_, client) = serve(json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "w" }, "spec": { "replicas": 4 },
    }));
    let shop = client.resource(&widgets()).namespace("shop");
    let scale: Scale = shop.scale().get("w").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(4));
    let error = shop.scale().get::<Vec<u8>>("w").await.unwrap_err();
    assert!(
        error.to_string().starts_with("GET /apis/a.example.com/v1/namespaces/shop/widgets/w/scale: "),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_applied_has_a_type_and_a_manager_and_no_managed_fields() {
    let (log, client) = serve(json!(widget("w")));
    let mut object = widget("w");
    object.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
    let shop = client.resource(&widgets()).namespace("shop");
    shop.apply(&PatchParams::apply("me"), &object).await.unwrap();
    let sent: Value = serde_json::from_str(&log.all()[0].body).unwrap();
    assert_eq!(sent["kind"], "Widget");
    assert!(sent["metadata"].get("managedFields").is_none());

    let error = shop.apply(&PatchParams::default(), &object).await.unwrap_err();
    assert!(error.to_string().contains("field manager"), "{error}");
    object.types = None;
    let error = shop.apply(&PatchParams::apply("me"), &object).await.unwrap_err();
    assert!(error.to_string().contains("apiVersion and kind"), "{error}");
    let by_kind = client.find("widgets.a.example.com").await.unwrap().namespace("shop");
    log.clear();
    by_kind.apply(&PatchParams::apply("me"), &object).await.unwrap();
    let sent: Value = serde_json::from_str(&log.all()[0].body).unwrap();
    assert_eq!((&sent["apiVersion"], &sent["kind"]), (&json!("a.example.com/v1"), &json!("Widget")));
    object.metadata.name = None;
    let error = by_kind.apply(&PatchParams::apply("me"), &object).await.unwrap_err();
    assert!(error.to_string().contains("metadata.name"), "{error}");
}

#[tokio::test]
async fn names_that_would_reach_elsewhere_are_refused() {
    let (log, client) = serve(json!({}));
    let widgets = client.resource(&widgets()).namespace("shop");
    for error in [
        widgets.get("../secrets/x").await.unwrap_err(),
        widgets.get("..").await.unwrap_err(),
        widgets.get("").await.unwrap_err(),
        widgets.clone().namespace("a/b").list(&ListParams::default()).await.unwrap_err(),
        widgets.subresource("a/b").get::<Value>("w").await.unwrap_err(),
        client.resource(&GroupVersionResource::gvr("", "v1", "")).get("w").await.unwrap_err(),
    ] {
        assert!(matches!(error, ApiError::Request { .. }), "{error}");
    }
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn refusals_come_through_and_a_missing_object_is_none() {
    let (_, client) = testing::client(|seen| match seen.line.as_str() {
        line if line.starts_with("GET ") => testing::refusal(404, "NotFound", "widgets \"w\" not found"),
        line if line.starts_with("POST ") => {
            testing::refusal(409, "AlreadyExists", "widgets \"w\" already exists")
        }
        _ => testing::refusal(409, "Conflict", "the object has been modified"),
    });
    let shop = Clients::new(client).dynamic().resource(&widgets()).namespace("shop");
    assert!(shop.get("w").await.unwrap_err().is_not_found());
    assert_eq!(shop.get_opt("w").await.unwrap(), None);
    assert!(shop.create(&PostParams::default(), &widget("w")).await.unwrap_err().is_already_exists());
    let error = shop.update(&PostParams::default(), &widget("w")).await.unwrap_err();
    assert!(error.is_conflict());
    assert!(
        error.to_string().starts_with("PUT /apis/a.example.com/v1/namespaces/shop/widgets/w: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_watch_yields_objects() {
    let (log, client) = testing::client(|_| {
        let lines = [
            json!({ "type": "ADDED", "object": widget("a") }).to_string(),
            json!({ "type": "DELETED", "object": widget("b") }).to_string(),
        ];
        testing::text(200, "application/json", &format!("{}\n", lines.join("\n")))
    });
    let widgets = Clients::new(client).dynamic().resource(&widgets());
    let mut events = widgets.watch(&WatchParams::default().labels("a=b"), "41").await.unwrap();
    let Some(Ok(WatchEvent::Added(object))) = events.next().await else { panic!("no event") };
    assert_eq!(object.nested_i64(&["spec", "size"]), Ok(Some(3)));
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    assert!(events.next().await.is_none());
    let line = &log.lines()[0];
    for part in ["watch=true", "resourceVersion=41", "labelSelector=a%3Db", "allowWatchBookmarks=true"] {
        assert_eq!(line.matches(part).count(), 1, "{part} in {line}");
    }
    assert_eq!(log.all()[0].headers["accept-encoding"], "identity");
}
