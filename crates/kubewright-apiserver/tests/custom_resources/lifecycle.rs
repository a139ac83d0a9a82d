//! Tests of the lifecycle of CRDs and their resources.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_definition_is_served_with_the_next_request_and_in_discovery() {
    let world = World::new();
    assert_eq!(world.code(WIDGETS).await, 404);
    let mut crd = widgets([version("v1", json!({"a": {"type": "string"}}))]);
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    crd["spec"]["names"]["categories"] = json!(["all"]);
    let created = world.post(DEFINITIONS, &crd).await.unwrap();
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    let crd = world.get(&format!("{DEFINITIONS}/widgets.example.com")).await.unwrap();
    assert_eq!(condition(&crd, "Established")["status"], "True");
    assert_eq!(crd["status"]["acceptedNames"]["listKind"], "WidgetList");

    assert_eq!(world.get(WIDGETS).await.unwrap()["kind"], "WidgetList");
    let resources = world.get("/apis/example.com/v1").await.unwrap();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(resources["resources"][0]["categories"], json!(["all"]));
    let service = world.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com").await.unwrap();
    assert_eq!(service["spec"]["groupPriorityMinimum"], 1000);
}

#[tokio::test]
async fn names_in_use_are_accepted_when_their_owner_is_deleted() {
    let world = World::with(version("v1", json!({}))).await;
    let mut gizmos = widgets([version("v1", json!({}))]);
    gizmos["metadata"]["name"] = "gizmos.example.com".into();
    gizmos["spec"]["names"]["plural"] = "gizmos".into();
    world.post(DEFINITIONS, &gizmos).await.unwrap();
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    let refused = world.get(&path).await.unwrap();
    assert_eq!(condition(&refused, "NamesAccepted")["reason"], "ListKindConflict");
    assert_eq!(world.code("/apis/example.com/v1/gizmos").await, 404);

    world.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.unwrap();
    assert_eq!(condition(&world.get(&path).await.unwrap(), "Established")["status"], "True");
    assert_eq!(world.code("/apis/example.com/v1/gizmos").await, 200);
    assert_eq!(world.code("/apis/example.com/v1/widgets").await, 404);
}

#[tokio::test]
async fn a_definition_is_removed_after_its_objects_and_watchers_see_their_deletion() {
    let world = World::with(version("v1", json!({}))).await;
    world.post(WIDGETS, &widget("plain", json!({}))).await.unwrap();
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(WIDGETS, &held).await.unwrap();
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&resourceVersion=0")).await;
    for _ in 0..2 {
        assert_eq!(events.next().await.unwrap().0, "ADDED");
    }

    let path = format!("{DEFINITIONS}/widgets.example.com");
    let marked = world.delete(&path).await.unwrap();
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(condition(&marked, "Terminating")["reason"], "InstanceDeletionPending");
    let (kind, object) = events.next().await.unwrap();
    assert_eq!((kind.as_str(), &object["metadata"]["name"]), ("MODIFIED", &json!("held")));
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(events.next().await.unwrap().0, "DELETED");

    let waiting = world.get(&path).await.unwrap();
    assert_eq!(condition(&waiting, "Terminating")["reason"], "InstanceDeletionInProgress");
    let refused = world.post(WIDGETS, &widget("late", json!({}))).await.unwrap_err();
    assert_eq!(refused.code, 403);
    let verbs = &world.get("/apis/example.com/v1").await.unwrap()["resources"][0]["verbs"];
    assert_eq!(*verbs, json!(["delete", "deletecollection", "get", "list", "watch"]));

    world.merge(&format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}})).await.unwrap();
    let (kind, object) = events.next().await.unwrap();
    assert_eq!((kind.as_str(), &object["metadata"]["name"]), ("DELETED", &json!("held")));
    assert!(events.next().await.is_none(), "the type is gone, and so is its watch");
    assert_eq!(world.get(&path).await.unwrap_err().code, 404);
    assert_eq!(world.code(WIDGETS).await, 404);
    assert_eq!(world.code("/apis/example.com").await, 404);
}

#[tokio::test]
async fn a_recreated_definition_has_no_old_objects() {
    let world = World::with(version("v1", json!({}))).await;
    world.post(WIDGETS, &widget("a", json!({}))).await.unwrap();
    world.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.unwrap();
    world.post(DEFINITIONS, &widgets([version("v1", json!({}))])).await.unwrap();
    assert_eq!(world.get(WIDGETS).await.unwrap()["items"], json!([]));
}

#[tokio::test]
async fn a_dry_run_neither_creates_nor_deletes_a_definition() {
    let world = World::new();
    let crd = widgets([version("v1", json!({}))]);
    world.post(&format!("{DEFINITIONS}?dryRun=All"), &crd).await.unwrap();
    assert_eq!(world.code(WIDGETS).await, 404);
    world.post(DEFINITIONS, &crd).await.unwrap();
    world.delete(&format!("{DEFINITIONS}/widgets.example.com?dryRun=All")).await.unwrap();
    assert_eq!(world.code(WIDGETS).await, 200);
}

#[tokio::test]
async fn a_new_schema_takes_effect_at_once_and_ends_watches() {
    let world = World::with(version("v1", json!({"a": {"type": "string"}, "b": {"type": "string"}}))).await;
    world.post(WIDGETS, &widget("one", json!({"a": "1", "b": "2"}))).await.unwrap();
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap().0, "ADDED");

    let path = format!("{DEFINITIONS}/widgets.example.com");
    let narrower = version("v1", json!({"a": {"type": "string"}, "c": {"type": "integer", "default": 3}}));
    let updated = world.merge(&path, &json!({"spec": {"versions": [narrower]}})).await.unwrap();
    assert_eq!(updated["metadata"]["generation"], 2);
    assert!(events.next().await.is_none());

    let shown = world.get(&format!("{WIDGETS}/one")).await.unwrap();
    assert_eq!(shown["spec"], json!({"a": "1", "c": 3}));
    assert_eq!(world.get(WIDGETS).await.unwrap()["items"][0]["spec"], shown["spec"]);
    // A change outside of the CRD's spec does not end watches.
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap().1["spec"], shown["spec"]);
    world.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    world.delete(&format!("{WIDGETS}/one")).await.unwrap();
    assert_eq!(events.next().await.unwrap().0, "DELETED");
}

#[tokio::test]
async fn invalid_definitions_are_rejected_with_all_errors() {
    let world = World::new();
    let mut crd = widgets([version("v1", json!({"a": {}}))]);
    crd["spec"]["group"] = "example".into();
    let refused = world.post(DEFINITIONS, &crd).await.unwrap_err();
    assert_eq!(refused.code, 422);
    for text in [
        "metadata.name: Invalid value: \"widgets.example.com\": must be spec.names.plural+\".\"+spec.group",
        "spec.group: Invalid value: \"example\": should be a domain with at least one dot",
        "spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Required value",
    ] {
        assert!(refused.message.contains(text), "{}", refused.message);
    }
}

#[tokio::test]
async fn only_the_versions_of_a_definition_are_served() {
    let both = |second: bool| {
        let mut beta = version("v1beta1", json!({}));
        beta["storage"] = false.into();
        beta["served"] = second.into();
        json!({"spec": {"versions": [version("v1", json!({})), beta]}})
    };
    let world = World::with(version("v1", json!({}))).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let service = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.example.com";
    for (served, code) in [(true, 200), (false, 404)] {
        world.merge(&path, &both(served)).await.unwrap();
        assert_eq!(world.code("/apis/example.com/v1beta1/widgets").await, code);
        assert_eq!(world.code("/apis/example.com/v1beta1").await, code);
        assert_eq!(world.code(service).await, code);
    }
}
