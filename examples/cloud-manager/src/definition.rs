//! The definition of a CloudManager, shaped as Go's `controller-gen` shapes it, so that a cluster that was installed from
//! the Go operator's manifests sees no change.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::CloudManager;

/// The definition: `config/crd.yaml` is written from it.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = CloudManager::crd();
    definition.spec.names.list_kind = Some("CloudManagerList".to_owned());
    for version in &mut definition.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            as_go_has_it(root);
        }
    }
    definition
}

/// In Go the root has its own `apiVersion`, `kind` and `metadata`, and neither spec nor status has to be there.
fn as_go_has_it(root: &mut JSONSchemaProps) {
    root.title = None;
    root.required = None;
    let properties = root.properties.get_or_insert_default();
    properties.insert("apiVersion".to_owned(), of_type("string"));
    properties.insert("kind".to_owned(), of_type("string"));
    properties.insert("metadata".to_owned(), of_type("object"));
    for property in properties.values_mut() {
        property.nullable = None;
    }
    spell_out(root);
}

/// In Go what is a number or a text says so by itself as well. kube's derive takes such types away.
fn spell_out(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.any_of = Some(vec![of_type("integer"), of_type("string")]);
    }
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(spell_out);
}

fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(name.to_owned()), ..JSONSchemaProps::default() }
}

/// A quantity: a number, or a text such as `20Gi`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true,
    })
}
