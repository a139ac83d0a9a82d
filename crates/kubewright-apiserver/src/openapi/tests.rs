use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::ApiServer;

fn builtin() -> Arc<Types> {
    ApiServer::builder().in_process().unwrap().registry().types()
}

/// Collects every reference in a document.
fn references<'v>(value: &'v Value, out: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(target) if key == "$ref" => out.push(target),
                    value => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

#[test]
fn every_reference_of_every_document_resolves() {
    let types = builtin();
    for (group, version) in group_versions(&types) {
        let document = v3(&types, group, version).unwrap();
        let mut targets = Vec::new();
        references(&document, &mut targets);
        assert!(!targets.is_empty());
        for target in targets {
            assert!(document.pointer(&target[1..]).is_some(), "{group}/{version}: {target}");
        }
    }
    let document = v2(&types);
    let mut targets = Vec::new();
    references(&document, &mut targets);
    for target in targets {
        assert!(document.pointer(&target[1..]).is_some(), "{target}");
    }
}

#[test]
fn patch_operations_have_the_field_validation_parameter() {
    let document = v3(&builtin(), "apps", "v1").unwrap();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let names: Vec<&Value> = patch["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
}

#[test]
fn schemas_have_list_and_map_types() {
    let document = v3(&builtin(), "", "v1").unwrap();
    let schemas = &document["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(
        containers,
        &json!({
            "type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
        })
    );
    assert_eq!(schemas["io.k8s.api.core.v1.LocalObjectReference"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(
        schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
        json!([{"group": "", "version": "v1", "kind": "Pod"}])
    );
    let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    assert_eq!(
        options["x-kubernetes-group-version-kind"].as_array().unwrap().len(),
        1,
        "only that of its own document"
    );
}

/// Returns a CRD of widgets with a schema.
fn widgets(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            }],
        },
    })
}

#[tokio::test]
async fn custom_resources_are_published_with_their_own_descriptions_while_served() {
    let server = ApiServer::builder().in_process().unwrap();
    let definitions: kube::Api<kube::core::DynamicObject> = {
        let gvk = kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        kube::Api::all_with(server.client(), &kube::discovery::ApiResource::from_gvk(&gvk))
    };
    let define = async |schema: &Value| {
        let patch = kube::api::Patch::Apply(widgets(schema));
        let params = kube::api::PatchParams::apply("test").force();
        definitions.patch("widgets.stable.example.com", &params, &patch).await.unwrap();
    };
    let registry = server.registry();
    let schema = json!({
        "description": "A widget.", "type": "object",
        "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "description": "how large", "default": 3, "nullable": true},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        }}},
    });
    let before = v2_hash(&registry.types());
    define(&schema).await;
    let types = registry.types();
    assert_ne!(before, v2_hash(&types));
    let index = v3_index(&types);
    let url = index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let hash = v3_hash(&types, "stable.example.com", "v1").unwrap();
    assert_eq!(url, format!("/openapi/v3/apis/stable.example.com/v1?hash={hash}"));

    let document = v3(&types, "stable.example.com", "v1").unwrap();
    let widget = &document["components"]["schemas"]["com.example.stable.v1.Widget"];
    assert_eq!(widget["description"], "A widget.");
    assert_eq!(widget["properties"]["spec"], schema["properties"]["spec"]);
    assert_eq!(widget["properties"]["kind"], json!({"type": "string"}));
    let item = &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let content = item["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(!content.contains_key("application/strategic-merge-patch+json"));
    let scale = &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}/scale"];
    assert_eq!(scale["patch"]["x-kubernetes-group-version-kind"]["kind"], "Widget");

    let old = &v2(&types)["definitions"]["com.example.stable.v1.Widget"]["properties"]["spec"]["properties"];
    assert_eq!(
        old["size"],
        json!({"description": "how large"}),
        "old clients are not told what they misread"
    );
    assert_eq!(old["port"], json!({"x-kubernetes-int-or-string": true}));

    let mut changed = schema;
    changed["description"] = "Another widget.".into();
    define(&changed).await;
    assert_ne!(v3_hash(&registry.types(), "stable.example.com", "v1").unwrap(), hash);
    definitions.delete("widgets.stable.example.com", &kube::api::DeleteParams::default()).await.unwrap();
    assert!(v3(&registry.types(), "stable.example.com", "v1").is_none());
    assert_eq!(before, v2_hash(&registry.types()));
}
