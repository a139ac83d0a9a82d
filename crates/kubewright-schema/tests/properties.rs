//! Property tests of decoding, patches, apply and validation.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kubewright_schema::{
    Gvk, Schemas, TypeRef,
    apply::{FieldManager, FieldSet, PathElement, Scalar},
    body::{self, Format, Limits},
    canonical,
    default::apply_defaults,
    lists, patch,
    prune::prune,
    validate::Validator,
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-02T00:00:00Z";

fn builtin(group: &str, version: &str, kind: &str) -> (Gvk, TypeRef) {
    let gvk = Gvk::new(group, version, kind);
    let schema = Schemas::builtin().lookup(&gvk).unwrap();
    (gvk, schema)
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "name", "spec", "$patch", "x/y", "m~n", ""])
        .prop_map(str::to_owned)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "replace", "delete", "10Gi"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn json_object() -> impl Strategy<Value = Value> {
    vec((key(), json_value()), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

/// Returns configurations of a Deployment with some merged lists and maps.
fn config() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let env = vec((name(), 0i64..3), 0..3).prop_map(|env| {
        let unique: std::collections::BTreeMap<_, _> = env.into_iter().collect();
        unique.into_iter().map(|(n, v)| json!({"name": n, "value": v.to_string()})).collect::<Vec<_>>()
    });
    let container = (name(), prop::option::of(0i64..3), env);
    let containers = vec(container, 0..3).prop_map(|containers| {
        let unique: std::collections::BTreeMap<_, _> =
            containers.into_iter().map(|(name, image, env)| (name, (image, env))).collect();
        unique
            .into_iter()
            .map(|(name, (image, env))| {
                let mut container = json!({"name": name});
                if let Some(image) = image {
                    container["image"] = format!("i:{image}").into();
                }
                if !env.is_empty() {
                    container["env"] = env.into();
                }
                container
            })
            .collect::<Vec<_>>()
    });
    let finalizers = prop::sample::subsequence(vec!["x/1", "x/2", "x/3"], 0..=3);
    (containers, prop::option::of(1i64..4), finalizers, vec((name(), 0i64..3), 0..3)).prop_map(
        |(containers, replicas, finalizers, labels)| {
            let mut object =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {}});
            if let Some(replicas) = replicas {
                object["spec"]["replicas"] = replicas.into();
            }
            if !containers.is_empty() {
                object["spec"]["template"] = json!({"spec": {"containers": containers}});
            }
            if !finalizers.is_empty() {
                object["metadata"]["finalizers"] = json!(finalizers);
            }
            for (label, value) in labels {
                object["metadata"]["labels"][label] = value.to_string().into();
            }
            object
        },
    )
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c:.]{0,3}".prop_map(PathElement::field),
        json_value().prop_map(|v| PathElement::Value(Scalar(v))),
        vec(("[a-c]", json_value()), 1..3).prop_map(|pairs| {
            let map: Map<String, Value> = pairs.into_iter().collect();
            PathElement::Key(map.into_iter().map(|(k, v)| (k.into(), Scalar(v))).collect())
        }),
        (0i64..5).prop_map(PathElement::Index),
    ]
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    vec(vec(element(), 1..4), 0..8).prop_map(FieldSet::from_iter)
}

/// Converts a merge patch on a document into the equivalent JSON patch.
fn as_json_patch(document: &Value, patch: &Value, path: &str, out: &mut Vec<Value>) {
    for (key, value) in patch.as_object().unwrap() {
        let here = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        match (document.get(key), value) {
            (None, Value::Null) => {}
            (Some(_), Value::Null) => out.push(json!({"op": "remove", "path": here})),
            (Some(current @ Value::Object(_)), Value::Object(_)) => as_json_patch(current, value, &here, out),
            (_, value) => out.push(json!({"op": "add", "path": here, "value": without_nulls(value)})),
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        ),
        other => other.clone(),
    }
}

/// Returns whether a list has a null. Objects in lists of a merge patch lose or keep nulls depending on what
/// they replace, which RFC 7386 leaves open, so such lists are not compared.
fn has_null_in_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null_in_list),
        _ => false,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn field_sets_round_trip_through_fields_v1(set in field_set()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), set);
    }

    #[test]
    fn set_algebra_holds(a in field_set(), b in field_set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.union(&b).difference(&b), a.difference(&b));
    }

    #[test]
    fn applying_twice_changes_nothing(first in config(), second in config()) {
        let (gvk, schema) = builtin("apps", "v1", "Deployment");
        let at = |now| FieldManager::new(&schema, &gvk, now);
        let live = at(NOW).apply(None, &first, "one", false).unwrap();
        let live = at(NOW).apply(Some(&live), &second, "two", true).unwrap();
        let again = at(LATER).apply(Some(&live), &second, "two", true).unwrap();
        prop_assert_eq!(again, live);
    }

    #[test]
    fn fields_of_one_manager_are_removed_when_it_applies_nothing(config in config()) {
        let (gvk, schema) = builtin("apps", "v1", "Deployment");
        let fields = FieldManager::new(&schema, &gvk, NOW);
        let nothing = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
        let before = fields.apply(None, &nothing, "one", false).unwrap();
        let live = fields.apply(Some(&before), &config, "one", false).unwrap();
        let mut after = fields.apply(Some(&live), &nothing, "one", false).unwrap();
        let mut before = before;
        canonical::canonicalise(&schema, &mut before);
        canonical::canonicalise(&schema, &mut after);
        prop_assert_eq!(after, before);
    }

    #[test]
    fn sets_and_keyed_lists_never_get_duplicates(configs in vec((config(), 0..3), 1..6)) {
        let (gvk, schema) = builtin("apps", "v1", "Deployment");
        let fields = FieldManager::new(&schema, &gvk, NOW);
        let mut live: Option<Value> = None;
        for (config, manager) in configs {
            live = Some(fields.apply(live.as_ref(), &config, &format!("m{manager}"), true).unwrap());
        }
        let live = live.unwrap();
        let unique = |list: &Value, key: Option<&str>| {
            let items: Vec<_> = list.as_array().into_iter().flatten().map(|i| key.map_or(i, |k| &i[k])).collect();
            items.iter().enumerate().all(|(i, item)| !items[..i].contains(item))
        };
        prop_assert!(unique(&live["metadata"]["finalizers"], None));
        let containers = &live["spec"]["template"]["spec"]["containers"];
        prop_assert!(unique(containers, Some("name")));
        for container in containers.as_array().into_iter().flatten() {
            prop_assert!(unique(&container["env"], Some("name")));
        }
    }

    #[test]
    fn an_update_that_changes_nothing_keeps_managed_fields(first in config(), second in config()) {
        let (gvk, schema) = builtin("apps", "v1", "Deployment");
        let mut live = FieldManager::new(&schema, &gvk, NOW).apply(None, &first, "one", false).unwrap();
        live["metadata"]["uid"] = "u".into();
        let live = FieldManager::new(&schema, &gvk, NOW).apply(Some(&live), &second, "two", true).unwrap();
        let same = FieldManager::new(&schema, &gvk, LATER).update(Some(&live), live.clone(), "three");
        prop_assert_eq!(same, live);
    }

    #[test]
    fn merge_patch_and_its_json_patch_agree(document in json_object(), patch in json_object()) {
        prop_assume!(!has_null_in_list(&patch) && !has_null(&document));
        let mut operations = Vec::new();
        as_json_patch(&document, &patch, "", &mut operations);
        let merged = patch::merge::apply(document.clone(), patch).unwrap();
        prop_assert_eq!(patch::json::apply(document, &Value::Array(operations)).unwrap(), merged);
    }

    #[test]
    fn an_empty_strategic_patch_changes_nothing(document in json_object()) {
        let (_, schema) = builtin("", "v1", "Pod");
        prop_assert_eq!(patch::strategic::apply(&schema, document.clone(), json!({})).unwrap(), document);
    }

    #[test]
    fn a_strategic_patch_of_known_items_changes_nothing(config in config()) {
        let (_, schema) = builtin("apps", "v1", "Deployment");
        prop_assert_eq!(patch::strategic::apply(&schema, config.clone(), config.clone()).unwrap(), config);
    }

    #[test]
    fn canonicalisation_is_idempotent(value in json_object(), config in config()) {
        for value in [value, config] {
            let (_, schema) = builtin("apps", "v1", "Deployment");
            let mut once = value;
            canonical::canonicalise(&schema, &mut once);
            let mut twice = once.clone();
            canonical::canonicalise(&schema, &mut twice);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn pruning_and_defaulting_are_idempotent(value in json_object()) {
        let schema = TypeRef::from_structural(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}, "c": {"type": "array", "items": {"type": "object",
                "properties": {"name": {"type": "string", "default": "x"}}}}}},
            "a": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
        }})).unwrap();
        let mut once = value;
        prune(&schema, &mut once);
        apply_defaults(&schema, &mut once);
        let mut twice = once.clone();
        prop_assert_eq!(prune(&schema, &mut twice), Vec::<String>::new());
        apply_defaults(&schema, &mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn nothing_panics_on_any_value(value in json_value(), other in json_value(), force in any::<bool>()) {
        let (gvk, schema) = builtin("apps", "v1", "Deployment");
        let fields = FieldManager::new(&schema, &gvk, NOW);
        let mut config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": value});
        let _ = fields.apply(None, &config, "m", force);
        let _ = fields.apply(Some(&other), &config, "m", force);
        fields.update(Some(&other), config.clone(), "m");
        config["metadata"] = other.clone();
        let _ = fields.apply(Some(&config), &config, "m", force);
        let _ = patch::strategic::apply(&schema, config.clone(), other.clone());
        let _ = patch::json::apply(config.clone(), &other);
        let _ = patch::merge::apply(other.clone(), value.clone());
        let _ = body::check(&config, Some((&schema, "Deployment")), &Limits::default());
        let _ = FieldSet::from_fields_v1(&value);
        if let Ok(custom) = TypeRef::from_structural(&value) {
            let mut object = other.clone();
            prune(&custom, &mut object);
            apply_defaults(&custom, &mut object);
            lists::validate(&custom, &object);
        }
        if let Ok(validator) = Validator::new(&value) {
            validator.validate(&other);
            validator.validate_update(&other, &value);
        }
    }

    #[test]
    fn nothing_panics_on_any_body(text in "[-{}\\[\\]:,\"'&*|>#!%a-c0-9 \n\t~<.]{0,60}") {
        let (_, schema) = builtin("", "v1", "Pod");
        for format in [Format::Json, Format::Yaml] {
            let _ = body::decode(text.as_bytes(), format, Some((&schema, "Pod")), &Limits::default());
            let _ = body::decode(text.as_bytes(), format, None, &Limits::default());
        }
        let _ = PathElement::parse(&text);
    }
}
