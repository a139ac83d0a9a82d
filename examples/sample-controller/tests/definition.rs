//! `config/crd.yaml` equals the generated definition, and the server validates by it.

use kube::CustomResourceExt;
use sample_controller::Foo;
use serde_json::Value;

#[test]
fn the_definition_in_config_equals_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd.yaml");
    let wanted = serde_json::to_value(Foo::crd()).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let text = format!(
            "# Generated from src/foo.rs by tests/definition.rs.\n{}",
            serde_saphyr::to_string(&wanted).unwrap()
        );
        std::fs::write(path, text).unwrap();
    }
    let stored: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(stored, wanted, "UPDATE=1 cargo test -p sample-controller --test definition regenerates it");
}
