//! Tests of CRDs with several versions: stored and served versions.

use serde_json::json;

use super::*;

fn two_versions(stored: &str) -> Value {
    let text = json!({"type": "string"});
    let mut versions = [
        version("v1", json!({"a": text, "one": text})),
        version("v2", json!({"a": text, "two": {"type": "string", "default": "2"}})),
    ];
    for version in &mut versions {
        version["storage"] = (version["name"] == stored).into();
    }
    widgets(versions)
}

const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

#[tokio::test]
async fn objects_are_read_listed_and_watched_in_every_version() {
    let world = World::new();
    world.post(DEFINITIONS, &two_versions("v1")).await.unwrap();
    let mut first = world.watch(&format!("{WIDGETS}?watch=1")).await;
    let mut second = world.watch(&format!("{V2}?watch=1")).await;
    let made = world.post(WIDGETS, &widget("w", json!({"a": "x", "one": "y"}))).await.unwrap();
    assert_eq!(made["spec"], json!({"a": "x", "one": "y"}));
    let shown = world.get(&format!("{V2}/w")).await.unwrap();
    assert_eq!(shown["apiVersion"], "example.com/v2");
    assert_eq!(shown["spec"], json!({"a": "x"}));
    assert_eq!(world.get(V2).await.unwrap()["items"], json!([shown]));

    assert_eq!(first.next().await.unwrap(), ("ADDED".to_owned(), made.clone()));
    assert_eq!(second.next().await.unwrap(), ("ADDED".to_owned(), shown));
    world.delete(&format!("{V2}/w")).await.unwrap();
    let (kind, gone) = second.next().await.unwrap();
    assert_eq!((kind.as_str(), &gone["apiVersion"]), ("DELETED", &json!("example.com/v2")));
    assert_eq!(first.next().await.unwrap().1["spec"], made["spec"]);
}

#[tokio::test]
async fn objects_keep_their_stored_version_until_the_next_write() {
    let world = World::new();
    world.post(DEFINITIONS, &two_versions("v1")).await.unwrap();
    world.post(WIDGETS, &widget("w", json!({"a": "x", "one": "y"}))).await.unwrap();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let moved = world.merge(&path, &json!({"spec": two_versions("v2")["spec"]})).await.unwrap();
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]));

    let one = format!("{WIDGETS}/w");
    let shown = world.get(&one).await.unwrap();
    assert_eq!(shown["spec"], json!({"a": "x", "one": "y"}), "still stored as v1");
    let before = shown["metadata"]["resourceVersion"].clone();
    let rewritten = world.put(&one, &shown).await.unwrap();
    assert_ne!(
        rewritten["metadata"]["resourceVersion"], before,
        "the same content in another version is a write"
    );
    assert_eq!(rewritten["spec"], json!({"a": "x"}), "the stored version has no other field");
    let again = world.put(&one, &rewritten).await.unwrap();
    assert_eq!(again["metadata"]["resourceVersion"], rewritten["metadata"]["resourceVersion"]);

    let status = json!({"status": {"storedVersions": ["v2"]}});
    world.merge(&format!("{path}/status"), &status).await.unwrap();
    let only = json!({"spec": {"versions": [two_versions("v2")["spec"]["versions"][1]]}});
    world.merge(&path, &only).await.unwrap();
    assert_eq!(world.code(&one).await, 404);
    assert_eq!(world.get(&format!("{V2}/w")).await.unwrap()["spec"], json!({"a": "x", "two": "2"}));
}

#[tokio::test]
async fn an_object_stored_in_a_removed_version_cannot_be_read() {
    let world = World::new();
    world.post(DEFINITIONS, &two_versions("v1")).await.unwrap();
    world.post(WIDGETS, &widget("w", json!({}))).await.unwrap();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    world.merge(&path, &json!({"spec": two_versions("v2")["spec"]})).await.unwrap();
    world.merge(&format!("{path}/status"), &json!({"status": {"storedVersions": ["v2"]}})).await.unwrap();
    let only = json!({"spec": {"versions": [two_versions("v2")["spec"]["versions"][1]]}});
    world.merge(&path, &only).await.unwrap();
    let refused = world.get(&format!("{V2}/w")).await.unwrap_err();
    let why = "request to convert CR from an invalid group/version: example.com/v1";
    assert_eq!((refused.code, refused.message.as_str()), (500, why));
    // Deleting the CRD still deletes it.
    world.delete(&path).await.unwrap();
    assert_eq!(world.get(&path).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_stored_version_cannot_be_removed() {
    let world = World::new();
    world.post(DEFINITIONS, &two_versions("v1")).await.unwrap();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let only = json!({"spec": {"versions": [two_versions("v2")["spec"]["versions"][1]]}});
    let refused = world.merge(&path, &only).await.unwrap_err();
    assert!(refused.message.contains("v1 was previously a storage version"), "{}", refused.message);
}

#[tokio::test]
async fn an_unreachable_conversion_webhook_fails_requests_that_need_it() {
    let world = World::new();
    let mut crd = two_versions("v1");
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "hook", "namespace": "default", "path": "/convert"}}}});
    world.post(DEFINITIONS, &crd).await.unwrap();
    world.post(WIDGETS, &widget("w", json!({}))).await.unwrap();
    assert!(world.get(&format!("{WIDGETS}/w")).await.is_ok());
    let why = "conversion webhook for example.com/v1, Kind=Widget failed: \
               Post \"https://hook.default.svc:443/convert?timeout=30s\": service \"hook\" not found";
    for path in [format!("{V2}/w"), V2.to_owned()] {
        let refused = world.get(&path).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (500, why));
    }
}
