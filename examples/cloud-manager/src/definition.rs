//! The definition of a CloudManager, in the form of Go's `controller-gen`, so that a cluster installed from
//! the Go operator's manifests sees no change.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::CloudManager;

/// The definition, from which `config/crd.yaml` is generated.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = CloudManager::crd();
    definition.spec.names.list_kind = Some("CloudManagerList".to_owned());
    for version in &mut definition.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            like_controller_gen(root);
        }
    }
    definition
}

/// As controller-gen: the root has `apiVersion`, `kind` and `metadata`, and requires neither spec nor status.
fn like_controller_gen(root: &mut JSONSchemaProps) {
    root.title = None;
    root.required = None;
    let properties = root.properties.get_or_insert_default();
    properties.insert("apiVersion".to_owned(), of_type("string"));
    properties.insert("kind".to_owned(), of_type("string"));
    properties.insert("metadata".to_owned(), of_type("object"));
    for property in properties.values_mut() {
        property.nullable = None;
    }
    add_any_of(root);
}

/// As controller-gen: integer-or-string types have an explicit `anyOf`, which kube's derive removes.
fn add_any_of(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.any_of = Some(vec![of_type("integer"), of_type("string")]);
    }
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(add_any_of);
}

fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(name.to_owned()), ..JSONSchemaProps::default() }
}

/// Schema of a quantity: a number, or a text such as `20Gi`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true,
    })
}
