use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn unstructured(text: &str) -> Vec<Value> {
    Scheme::kubernetes()
        .decoder()
        .unstructured()
        .decode(text)
        .map(|object| serde_json::to_value(object.unwrap()).unwrap())
        .collect()
}

#[test]
fn the_order_of_keys_is_fixed() {
    let value = json!({
        "status": {"b": 1, "a": 2}, "spec": {"z": [], "w": {}, "x": [{"name": "m", "image": "i"}]},
        "metadata": {"name": "a", "labels": {"k": "v"}}, "kind": "Foo", "data": "d", "apiVersion": "example.com/v1",
    });
    assert_eq!(
        to_yaml(&value).unwrap(),
        "apiVersion: example.com/v1\nkind: Foo\nmetadata:\n  labels:\n    k: v\n  name: a\ndata: d\nspec:\n  w: {}\n  \
         x:\n  - image: i\n    name: m\n  z: []\nstatus:\n  a: 2\n  b: 1\n"
    );
    assert!(
        to_json(&value)
            .unwrap()
            .starts_with("{\n  \"apiVersion\": \"example.com/v1\",\n  \"kind\": \"Foo\",\n")
    );
}

#[test]
fn streams_hold_several_objects_and_are_read_back() {
    let pods: Vec<_> = ["a", "b", "c"].map(|name| Pod { metadata: named(name), ..Pod::default() }).into();
    for stream in [to_yaml_stream(&pods).unwrap(), to_json_stream(&pods).unwrap()] {
        let read: Vec<_> =
            Scheme::kubernetes().decode(&stream).map(|pod| pod.unwrap().downcast::<Pod>().unwrap()).collect();
        assert_eq!(read, pods, "{stream}");
    }
    assert_eq!(to_json_stream(&pods).unwrap().lines().count(), 3);
    assert_eq!(to_yaml_stream(&pods).unwrap().matches("---\n").count(), 2);
    assert_eq!(to_yaml_stream([] as [Pod; 0]).unwrap(), "");
}

#[test]
fn decoded_objects_are_written_with_their_kind() {
    let input = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {width: 1}\n---\n\
                 apiVersion: example.com/v9\nkind: Other\nmetadata: {name: o}\nspec: {a: 1}\n";
    let decoder = widgets().build().unwrap().decoder().unstructured_unknown();
    let objects = decoder.decode(input).collect::<Result<Vec<_>, _>>().unwrap();
    let text = to_yaml_stream(&objects).unwrap();
    assert_eq!(
        text,
        "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  height: 0\n  width: 1\n---\n\
         apiVersion: example.com/v9\nkind: Other\nmetadata:\n  name: o\nspec:\n  a: 1\n"
    );
}

#[test]
fn what_is_no_object_is_not_written() {
    for value in
        [json!(1), json!([]), json!({"kind": "Foo"}), json!({"apiVersion": "v1"}), json!({"apiVersion": 1})]
    {
        assert!(matches!(to_yaml(&value), Err(EncodeError::NotAnObject { .. })), "{value}");
        assert!(matches!(to_json(&value), Err(EncodeError::NotAnObject { .. })), "{value}");
    }
}

#[test]
fn texts_and_keys_that_look_like_something_else_survive() {
    let words = [
        "yes",
        "No",
        "y",
        "N",
        "on",
        "OFF",
        "true",
        "null",
        "~",
        "",
        "0777",
        "0o7",
        "0x1F",
        "0b1",
        "1e3",
        "1_000",
        ".5",
        "-1",
        "+1",
        ".inf",
        ".NaN",
        "2024-01-31",
        "12:30",
        "<<",
        "=",
        "- a",
        "? a",
        ": a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "'a'",
        "\"a\"",
        "{a}",
        "[a]",
        "a,b",
        " a",
        "a ",
        "a\n",
        "a\nb",
        "\na",
        "\n",
        "a\n\n",
        "  a\nb",
        "a\tb",
        "\ta",
        "a\r\nb",
        "\u{feff}a",
        "\u{85}",
        "\u{2028}",
        "---",
        "--- a",
        "...",
        "e\u{301}",
        "\u{1f600}",
        "\\",
        "\\n",
        "\u{7f}",
        "\0",
        "\u{1b}[0m",
        "a:",
        "a\n ---\n",
        "---\na",
        "key: |\n  x",
    ];
    let mut config = ConfigMap { metadata: named("words"), ..ConfigMap::default() };
    config.data = Some(words.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect());
    for text in [to_yaml(&config).unwrap(), to_json(&config).unwrap()] {
        let read: ConfigMap = Scheme::kubernetes().decoder().decode_one(&text).unwrap();
        assert_eq!(read, config, "{text}");
    }
}

#[test]
fn only_texts_that_every_reader_understands_become_blocks() {
    let shown = |text: &str| {
        let yaml = to_yaml(&json!({"apiVersion": "v1", "kind": "Foo", "t": text})).unwrap();
        yaml.strip_prefix("apiVersion: v1\nkind: Foo\nt: ").unwrap().to_owned()
    };
    assert_eq!(shown("a\n\tb\n"), "|\n  a\n  \tb\n");
    assert_eq!(shown("a\nb"), "|-\n  a\n  b\n");
    assert_eq!(shown("\ta\nb"), "\"\\ta\\nb\"\n");
    assert_eq!(shown(" a\nb"), "\" a\\nb\"\n");
    assert_eq!(shown("a\n\n"), "\"a\\n\\n\"\n");
    let long = "word ".repeat(40) + "end";
    assert_eq!(shown(&long), format!("{long}\n"), "long lines are not folded");
}

/// Any JSON value, with many of the texts that YAML makes difficult.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z]{0,6}",
        "[ -~\\n\\t]{0,16}",
        any::<String>(),
        "[yYnN0-9xobe.+_:-]{1,6}",
        "(a\\n| \\n|\\n|\\t|#|: |- ){1,5}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has finite numbers", |float| float.is_finite()).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Numbers as Kubernetes sees them: 3.0 and 3 are the same.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            match number.as_f64().and_then(crate::scheme::scalar::json_number) {
                Some(number) => Value::Number(number),
                None => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), normal(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_the_same(specs in prop::collection::vec(any_value(), 1..4)) {
        let objects: Vec<_> = specs
            .into_iter()
            .map(|spec| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": spec}))
            .collect();
        let expected: Vec<_> = objects.iter().map(normal).collect();
        let yaml = to_yaml_stream(&objects).unwrap();
        let read: Vec<_> = unstructured(&yaml).iter().map(normal).collect();
        prop_assert_eq!(&read, &expected, "{}", yaml);
        prop_assert_eq!(to_yaml_stream(&read).unwrap(), to_yaml_stream(&expected).unwrap());
        let json = to_json_stream(&objects).unwrap();
        prop_assert_eq!(unstructured(&json).iter().map(normal).collect::<Vec<_>>(), expected, "{}", json);
    }
}
