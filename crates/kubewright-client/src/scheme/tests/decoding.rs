use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret, Service},
};
use serde_json::json;

use super::*;

fn kinds(input: &str) -> Vec<String> {
    Scheme::kubernetes()
        .decode(input)
        .map(|object| {
            let object = object.unwrap();
            format!("{} {}", object.gvk().kind, object.key().unwrap())
        })
        .collect()
}

#[test]
fn objects_of_several_types_come_out_of_one_stream() {
    let input = "# front\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\n---\n\n---\n\
                 apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n---\n# end\n";
    let objects: Vec<_> = Scheme::kubernetes().decode(input).map(Result::unwrap).collect();
    assert!(objects[0].downcast_ref::<Service>().is_some());
    assert!(objects[0].downcast_ref::<Deployment>().is_none() && objects[0].as_unstructured().is_none());
    let location = objects[1].location().unwrap();
    assert_eq!((location.document(), location.line(), location.file(), location.item()), (2, 10, None, None));
    let mut objects = objects.into_iter();
    let back = objects.next().unwrap().downcast::<Deployment>().unwrap_err();
    assert_eq!(back.downcast::<Service>().unwrap().metadata.name.as_deref(), Some("web"));
    assert!(objects.next().unwrap().downcast::<Deployment>().is_ok());
    assert!(objects.next().is_none());
}

#[test]
fn json_documents_and_streams_are_read_too() {
    let input = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\
                 {\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}\n---\n\
                 apiVersion: v1\nkind: Pod\nmetadata: {name: c}\n";
    assert_eq!(kinds(input), ["Pod a", "Pod b", "Pod c"]);
}

#[test]
fn lists_come_out_as_their_items() {
    let input = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n\
                 - {apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
                 - apiVersion: v1\n  kind: List\n  items:\n\
                 \x20 - {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}\n\
                 - {apiVersion: v1, kind: Service, metadata: {name: c}}\n---\n\
                 {\"apiVersion\": \"v1\", \"kind\": \"PodList\", \"metadata\": {}, \"items\": [\
                 {\"metadata\": {\"name\": \"d\"}}, \
                 {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"e\"}}]}\n---\n\
                 apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\n";
    assert_eq!(kinds(input), ["Pod a", "Deployment b", "Service c", "Pod d", "Pod e"]);
    let places: Vec<_> = Scheme::kubernetes()
        .decode(input)
        .map(|object| object.unwrap().location().unwrap().item().unwrap().to_owned())
        .collect();
    assert_eq!(places, ["items[0]", "items[1].items[0]", "items[2]", "items[0]", "items[1]"]);
}

#[test]
fn a_bad_item_of_a_list_hides_no_other_and_is_named() {
    let input = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
                 - {kind: Pod}\n- just text\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, sepc: 1}\n\
                 - {apiVersion: v1, kind: Pod, metadata: {name: c}}\n";
    let (good, bad) = errors(&Scheme::kubernetes().decoder(), input);
    assert_eq!(good, 2);
    assert_eq!(
        bad,
        [
            "line 5, column 3: document 1, items[1] (Pod): the object has no apiVersion; every object needs \
             apiVersion and kind",
            "line 6, column 3: document 1, items[2]: a Kubernetes object is needed here, but this is a string",
            "line 7, column 52: document 1, items[3] (v1 Pod b): unknown field sepc (did you mean spec?), line 7",
        ]
    );
}

#[test]
fn errors_name_file_line_document_and_object_and_the_rest_goes_on() {
    let input = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [\n---\n- 1\n---\n\
                 apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n---\n\
                 apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  containers:\n  - name: c\n    \
                 ports: many\n---\napiVersion: a/b/c\nkind: Pod\n---\napiVersion: v1\nmetadata: {name: nokind}\n---\n\
                 apiVersion: 1\nkind: Pod\n---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: old}\n\
                 ---\napiVersion: v1\nkind: Pod\nmetadata: {name: z}\n";
    let decoder = Scheme::kubernetes().decoder().file("all.yaml");
    let (good, bad) = errors(&decoder, input);
    assert_eq!(good, 2);
    assert!(bad[0].starts_with("all.yaml:6:") || bad[0].starts_with("all.yaml:5:"), "{}", bad[0]);
    assert!(bad[0].contains("document 2: "), "{}", bad[0]);
    assert_eq!(
        bad[1..],
        [
            "all.yaml:7:1: document 3: a Kubernetes object is needed here, but this is a list",
            "all.yaml:9:1: document 4 (example.com/v1 Widget shop/w): no type is registered for example.com/v1 \
             Widget; register one with SchemeBuilder::register, or keep unknown kinds with \
             Decoder::unstructured_unknown",
            "all.yaml:19:12: document 5 (v1 Pod b): spec.containers[0].ports: invalid type: a string, expected a \
             sequence",
            "all.yaml:21:1: document 6 (Pod): \"a/b/c\" is not an apiVersion: write it as version or group/version",
            "all.yaml:24:1: document 7 (nokind): the object has no kind; every object needs apiVersion and kind",
            "all.yaml:27:1: document 8 (Pod): the object has no apiVersion; every object needs apiVersion and kind",
            "all.yaml:30:1: document 9 (apps/v1beta1 Deployment old): no type is registered for apps/v1beta1 \
             Deployment (registered: apps/v1); register one with SchemeBuilder::register, or keep unknown kinds with \
             Decoder::unstructured_unknown",
        ]
    );
}

#[test]
fn strict_mode_reports_every_unknown_field_and_repeated_key() {
    let input = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  lables: {a: b}\nspec:\n  \
                 replicas: 1\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: a\n        \
                 imagePullpolicy: Always\n        env:\n        - {name: X, value: '1', value: '2'}\n";
    let error = Scheme::kubernetes().decode(input).next().unwrap().unwrap_err();
    let DecodeProblem::Strict(issues) = error.problem() else { panic!("{error}") };
    let issues: Vec<_> = issues.iter().map(ToString::to_string).collect();
    assert_eq!(
        issues,
        [
            "unknown field metadata.lables (did you mean labels?), line 5",
            "key spec.replicas was already set on line 7, line 8",
            "unknown field spec.template.spec.containers[0].imagePullpolicy (did you mean imagePullPolicy?), line 13",
            "key spec.template.spec.containers[0].env[0].value was already set on line 15, line 15",
        ]
    );
    assert_eq!(error.location().line(), 5);

    let object = Scheme::kubernetes().decoder().lenient().decode(input).next().unwrap().unwrap();
    assert_eq!(object.warnings().len(), 4);
    assert!(object.warnings()[1].is_repeated() && !object.warnings()[0].is_repeated());
    let deployment = object.downcast::<Deployment>().unwrap();
    assert_eq!(deployment.spec.replicas, Some(2), "the last of a repeated key wins");
}

#[test]
fn a_document_of_the_wrong_shape_does_not_flood_the_message() {
    let fields = (0..50).map(|n| format!("nonsense{n}: 1\n")).collect::<Vec<_>>().concat();
    let input = format!("apiVersion: v1\nkind: Pod\n{fields}");
    let message = Scheme::kubernetes().decode(&input).next().unwrap().unwrap_err().to_string();
    assert!(message.ends_with("; and 42 more"), "{message}");
}

#[test]
fn unknown_kinds_can_be_kept_without_a_type() {
    let input = "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: x, namespace: shop, labels: {a: b}}\n\
                 spec: {size: 3, tags: [a, {b: c}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    let decoder = Scheme::kubernetes().decoder().unstructured_unknown();
    let objects: Vec<_> = decoder.decode(input).map(Result::unwrap).collect();
    let foo = objects[0].as_unstructured().unwrap();
    assert_eq!(foo.types.as_ref().unwrap().kind, "Foo");
    assert_eq!(foo.metadata.labels.as_ref().unwrap()["a"], "b");
    assert_eq!(foo.data, json!({"spec": {"size": 3, "tags": ["a", {"b": "c"}]}}));
    assert_eq!(objects[0].key().unwrap().as_str(), "shop/x");
    assert!(objects[1].downcast_ref::<Pod>().is_some());

    let all = Scheme::kubernetes().decoder().unstructured();
    assert!(all.decode(input).all(|object| object.unwrap().as_unstructured().is_some()));
    let (_, bad) = errors(&all, "apiVersion: v1\nkind: Pod\nmetadata: {nmae: x}\nspec: {a: 1, a: 2}\n");
    assert!(bad[0].contains("metadata.nmae") && bad[0].contains("key spec.a"), "{}", bad[0]);
    let (_, bad) = errors(&all, "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: text\n");
    assert!(bad[0].starts_with("line 4, column 11: document 1 (v1 Pod): metadata.labels: "), "{}", bad[0]);
}

#[test]
fn one_object_can_be_asked_for() {
    let decoder = Scheme::kubernetes().decoder().file("f");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
    assert_eq!(decoder.decode_one::<Pod>(pod).unwrap().metadata.name.as_deref(), Some("a"));
    let message = |input: &str| decoder.decode_one::<Pod>(input).unwrap_err().to_string();
    assert_eq!(
        message("# nothing\n"),
        "f:1:1: document 1: v1 Pod was asked for, but there is no object in the input"
    );
    assert!(
        message(&format!("{pod}---\n{pod}"))
            .contains("f:5:1: document 2 (v1 Pod a): v1 Pod was asked for, but")
    );
    let other = message("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n");
    assert!(other.contains("v1 Service a") && other.contains("another type"), "{other}");
    let unregistered = decoder.decode_one::<WidgetV1>(pod).unwrap_err().to_string();
    assert!(unregistered.contains("not registered"), "{unregistered}");
}

#[test]
fn what_is_null_is_absent() {
    let input = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  creationTimestamp: null\n  labels:\n\
                 spec:\n  containers:\nstatus: {}\n";
    let pod: Pod = Scheme::kubernetes().decoder().decode_one(input).unwrap();
    assert_eq!(pod.metadata, ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() });
}

#[test]
fn a_secret_never_shows_in_an_error_or_a_debug_print() {
    let decoder = Scheme::kubernetes().decoder();
    for fault in [
        "data: {password: 'hunter2!'}",
        "stringData: [hunter2]",
        "data: hunter2",
        "type: {a: hunter2}",
        "stringData: {pin: 77123}",
        "data: {pin: 0o77123}",
        "stringData: {pin: 77_123.5}",
        "data: {pin: {a: 77123}}",
    ] {
        let input = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{fault}\n");
        let error = decoder.decode(&input).next().unwrap().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(["hunter2", "33", "77"].iter().all(|secret| !shown.contains(secret)), "{shown}");
        assert_eq!(error.location().line(), 4);
    }
    let input = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    let object = decoder.decode(input).next().unwrap().unwrap();
    assert_eq!(format!("{object:?}"), "Decoded(v1 Secret s)");
    assert_eq!(object.downcast::<Secret>().unwrap().string_data.unwrap()["password"], "hunter2");
}

#[test]
fn an_object_without_a_name_has_no_key() {
    let input = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\n";
    let object = Scheme::kubernetes().decode(input).next().unwrap().unwrap();
    assert!(object.key().is_err());
    assert_eq!(object.metadata().generate_name.as_deref(), Some("web-"));
}

#[test]
fn anchors_aliases_and_merges_unfold() {
    let input = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: &name colours\n  labels: &labels\n    app: x\n    \
                 tier: front\n  annotations:\n    tier: back\n    <<: [*labels, {app: y, extra: z}]\n    \
                 *name : yes it is\ndata: *labels\n";
    let config: ConfigMap = Scheme::kubernetes().decoder().decode_one(input).unwrap();
    let annotations: Vec<_> = config.metadata.annotations.as_ref().unwrap().iter().collect();
    let expected = [("app", "x"), ("colours", "yes it is"), ("extra", "z"), ("tier", "back")]
        .map(|(k, v)| (k.into(), v.into()));
    assert_eq!(annotations.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>(), expected);
    assert_eq!(config.data, config.metadata.labels);
}

#[test]
fn yaml_that_no_object_can_be_made_of_is_refused_with_a_reason() {
    for (yaml, reason) in [
        ("a: *nobody", "anchor"),
        ("a: &a [*a]", "inside the value"),
        ("? [a, b]\n: c", "cannot be a key"),
        ("~: x", "null cannot be a key"),
        (": x", "null cannot be a key"),
        ("<<: text", "<<"),
        ("<<: [text]", "<<"),
        ("a: .inf", "infinity"),
        ("a: !!binary aGVsbG8=", "base64"),
        ("a: !!int text", "!!int"),
        ("a: b: c", ""),
        ("a:\n\t- b", "tab"),
        ("a: 'open", "quote"),
        ("a: @x", ""),
    ] {
        let (good, bad) = errors(&Scheme::kubernetes().decoder(), yaml);
        assert_eq!((good, bad.len()), (0, 1), "{yaml}: {bad:?}");
        assert!(bad[0].contains(reason), "{yaml}: {}", bad[0]);
    }
}
