use serde_json::json;

use super::*;

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn an_object_keeps_everything_but_type_and_gets_its_revision() {
    let object = map(&json!({
        "kind": "Secret", "apiVersion": "v1", "type": "Opaque",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "9", "labels": {"z": "1", "a": "2"}},
    }));
    let stored = Draft::encode(&object, Box::default()).finish(1234);
    assert_eq!(
        Value::Object(stored.decode()),
        json!({
            "type": "Opaque",
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1234", "labels": {"z": "1", "a": "2"}},
        })
    );
    assert_eq!(stored.meta.label("a"), Some("2"));
    assert_eq!(stored.meta.label("b"), None);
    let later = stored.with_revision(99_999);
    assert_eq!(later.decode()["metadata"]["resourceVersion"], "99999");
    assert_eq!(later.with_revision(1234).bytes(), stored.bytes());
}

#[test]
fn an_object_of_maximum_nesting_round_trips() {
    let mut deep = json!(1);
    for _ in 0..kubewright_schema::body::MAX_DEPTH {
        deep = json!({ "a": deep });
    }
    let object = map(&json!({"metadata": {"name": "a"}, "deep": deep}));
    assert_eq!(Draft::encode(&object, Box::default()).finish(1).decode()["deep"], object["deep"]);
}

#[test]
fn managed_fields_given_as_text_are_encoded_in_place() {
    let managers = json!([{"manager": "m", "fieldsV1": {"f:a": {}}}]);
    for others in [json!({}), json!({"finalizers": ["f"]}), json!({"ownerReferences": [], "z": 1, "a": 1})] {
        let mut object = map(&json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "x": 1}));
        object["metadata"].as_object_mut().unwrap().extend(map(&others));
        let beside = Draft::encode_with(&object, Some(&managers.to_string()), Box::default()).finish(1);
        object["metadata"]["managedFields"] = managers.clone();
        assert_eq!(beside.bytes(), Draft::encode(&object, Box::default()).finish(1).bytes());
    }
}

#[test]
fn delta_encoded_objects_decode_to_the_same_text() {
    let bases = Bases::default();
    let pod = |n: u64| {
        let env: Vec<Value> = (0..60).map(|n| json!({"name": format!("NAME_{n}"), "value": "v"})).collect();
        map(&json!({
            "metadata": {"name": format!("pod-{n}"), "ownerReferences": [{"uid": "o"}], "uid": format!("{n:08}")},
            "spec": {"env": env, "node": n * 7},
        }))
    };
    // The base must be alive for the others to be delta-encoded against it.
    let mut kept = Vec::new();
    for n in [1, 2, 10, 99, 100, 12_345_678] {
        let draft = Draft::encode(&pod(n), Box::default());
        let encoding = bases.encoding("pods", &draft);
        assert_eq!(matches!(encoding, Encoding::Delta(_)), !kept.is_empty());
        let alone = draft.clone().finish(n);
        let object = draft.finish_encoded(n, encoding, &bases);
        assert_eq!(object.bytes(), alone.bytes());
        assert_eq!((object.size(), object.decode()), (alone.size(), alone.decode()));
        let mut inside = Vec::new();
        object.for_each_member_chunk(|piece| inside.extend_from_slice(piece));
        assert_eq!(inside, alone.bytes()[1..]);
        for revision in [0, 7, 123_456] {
            let (later, alone) = (object.with_revision(revision), alone.with_revision(revision));
            assert_eq!((later.bytes(), later.size()), (alone.bytes(), alone.size()));
        }
        kept.push(object);
    }
}

#[test]
fn concurrent_readers_share_one_text() {
    let bases = Bases::default();
    let keep = |name: &str| {
        let object =
            json!({"metadata": {"name": name, "ownerReferences": [{"uid": "o"}]}, "x": "y".repeat(2000)});
        let draft = Draft::encode(&map(&object), Box::default());
        let encoding = bases.encoding("pods", &draft);
        draft.finish_encoded(1, encoding, &bases)
    };
    let (_first, second) = (keep("a"), keep("b"));
    let (one, other) = (second.bytes(), second.bytes());
    assert_eq!(one.as_ptr(), other.as_ptr());
}

#[test]
fn a_preview_has_no_resource_version() {
    for object in
        [json!({"metadata": {"name": "a"}, "x": 1}), json!({"metadata": {"name": "a", "labels": {}}})]
    {
        let shown = Draft::encode(&map(&object), Box::default()).preview(None);
        assert_eq!(Value::Object(shown.decode()), object);
    }
}
