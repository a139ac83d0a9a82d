//! `config/crd.yaml` equals the generated definition and that of the Go operator.

use cloud_manager::definition::definition;
use serde_json::Value;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd.yaml");

fn generated() -> Value {
    serde_json::to_value(definition()).expect("a definition is JSON")
}

#[test]
fn the_definition_in_config_equals_the_generated_one() {
    if std::env::var_os("UPDATE").is_some() {
        let yaml = serde_saphyr::to_string(&generated()).unwrap();
        std::fs::write(CONFIG, format!("# Generated from src/types.rs by tests/definition.rs.\n{yaml}"))
            .unwrap();
    }
    let stored: Value = serde_saphyr::from_str(&std::fs::read_to_string(CONFIG).unwrap()).unwrap();
    assert_eq!(stored, generated(), "UPDATE=1 cargo test -p cloud-manager --test definition regenerates it");
}

#[test]
fn the_definition_is_that_of_the_go_operator() {
    let theirs: Value = serde_saphyr::from_str(include_str!("seed-crd.yaml")).unwrap();
    let mut ours = generated();
    without_descriptions(&mut ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    assert_eq!(ours, theirs);
}

/// Descriptions do not affect what the server accepts, stores and prints.
fn without_descriptions(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(without_descriptions);
        }
    }
}
