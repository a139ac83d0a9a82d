//! Tests of CRD validation, with the messages of kube-apiserver.

use kubewright_apiserver::crd::{definition, resource::CustomResource};
use kubewright_schema::field::FieldError;
use serde_json::{Value, json};

fn crd(schema: &Value) -> Value {
    let mut crd = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    definition::apply_defaults(&mut crd);
    definition::prepare_create(&mut crd);
    crd
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| error.to_string().replace("spec.validation.openAPIV3Schema", "ROOT")).collect()
}

fn with_field(field: &Value) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"f": field}});
    texts(&definition::validate_create(&crd(&schema)))
}

#[test]
fn schemas_must_be_structural() {
    let cases = [
        (json!({}), "ROOT.properties[f].type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), "ROOT.properties[f].items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            "ROOT.properties[f].items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "integer", "anyOf": [{"type": "integer"}]}),
            "ROOT.properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"x": {"default": 1}}}]}),
            "ROOT.properties[f].allOf[0].properties[x].default: Forbidden: must be undefined to be structural",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            "ROOT.properties[f].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true \
             without x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "string", "x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            "ROOT.properties[f].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if \
             x-kubernetes-int-or-string is true",
        ),
    ];
    for (field, wanted) in cases {
        assert!(with_field(&field).contains(&wanted.to_owned()), "{field}: {:?}", with_field(&field));
    }
    let root = |schema: Value| texts(&definition::validate_create(&crd(&schema)));
    assert_eq!(root(json!({})), ["ROOT.type: Required value: must not be empty at the root"]);
    assert_eq!(
        root(json!({"type": "string"})),
        ["ROOT.type: Invalid value: \"string\": must be object at the root"]
    );
    assert_eq!(
        root(json!({"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]})),
        ["ROOT.properties[x]: Required value: because it is defined in ROOT.anyOf[0].properties[x]"]
    );
    assert_eq!(
        root(json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
            "labels": {"type": "object"}}}}})),
        [
            "ROOT.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
             is implicitly specified"
        ]
    );
}

#[test]
fn forbidden_keywords_and_types_are_rejected() {
    let cases = [
        (
            json!({"type": "thing"}),
            "ROOT.properties[f].type: Unsupported value: \"thing\": supported values: \"array\", \"boolean\", \"integer\", \
             \"number\", \"object\", \"string\"",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            "ROOT.properties[f].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity \
             becomes quadratic",
        ),
        (json!({"type": "string", "$ref": "x"}), "ROOT.properties[f].$ref: Forbidden: $ref is not supported"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "ROOT.properties[f].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            "ROOT.properties[f].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            json!({"type": "object", "x-kubernetes-map-type": "odd"}),
            "ROOT.properties[f].x-kubernetes-map-type: Unsupported value: \"odd\": supported values: \"atomic\", \"granular\"",
        ),
    ];
    for (field, wanted) in cases {
        assert!(with_field(&field).contains(&wanted.to_owned()), "{field}: {:?}", with_field(&field));
    }
}

#[test]
fn list_types_need_their_keys() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "o": {"type": "object"}}});
    let list = |list_type: &str, keys: Value, items: Value| json!({"type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": keys, "items": items});
    let cases = [
        (
            list("map", json!([]), item.clone()),
            "ROOT.properties[f].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            list("map", json!(["z"]), item.clone()),
            "ROOT.properties[f].x-kubernetes-list-map-keys: Invalid value: [\"z\"]: entries must all be names of item properties",
        ),
        (
            list("map", json!(["k"]), item.clone()),
            "ROOT.properties[f].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so \
             it must have a default or be a required property",
        ),
        (
            list("map", json!(["o"]), item.clone()),
            "ROOT.properties[f].items.properties[o].type: Invalid value: \"object\": must be a scalar type if parent array's \
             x-kubernetes-list-type is map",
        ),
        (
            list("map", json!(["k"]), json!({"type": "string"})),
            "ROOT.properties[f].items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map",
        ),
        (
            list("set", json!(["k"]), json!({"type": "string"})),
            "ROOT.properties[f].x-kubernetes-list-type: Invalid value: \"set\": must be map if x-kubernetes-list-map-keys is non-empty",
        ),
        (
            list("set", json!([]), item),
            "ROOT.properties[f].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
             x-kubernetes-list-type=set",
        ),
        (
            list("odd", json!([]), json!({"type": "string"})),
            "ROOT.properties[f].x-kubernetes-list-type: Unsupported value: \"odd\": supported values: \"atomic\", \"set\", \"map\"",
        ),
    ];
    for (field, wanted) in cases {
        assert!(with_field(&field).contains(&wanted.to_owned()), "{field}: {:?}", with_field(&field));
    }
}

#[test]
fn defaults_must_be_valid_pruned_and_pass_the_rules() {
    let cases = [
        (json!({"type": "integer", "default": "x"}), "in body must be of type integer: \"string\""),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            "Invalid value: {\"b\":1}: must not have unknown fields",
        ),
        (
            json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 5"}]}),
            "Invalid value: 1: failed rule: self > 5",
        ),
    ];
    for (field, wanted) in cases {
        let found = with_field(&field);
        let same = |text: &String| text.starts_with("ROOT.properties[f].default: ") && text.ends_with(wanted);
        assert!(found.iter().any(same), "{field}: {found:?}");
    }
    let top = json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}});
    let found = texts(&definition::validate_create(&crd(&top)));
    assert!(
        found.contains(
            &"ROOT.properties[kind].default: Forbidden: must not be set in top-level kind".to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn names_group_and_scope_are_validated() {
    let good = crd(&json!({"type": "object"}));
    assert_eq!(definition::validate_create(&good), []);
    let broken = |pointer: &str, value: Value| {
        let mut crd = good.clone();
        *crd.pointer_mut(pointer).unwrap() = value;
        texts(&definition::validate_create(&crd)).join("\n")
    };
    assert!(
        broken("/spec/group", json!("nodot"))
            .contains("spec.group: Invalid value: \"nodot\": should be a domain with at least one dot")
    );
    assert!(broken("/spec/scope", json!("Galaxy")).contains(
        "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\""
    ));
    assert!(
        broken("/spec/names/listKind", json!("Widget")).contains(
            "spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"
        )
    );
    assert!(broken("/spec/names/kind", json!("")).contains("spec.names.kind: Required value"));
    assert!(broken("/metadata/name", json!("other.example.com")).contains(
        "metadata.name: Invalid value: \"other.example.com\": must be spec.names.plural+\".\"+spec.group"
    ));
    assert!(
        broken("/spec/versions/0/schema", json!({}))
            .contains("spec.versions[0].schema.openAPIV3Schema: Required value")
    );
}

#[test]
fn an_update_may_keep_old_errors_but_not_drop_stored_versions() {
    let mut old =
        crd(&json!({"type": "object", "properties": {"f": {"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}));
    assert!(!definition::validate_create(&old).is_empty());
    old["metadata"]["generation"] = 4.into();
    let mut new = old.clone();
    new["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition::prepare_update(&mut new, &old);
    assert_eq!(new["metadata"]["generation"], 5);
    assert_eq!(definition::validate_update(&new, &old), []);
    new["spec"]["versions"][0]["name"] = "v2".into();
    definition::prepare_update(&mut new, &old);
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    let found = texts(&definition::validate_update(&new, &old));
    assert!(
        found[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"),
        "{found:?}"
    );
}

#[test]
fn errors_name_differing_versions_and_a_status_subresource_restricts_the_root() {
    let schema = |field: &str| json!({"openAPIV3Schema": {"type": "object", "properties": {field: {}}}});
    let mut two = crd(&json!({"type": "object"}));
    two["spec"]["versions"] = json!([
        {"name": "v1", "served": true, "storage": true, "schema": schema("a")},
        {"name": "v2", "served": true, "storage": false, "schema": schema("b")}]);
    let found = texts(&definition::validate_create(&two));
    assert!(
        found[0].starts_with("spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("spec.versions[1].schema.openAPIV3Schema.properties[b].type: Required value"),
        "{found:?}"
    );
    let mut status = crd(&json!({"type": "object", "maxProperties": 3}));
    status["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let found = texts(&definition::validate_create(&status));
    assert!(
        found[0]
            .contains("fields are allowed at the root of the schema if the status subresource is enabled"),
        "{found:?}"
    );
}

#[test]
fn malformed_bodies_are_rejected_without_panic() {
    let odd = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!({"metadata": "x", "spec": 1, "status": []}),
    ];
    let good = crd(&json!({"type": "object"}));
    for body in odd {
        let mut new = body.clone();
        definition::apply_defaults(&mut new);
        definition::prepare_create(&mut new);
        assert!(!definition::validate_create(&new).is_empty(), "{body}");
        definition::prepare_update(&mut new, &good);
        definition::prepare_status_update(&mut new, &body);
        definition::validate_update(&new, &body);
        let _ = definition::status::refresh(&new, [&good], "t");
        definition::status::mark_terminating(&mut new, "t");
        definition::warnings(&new, Some(&body));
        let kind = CustomResource::new(&good, "v1").unwrap();
        let mut object = body.clone();
        kind.prune(&mut object);
        kind.apply_defaults(&mut object);
        kind.prepare_create(&mut object);
        assert!(!kind.validate_create(&object).errors.is_empty(), "{body}");
        kind.prepare_update(&mut object, &body);
        kind.prepare_status_update(&mut object, &body);
        kind.validate_status_update(&object, &body);
        kind.cells(&object, |_| String::new());
        kind.convert(&mut object);
    }
}
