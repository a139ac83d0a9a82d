//! Round trip of every built-in kind between protobuf and JSON, with arbitrary content.

use kubewright_schema::{
    AdditionalProperties, Field, Gvk, Kind, Node, Presence, Scalar, Schemas, WireForm, canonical, protobuf,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Generator of values that match a schema. Seeded, so that a failure can be reproduced from two numbers.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.next() % from.len() as u64).expect("an index")]
    }

    fn of(&mut self, node: &Node, form: WireForm, depth: u32) -> Value {
        match &node.kind {
            Kind::Scalar(scalar) => self.scalar(*scalar),
            Kind::List(list) => {
                let count = self.pick(&[1, 1, 2]);
                (0..count).map(|_| self.of(list.item.node(), form, depth + 1)).collect()
            }
            Kind::Object(object) => {
                let mut members = Map::new();
                // Only top-level objects have a kind, and theirs is in the envelope.
                for field in object.fields.iter().filter(|f| !f.wire.numbers.is_empty()) {
                    if self.next().is_multiple_of(u64::from(2 + depth * depth)) || field.required {
                        self.field(field, depth, &mut members);
                    }
                }
                if let (true, AdditionalProperties::Values(values)) =
                    (object.fields.is_empty(), &object.additional)
                {
                    for key in ["b", "a.example.com/x"] {
                        members.insert(key.into(), self.of(values.node(), form, depth + 1));
                    }
                }
                Value::Object(members)
            }
            Kind::Any | Kind::Raw => self.any(form),
        }
    }

    fn field(&mut self, field: &Field, depth: u32, members: &mut Map<String, Value>) {
        let node = field.node.node();
        if depth < 9 && !(depth > 6 && matches!(node.kind, Kind::List(_) | Kind::Any)) {
            members.insert(field.name.to_string(), self.of(node, field.wire.form, depth + 1));
        }
    }

    fn any(&mut self, form: WireForm) -> Value {
        let schema = json!({"type": "string", "maxLength": 3});
        match (form, self.next() % 3) {
            (WireForm::SchemaOrBool, 0) => true.into(),
            (WireForm::SchemaOrBool, 1) => false.into(),
            (WireForm::SchemaOrArray, 0) => json!([schema, {"minimum": 0.5, "maximum": 7}]),
            (WireForm::SchemaOrStrings, 0) => json!(["a", "b"]),
            (WireForm::SchemaOrBool | WireForm::SchemaOrArray | WireForm::SchemaOrStrings, _) => schema,
            (_, 0) => json!({"f:metadata": {"f:labels": {}}, ".": 1}),
            (_, 1) => json!([1, "two", null]),
            _ => json!("text"),
        }
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::String | Scalar::Formatted => self.pick(&["", "a", "käse", "x/y-z"]).into(),
            Scalar::Bytes => self.pick(&["AP8=", "aGVsbG8="]).into(),
            Scalar::Time => self.pick(&["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"]).into(),
            Scalar::MicroTime => {
                self.pick(&["2026-01-02T03:04:05.000006Z", "1970-01-01T00:00:00.000000Z"]).into()
            }
            Scalar::Int32 => self.pick(&[0, 1, -1, i32::MAX, i32::MIN]).into(),
            Scalar::Int64 => self.pick(&[0, 1, -1, i64::MAX, i64::MIN]).into(),
            Scalar::Number => self.pick(&[json!(0), json!(3), json!(-0.25)].each_ref()).clone(),
            Scalar::Boolean => self.next().is_multiple_of(2).into(),
            Scalar::IntOrString => {
                self.pick(&[json!(0), json!(-8080), json!("http"), json!("")].each_ref()).clone()
            }
            Scalar::Quantity => self.pick(&["0", "100m", "1Gi", "1e3", "-5k"]).into(),
        }
    }
}

/// Returns an object of a kind in its stored form, with its kind.
fn object(gvk: &Gvk, seed: u64) -> Value {
    let schema = Schemas::builtin().lookup(gvk).expect("a kind of the table");
    let mut value = Generator(seed).of(&schema, WireForm::Plain, 0);
    canonical::canonicalise(&schema, &mut value);
    canonical::nullify_empty(&schema, &mut value);
    if let Some(members) = value.as_object_mut() {
        members.insert("kind".into(), gvk.kind.as_str().into());
        members.insert("apiVersion".into(), gvk.api_version().into());
    }
    value
}

fn kinds() -> Vec<Gvk> {
    // A watch event is a frame, not a document.
    Schemas::builtin().kinds().filter(|gvk| gvk.kind != "WatchEvent").collect()
}

#[test]
fn every_kind_round_trips() {
    for gvk in kinds() {
        for seed in 0..8 {
            let value = object(&gvk, seed);
            let bytes = protobuf::encode(&value).unwrap();
            assert_eq!(protobuf::decode(&bytes).unwrap(), value, "{gvk} from seed {seed}");
        }
    }
}

/// `requestPolicy.default` is a pointer that Go writes as null; decoding a zero would invent a policy.
#[test]
fn an_absent_quantity_is_not_zero() {
    let device = json!({
        "name": "gpu-0", "capacity": {"memory": {"value": "1Gi", "requestPolicy": {"default": null}}},
    });
    let slice = json!({
        "kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    });
    assert_eq!(protobuf::decode(&protobuf::encode(&slice).unwrap()).unwrap(), slice);
}

#[test]
fn fields_of_every_built_in_type_have_a_number() {
    for definition in Schemas::builtin().definitions() {
        let Some(object) = definition.schema.as_object() else { continue };
        for field in &object.fields {
            let type_meta =
                matches!(&*field.name, "kind" | "apiVersion") && field.presence == Presence::OmitEmpty;
            assert!(type_meta || !field.wire.numbers.is_empty(), "{}.{}", definition.name, field.name);
        }
    }
}

#[test]
fn partial_objects_can_be_encoded() {
    let item = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a", "labels": {"b": "c"}},
    });
    assert_eq!(protobuf::decode(&protobuf::encode(&item).unwrap()).unwrap(), item);
    let list = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}}],
    });
    assert_eq!(protobuf::decode(&protobuf::encode(&list).unwrap()).unwrap(), list);
}

#[test]
fn a_status_has_the_bytes_of_kube_apiserver() {
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "NotAcceptable", "code": 406,
    });
    let mut recorded =
        b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12\x99\x01\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a".to_vec();
    recorded.push(u8::try_from(message.len()).unwrap());
    recorded.extend_from_slice(message.as_bytes());
    recorded.extend_from_slice(b"\"\rNotAcceptable0\x96\x03\x1a\0\"\0");
    assert_eq!(protobuf::encode(&status).unwrap(), recorded);
}

#[test]
fn invalid_documents_are_rejected() {
    let why = |bytes: &[u8]| protobuf::decode(bytes).unwrap_err().to_string();
    assert_eq!(why(b""), "empty data");
    assert!(why(b"{}").starts_with("provided data does not appear to be a protobuf message"));
    assert_eq!(why(b"k8s\0\x0a\x7f"), "unexpected EOF");
    let widget = b"k8s\0\x0a\x0a\x0a\x02v1\x12\x04Nope\x12\x00";
    assert!(why(widget).starts_with("no kind \"Nope\" is registered for version \"v1\""), "{}", why(widget));
    // A ConfigMap whose metadata is a number.
    let wrong = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x08\x01";
    assert_eq!(why(wrong), "proto: wrong wireType = 0 for field metadata");
}

#[test]
fn nesting_is_limited() {
    // Nested schemas.
    let mut crd = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"id": "x"}}}]},
    });
    assert!(protobuf::decode(&protobuf::encode(&crd).unwrap()).is_ok());
    let deep = (0..300).fold(json!({"id": "x"}), |inner, _| json!({"not": inner}));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = deep;
    let bytes = protobuf::encode(&crd).unwrap();
    assert_eq!(protobuf::decode(&bytes).unwrap_err().to_string(), "exceeded max depth");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_object_of_any_kind_round_trips(kind in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let gvk = kind.get(&kinds()).clone();
        let value = object(&gvk, seed);
        let bytes = protobuf::encode(&value).unwrap();
        prop_assert_eq!(protobuf::decode(&bytes).unwrap(), value);
    }

    #[test]
    fn malformed_documents_do_not_panic(
        kind in any::<prop::sample::Index>(),
        seed in any::<u64>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let gvk = kind.get(&kinds()).clone();
        let mut bytes = protobuf::encode(&object(&gvk, seed)).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for document in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            let Ok(read) = protobuf::decode(document) else { continue };
            let written = protobuf::encode(&read).unwrap();
            prop_assert_eq!(protobuf::decode(&written).unwrap(), read);
        }
    }
}
