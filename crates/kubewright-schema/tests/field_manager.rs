//! Tests of field management beyond the recordings.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use kubewright_schema::{
    Gvk, Schemas, TypeRef,
    apply::{ApplyError, Converter, FieldManager, FieldSet, ManagedFields, keep_times_if_unchanged, scale},
    canonical,
};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";

struct Kind {
    gvk: Gvk,
    schema: TypeRef,
}

impl Kind {
    fn builtin(group: &str, version: &str, kind: &str) -> Self {
        let gvk = Gvk::new(group, version, kind);
        Self { schema: Schemas::builtin().lookup(&gvk).unwrap(), gvk }
    }

    fn custom(version: &str, spec: &Value) -> Self {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        Self {
            gvk: Gvk::new("example.com", version, "Widget"),
            schema: TypeRef::from_structural(&schema).unwrap(),
        }
    }

    fn at<'k>(&'k self, now: &'k str) -> FieldManager<'k> {
        FieldManager::new(&self.schema, &self.gvk, now)
    }

    fn object(&self, content: Value) -> Value {
        let mut object = json!({"apiVersion": self.gvk.api_version(), "kind": self.gvk.kind,
                                "metadata": {"name": "x", "uid": "u"}});
        let Value::Object(content) = content else { panic!() };
        for (key, value) in content {
            object[key] = value;
        }
        object
    }
}

fn managers(object: &Value) -> Vec<(&str, &str, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |entry: &'_ Value, key: &str| -> String { entry[key].as_str().unwrap_or_default().to_owned() };
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            assert_eq!(text(entry, "fieldsType"), "FieldsV1");
            (entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap(), &entry["fieldsV1"])
        })
        .collect()
}

#[test]
fn the_oldest_of_eleven_update_managers_are_merged() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let mut live = kind.at(NOW).update(None, kind.object(json!({"data": {"k0": "v"}})), "m00");
    live["metadata"]["uid"] = "u".into();
    for i in 1..12 {
        let mut new = live.clone();
        new["data"][format!("k{i}")] = "v".into();
        let now = format!("2026-01-01T00:00:{i:02}Z");
        live = kind.at(&now).update(Some(&live), new, &format!("m{i:02}"));
    }
    let managers = managers(&live);
    assert_eq!(managers.len(), 10);
    let ancient = managers.iter().find(|(name, ..)| *name == "ancient-changes").unwrap();
    assert_eq!(ancient.2["f:data"], json!({".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}));
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let time = entries.iter().find(|e| e["manager"] == "ancient-changes").unwrap()["time"].clone();
    assert_eq!(time, "2026-01-01T00:00:02Z", "the time of the youngest of them");
}

#[test]
fn appliers_do_not_count_towards_the_limit() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let mut live: Option<Value> = None;
    for i in 0..15 {
        let mut config = kind.object(json!({"data": {format!("k{i}"): "v"}}));
        config["metadata"].as_object_mut().unwrap().remove("uid");
        live = Some(kind.at(NOW).apply(live.as_ref(), &config, &format!("m{i:02}"), false).unwrap());
    }
    assert_eq!(managers(&live.unwrap()).len(), 15);
}

#[test]
fn a_writer_without_a_name_is_called_unknown() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let object = kind.at(NOW).update(None, kind.object(json!({"data": {"a": "1"}})), "");
    assert_eq!(managers(&object)[0].0, "unknown");
}

#[test]
fn subresources_have_separate_entries_and_reset_fields_are_not_owned() {
    let kind = Kind::builtin("apps", "v1", "Deployment");
    let no_status = FieldSet::from_field_names([&["status"][..]]);
    let no_spec = FieldSet::from_field_names([&["spec"][..], &["metadata", "labels"]]);
    let mut new = kind.object(json!({"spec": {"replicas": 1}, "status": {"replicas": 1}}));
    canonical::canonicalise(&kind.schema, &mut new);
    let live = kind.at(NOW).with_reset_fields(&no_status).update(None, new, "m");
    assert_eq!(managers(&live), [("m", "Update", &json!({"f:spec": {"f:replicas": {}}}))]);

    let mut next = live.clone();
    next["status"] = json!({"replicas": 5});
    next["spec"]["replicas"] = 9.into();
    let live =
        kind.at(NOW).with_subresource("status").with_reset_fields(&no_spec).update(Some(&live), next, "m");
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:replicas": {}}}));
}

#[test]
fn an_endpoint_with_allowed_paths_tracks_only_those() {
    let kind = Kind::builtin("", "v1", "Pod");
    let pod = |image: &str, cpu: &str| {
        let container = json!({"name": "c", "image": image, "resources": {"limits": {"cpu": cpu}}});
        kind.object(json!({"spec": {"containers": [container]}}))
    };
    let live = kind.at(NOW).update(None, pod("i:1", "1"), "m");
    let mut next = pod("i:2", "2");
    next["metadata"] = live["metadata"].clone();
    let paths: &[&[&str]] = &[&["spec", "containers", "*", "resources"]];
    let live =
        kind.at(NOW).with_subresource("resize").with_allowed_paths(paths).update(Some(&live), next, "r");
    let (name, _, fields) = managers(&live)[1];
    assert_eq!(name, "r");
    let resources = json!({"f:resources": {"f:limits": {"f:cpu": {}}}});
    assert_eq!(*fields, json!({"f:spec": {"f:containers": {r#"k:{"name":"c"}"#: resources}}}));
}

#[test]
fn a_subresource_cannot_edit_managed_fields() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let live = kind.at(NOW).update(None, kind.object(json!({"data": {"a": "1"}})), "m");
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([]);
    assert_eq!(
        managers(&kind.at(NOW).with_subresource("status").update(Some(&live), reset.clone(), "m")).len(),
        1
    );
    assert_eq!(managers(&kind.at(NOW).update(Some(&live), reset.clone(), "m")).len(), 0);
}

#[test]
fn apply_fails_on_invalid_live_managed_fields() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let mut live = kind.object(json!({"data": {"a": "1"}}));
    live["metadata"]["managedFields"] = json!([{"operation": "Nope"}]);
    let config = kind.object(json!({"data": {"a": "2"}}));
    let refused = kind.at(NOW).apply(Some(&live), &config, "m", false).unwrap_err();
    assert_eq!(refused.to_string(), "failed to decode managed fields: operation must be `Apply` or `Update`");
    assert_eq!(refused.code(), 500);
}

#[test]
fn duplicates_in_a_live_list_are_kept_but_not_merged() {
    let kind = Kind::builtin("", "v1", "Pod");
    let env = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B", "value": "3"}]);
    let mut live = kind.object(json!({"spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}));
    canonical::canonicalise(&kind.schema, &mut live);
    let live = kind.at(NOW).update(None, live, "m");
    let container = &managers(&live)[0].2["f:spec"]["f:containers"][r#"k:{"name":"c"}"#];
    assert_eq!(container["f:env"][r#"k:{"name":"A"}"#], json!({}), "a repeated key is owned as one");

    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [
        {"name": "c", "env": [{"name": "B", "value": "4"}]}]}});
    let live = kind.at(NOW).apply(Some(&live), &config, "a", true).unwrap();
    let env = live["spec"]["containers"][0]["env"].as_array().unwrap();
    assert_eq!(env.len(), 3);
    assert_eq!(env[2]["value"], "4");
}

#[test]
fn items_have_the_order_of_the_configuration() {
    let kind = Kind::builtin("", "v1", "Pod");
    let pod = |names: &[&str]| {
        let containers: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": containers}})
    };
    let names = |object: &Value| -> Vec<String> {
        let list = object["spec"]["containers"].as_array().unwrap();
        list.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    let live = kind.at(NOW).apply(None, &pod(&["a", "b", "c"]), "one", false).unwrap();
    let live = kind.at(NOW).apply(Some(&live), &pod(&["c", "x", "a"]), "two", false).unwrap();
    assert_eq!(names(&live), ["b", "c", "x", "a"]);
}

#[test]
fn kubectl_takes_over_fields_of_its_last_applied_annotation() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let last =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = kind.object(json!({"data": {"a": "1", "b": "1"}}));
    object["metadata"]["annotations"] = json!({annotation: last.to_string()});
    let live = kind.at(NOW).update(None, object, "kubectl-client-side-apply");

    let config = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data});
    let applied = kind.at(NOW).apply(Some(&live), &config(json!({"a": "2"})), "kubectl", false).unwrap();
    assert_eq!(applied["data"]["a"], "2");
    assert_eq!(
        applied["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}\n"
    );
    let refused =
        kind.at(NOW).apply(Some(&live), &config(json!({"a": "2", "b": "2"})), "kubectl", false).unwrap_err();
    let ApplyError::Conflict(conflicts) = &refused else { panic!("{refused}") };
    assert_eq!(conflicts.0.len(), 1, "only what the annotation does not cover");
    assert_eq!(conflicts.0[0].field(), ".data.b");
    assert!(kind.at(NOW).apply(Some(&live), &config(json!({"a": "2"})), "other", false).is_err());
}

#[test]
fn a_list_that_became_atomic_is_owned_by_the_owners_of_its_items() {
    let items =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}});
    let granular = Kind::custom(
        "v1",
        &json!({"type": "object", "properties": {"l": {
        "type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}}),
    );
    let atomic = Kind::custom(
        "v1",
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": items}}}),
    );
    let config = granular.object(json!({"spec": {"l": [{"name": "a", "v": 1}]}}));
    let live = granular.at(NOW).apply(None, &config, "one", false).unwrap();
    assert_eq!(
        managers(&live)[0].2["f:spec"]["f:l"][r#"k:{"name":"a"}"#],
        json!({".": {}, "f:name": {}, "f:v": {}})
    );

    let other = atomic.object(json!({"spec": {"l": [{"name": "b"}]}}));
    let refused = atomic.at(NOW).apply(Some(&live), &other, "two", false).unwrap_err();
    assert_eq!(refused.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.l");
}

/// Converter between `v1` with `spec.old` and `v2` with `spec.new`.
struct RenamedField {
    v1: TypeRef,
    v2: TypeRef,
}

impl Converter for RenamedField {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<(Value, TypeRef)>, ApplyError> {
        let (from, to, schema) = match api_version {
            "example.com/v1" => ("new", "old", &self.v1),
            "example.com/v2" => ("old", "new", &self.v2),
            _ => return Ok(None),
        };
        let mut object = object.clone();
        object["apiVersion"] = api_version.into();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        Ok(Some((object, schema.clone())))
    }
}

#[test]
fn conflicts_with_managers_of_another_version_are_found_in_that_version() {
    let spec = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}, "z": {"type": "integer"}}});
    let (v1, v2) = (Kind::custom("v1", &spec("old")), Kind::custom("v2", &spec("new")));
    let converter = RenamedField { v1: v1.schema.clone(), v2: v2.schema.clone() };
    let live = v1
        .at(NOW)
        .with_converter(&converter)
        .apply(None, &v1.object(json!({"spec": {"old": 1}})), "one", false)
        .unwrap();
    let (live_v2, _) = converter.convert(&live, "example.com/v2").unwrap().unwrap();

    let config = v2.object(json!({"spec": {"new": 2}}));
    let refused =
        v2.at(NOW).with_converter(&converter).apply(Some(&live_v2), &config, "two", false).unwrap_err();
    assert_eq!(refused.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.old");

    // The same applier moves to the new version: its old field becomes its new field.
    let moved = v2.at(NOW).with_converter(&converter);
    let config = v2.object(json!({"spec": {"z": 1}}));
    let after = moved.apply(Some(&live_v2), &config, "one", false).unwrap();
    assert_eq!(after["spec"], json!({"z": 1}), "what it no longer applies is gone in the new version too");
    assert_eq!(after["metadata"]["managedFields"][0]["apiVersion"], "example.com/v2");

    // Managers of a version that no longer exists are dropped.
    let forgotten =
        v2.at(NOW).apply(Some(&live_v2), &v2.object(json!({"spec": {"new": 2}})), "two", false).unwrap();
    assert_eq!(managers(&forgotten).len(), 1);
}

#[test]
fn new_times_alone_are_no_change() {
    let kind = Kind::builtin("", "v1", "ConfigMap");
    let old = kind.at(NOW).update(None, kind.object(json!({"data": {"a": "1"}})), "m");
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = "2027-01-01T00:00:00Z".into();
    let mut changed = new.clone();
    changed["data"]["a"] = "2".into();
    let before = changed.clone();
    keep_times_if_unchanged(&old, &mut new);
    keep_times_if_unchanged(&old, &mut changed);
    assert_eq!(new, old);
    assert_eq!(changed, before);
}

#[test]
fn scale_maps_only_the_replicas() {
    let paths: scale::ReplicasPaths = BTreeMap::from([("apps/v1".to_owned(), Some(scale::spec_replicas()))]);
    let entry = |manager: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": version, "time": NOW,
               "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let parent = json!([
        entry("a", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
        entry("b", "apps/v1", json!({"f:spec": {"f:paused": {}}})),
        entry("c", "apps/v9", json!({"f:spec": {"f:replicas": {}}})),
    ]);
    let shown = scale::to_scale(&parent, &paths).unwrap().encode();
    assert_eq!(shown, [entry("a", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]);

    let mut taken = entry("s", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    taken["subresource"] = "scale".into();
    let back = scale::to_parent(&parent, &json!([taken]), "apps/v1", &paths).unwrap().encode();
    let fields: Vec<_> = back.iter().map(|e| (e["manager"].clone(), e["fieldsV1"].clone())).collect();
    assert_eq!(
        fields,
        [
            (json!("s"), json!({"f:spec": {"f:replicas": {}}})),
            (json!("a"), json!({"f:spec": {"f:paused": {}}})),
            (json!("b"), json!({"f:spec": {"f:paused": {}}})),
        ]
    );
    assert_eq!(ManagedFields::decode(&json!(back)).unwrap().0.len(), 3);
}
