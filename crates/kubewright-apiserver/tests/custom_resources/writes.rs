//! Tests of writing custom resources: pruning, defaulting, validation and generation.

use serde_json::json;

use super::*;

#[tokio::test]
async fn unknown_fields_are_pruned_and_nulls_are_defaulted() {
    let spec = json!({
        "a": {"type": "string"}, "n": {"type": "integer", "default": 1},
        "maybe": {"type": "string", "nullable": true}, "port": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    });
    let world = World::with(version("v1", spec)).await;
    let sent = json!({"a": null, "n": null, "maybe": null, "port": "http", "free": {"x": [1]}, "gone": 1});
    let made = world.post(WIDGETS, &widget("one", sent)).await.unwrap();
    assert_eq!(made["spec"], json!({"n": 1, "maybe": null, "port": "http", "free": {"x": [1]}}));
    assert_eq!(world.get(&format!("{WIDGETS}/one")).await.unwrap(), made);
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let refused = world.post(&strict, &widget("two", json!({"gone": 1}))).await.unwrap_err();
    assert!(
        refused.message.ends_with("strict decoding error: unknown field \"spec.gone\""),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn errors_of_unchanged_values_are_ratcheted_after_a_schema_change() {
    let text = |pattern: &str| json!({"a": {"type": "string", "pattern": pattern}, "b": {"type": "string"}});
    let world = World::with(version("v1", text("."))).await;
    world.post(WIDGETS, &widget("one", json!({"a": "old"}))).await.unwrap();
    let versions = json!({"spec": {"versions": [version("v1", text("^new"))]}});
    world.merge(&format!("{DEFINITIONS}/widgets.example.com"), &versions).await.unwrap();
    let one = format!("{WIDGETS}/one");
    world.merge(&one, &json!({"spec": {"b": "other field"}})).await.unwrap();
    let refused = world.merge(&one, &json!({"spec": {"a": "older"}})).await.unwrap_err();
    assert!(refused.message.contains("spec.a in body should match '^new'"), "{}", refused.message);
    world.merge(&one, &json!({"spec": {"a": "newer"}})).await.unwrap();
    assert_eq!(world.merge(&one, &json!({"spec": {"a": "old"}})).await.unwrap_err().code, 422);
}

#[tokio::test]
async fn transition_rules_see_the_old_object() {
    let mut version = version("v1", json!({"size": {"type": "integer"}}));
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.size >= oldSelf.size", "message": "may only grow"}]);
    let world = World::with(version).await;
    world.post(WIDGETS, &widget("one", json!({"size": 2}))).await.unwrap();
    let one = format!("{WIDGETS}/one");
    world.merge(&one, &json!({"spec": {"size": 3}})).await.unwrap();
    let refused = world.merge(&one, &json!({"spec": {"size": 1}})).await.unwrap_err();
    assert!(refused.message.ends_with("spec: Invalid value: may only grow"), "{}", refused.message);
}

#[tokio::test]
async fn status_is_a_subresource_and_does_not_change_the_generation() {
    let mut version = version("v1", json!({"a": {"type": "string"}}));
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"type": "object", "properties": {"phase": {"type": "string", "enum": ["Up", "Down"]}}});
    let world = World::with(version).await;
    let mut sent = widget("one", json!({"a": "1"}));
    sent["status"] = json!({"phase": "Up"});
    let made = world.post(WIDGETS, &sent).await.unwrap();
    assert!(made.get("status").is_none());
    let status = format!("{WIDGETS}/one/status");
    let change = json!({"status": {"phase": "Up"}, "spec": {"a": "2"}, "metadata": {"labels": {"x": "y"}}});
    let shown = world.merge(&status, &change).await.unwrap();
    assert_eq!((&shown["status"]["phase"], &shown["spec"]["a"]), (&json!("Up"), &json!("1")));
    assert!(shown["metadata"].get("labels").is_none());
    assert_eq!(shown["metadata"]["generation"], 1);
    let refused = world.merge(&status, &json!({"status": {"phase": "Sideways"}})).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let spec =
        world.merge(&format!("{WIDGETS}/one"), &json!({"spec": {"a": "3"}, "status": null})).await.unwrap();
    assert_eq!((&spec["metadata"]["generation"], &spec["status"]["phase"]), (&json!(2), &json!("Up")));
}

#[tokio::test]
async fn an_apply_owns_merges_and_releases_fields() {
    let ports = json!({
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"}}}},
    });
    let world = World::with(version("v1", ports)).await;
    let one = format!("{WIDGETS}/one");
    let apply = async |manager: &str, ports: Value| {
        let path = format!("{one}?fieldManager={manager}");
        world
            .send(
                Method::PATCH,
                &path,
                "application/apply-patch+yaml",
                &widget("one", json!({"ports": ports})),
            )
            .await
    };
    apply("a", json!([{"name": "http", "port": 80}])).await.unwrap();
    let both = apply("b", json!([{"name": "dns", "port": 53}])).await.unwrap();
    assert_eq!(both["spec"]["ports"].as_array().unwrap().len(), 2);
    let refused = apply("b", json!([{"name": "http", "port": 81}])).await.unwrap_err();
    assert_eq!(refused.code, 409);
    let rest = apply("a", json!([])).await.unwrap();
    assert_eq!(rest["spec"]["ports"], json!([{"name": "dns", "port": 53}]));
}

#[tokio::test]
async fn selectable_fields_work_in_list_watch_and_delete_collection() {
    let mut version = version("v1", json!({"color": {"type": "string"}}));
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let world = World::with(version).await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        world.post(WIDGETS, &widget(name, json!({"color": color}))).await.unwrap();
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let red = format!("{WIDGETS}?fieldSelector=spec.color%3Dred");
    assert_eq!(names(&world.get(&red).await.unwrap()), ["a", "c"]);
    let refused = world.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D1")).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (400, "field label not supported: spec.size"));

    let revision = world.get(WIDGETS).await.unwrap()["metadata"]["resourceVersion"].clone();
    let mut events =
        world.watch(&format!("{red}&watch=1&resourceVersion={}", revision.as_str().unwrap())).await;
    world.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"color": "blue"}})).await.unwrap();
    assert_eq!(events.next().await.unwrap().0, "DELETED");
    world.delete(&red).await.unwrap();
    assert_eq!(names(&world.get(WIDGETS).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn a_body_needs_kind_and_api_version() {
    let world = World::with(version("v1", json!({}))).await;
    let refuse = async |body: Value| {
        let refused = world.post(WIDGETS, &body).await.unwrap_err();
        (refused.code, refused.message)
    };
    let (code, why) = refuse(json!({"metadata": {"name": "a"}})).await;
    assert!(code == 400 && why.contains("Object 'Kind' is missing in"), "{why}");
    let (code, why) = refuse(json!({"kind": "Widget", "metadata": {"name": "a"}})).await;
    assert!(code == 400 && why.contains("does not match the expected API version (example.com/v1)"), "{why}");
    let mut other = widget("a", json!({}));
    other["kind"] = "Gadget".into();
    let (code, why) = refuse(other).await;
    assert_eq!(
        (code, why.as_str()),
        (422, "Gadget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget")
    );
    let mut labels = widget("a", json!({}));
    labels["metadata"]["labels"] = json!({"a": 1});
    let (code, why) = refuse(labels).await;
    assert!(code == 400 && why.contains("cannot unmarshal number"), "{why}");
    let strategic = "application/strategic-merge-patch+json";
    world.post(WIDGETS, &widget("a", json!({}))).await.unwrap();
    let refused =
        world.send(Method::PATCH, &format!("{WIDGETS}/a"), strategic, &json!({})).await.unwrap_err();
    assert_eq!(refused.code, 415);
}
