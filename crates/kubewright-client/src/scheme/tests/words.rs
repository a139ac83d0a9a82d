//! Unquoted words mean what they mean to `kubectl`: the table of the `scalar` module, seen from outside.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;

use super::*;

fn value(yaml: &str) -> serde_json::Value {
    let input = format!("apiVersion: example.com/v1\nkind: Foo\nspec: {yaml}\n");
    let object = Scheme::kubernetes().decoder().unstructured().decode(&input).next().unwrap().unwrap();
    object.as_unstructured().unwrap().data["spec"].clone()
}

#[test]
fn words_without_a_type_become_what_kubectl_would_send() {
    for (yaml, json) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("0o777", json!(511)),
        ("0777", json!(511)),
        ("0x1F", json!(31)),
        ("1e3", json!(1000)),
        ("1.50", json!(1.5)),
        ("1.10", json!(1.1)),
        ("1_000", json!(1000)),
        ("2024-01-31", json!("2024-01-31")),
        ("2024-01-31T10:00:00Z", json!("2024-01-31T10:00:00Z")),
        ("22:22", json!("22:22")),
        ("'yes'", json!("yes")),
        ("\"0777\"", json!("0777")),
        ("!!str 12", json!("12")),
        ("!!float 3", json!(3)),
        ("!!int '7'", json!(7)),
        ("!mine x", json!("x")),
        ("|\n  yes", json!("yes\n")),
        (">-\n  1\n  2", json!("1 2")),
        ("", json!(null)),
        ("{yes: 1, 0x10: 2, 1.0: 3, 'no': 4}", json!({"true": 1, "16": 2, "1": 3, "no": 4})),
    ] {
        assert_eq!(value(yaml), json, "{yaml}");
    }
}

#[test]
fn an_unquoted_word_never_slips_into_a_text_field() {
    for (word, read) in [
        ("yes", "boolean `true` "),
        ("off", "boolean `false` "),
        ("0777", "integer `511` "),
        ("1e3", "integer `1000` "),
        ("1.10", "floating point `1.1` "),
    ] {
        let input = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: {word}\n");
        let error = Scheme::kubernetes().decode(&input).next().unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("line 6, column 8: document 1 (v1 ConfigMap a): data.key: invalid type"),
            "{error}"
        );
        let read = read.trim_end();
        assert!(error.contains(read) && error.contains(&format!("written {word} without quotes")), "{error}");
    }
    for word in ["2024-01-31", "1.2.3", "12:30", "yes please", "'yes'", "\"1\""] {
        let input = format!("apiVersion: v1\nkind: ConfigMap\ndata: {{key: {word}}}\n");
        let config: ConfigMap = Scheme::kubernetes().decoder().decode_one(&input).unwrap();
        assert_eq!(config.data.unwrap()["key"], word.trim_matches(['\'', '"']));
    }
}

#[test]
fn numbers_fit_where_go_lets_them_fit() {
    let replicas = |word: &str| {
        let input = format!("apiVersion: apps/v1\nkind: Deployment\nspec: {{replicas: {word}}}\n");
        Scheme::kubernetes()
            .decoder()
            .decode_one::<Deployment>(&input)
            .map(|deployment| deployment.spec.replicas)
    };
    for (word, number) in [("3", 3), ("3.0", 3), ("1e1", 10), ("010", 8), ("0x10", 16), ("+4", 4)] {
        assert_eq!(replicas(word).unwrap(), Some(number), "{word}");
    }
    for word in ["3.5", "'3'", "yes", "9999999999", "three"] {
        assert!(replicas(word).is_err(), "{word}");
    }
}
