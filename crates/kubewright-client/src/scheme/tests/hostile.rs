//! Input that is out to do harm, or just broken: no panic, no endless work, no endless memory.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use proptest::prelude::*;

use super::*;

/// Reads everything in every way.
fn read_all(input: &[u8]) -> usize {
    let scheme = Scheme::kubernetes();
    let decoders = [scheme.decoder(), scheme.decoder().lenient().unstructured_unknown().apply_defaults()];
    let mut objects = 0;
    for decoder in decoders {
        for object in decoder.decode(input) {
            match object {
                Ok(object) => {
                    objects += 1;
                    let _ = to_yaml(&object);
                }
                Err(error) => {
                    assert!(error.location().line() > 0 && error.location().document() > 0);
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
    objects
}

/// Pieces that documents are made of, so that random input gets past the first byte.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n".to_owned()),
        Just("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n".to_owned()),
        Just("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{}}".to_owned()),
        Just("---\n".to_owned()),
        Just("...\n".to_owned()),
        Just("%YAML 1.2\n".to_owned()),
        Just("spec: &a\n  containers: [*a]\n".to_owned()),
        Just("<<: *a\n".to_owned()),
        Just("data:\n  k: |2-\n    v\n".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\r\n".to_owned()),
        "[\\[\\]{}:,?&*!|>'\"%@`#\\-\\\\ \t\n\r]{1,8}",
        "[a-z0-9.]{1,4}: ",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(input in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&input);
    }

    #[test]
    fn arbitrary_pieces_of_documents_are_decoded_or_refused(input in fragments()) {
        read_all(input.as_bytes());
    }

    #[test]
    fn a_damaged_manifest_is_decoded_or_refused(at in 0_usize..400, with in any::<u8>(), remove in 0_usize..40) {
        let good = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: &l {app: 'web', on: \"1\"}\n\
                    spec:\n  replicas: 3\n  selector:\n    matchLabels: *l\n  template:\n    spec:\n      \
                    containers:\n      - name: web\n        image: nginx\n        command: [sh, -c, |-\n          \
                    exec x]\n        resources: {limits: {cpu: 1}}\n---\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}\n";
        let mut bytes = good.as_bytes().to_vec();
        let at = at.min(bytes.len() - 1);
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, [with]);
        read_all(&bytes);
    }
}

#[test]
fn aliases_that_multiply_are_stopped() {
    let mut bomb =
        String::from("apiVersion: v1\nkind: ConfigMap\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    let (good, bad) = errors(&Scheme::kubernetes().decoder().lenient(), &bomb);
    assert_eq!(good, 0);
    assert!(bad[0].contains("aliases of this document unfold"), "{}", bad[0]);

    let merges = "a: &a {b: 1}\n".to_owned() + &"<<: *a\n".repeat(10);
    let input = format!("apiVersion: v1\nkind: Foo\n{merges}");
    assert_eq!(errors(&Scheme::kubernetes().decoder().unstructured_unknown(), &input).0, 1);
}

#[test]
fn one_long_text_cannot_be_multiplied_either() {
    let text = "x".repeat(1024 * 1024);
    let input = format!("apiVersion: v1\nkind: ConfigMap\nt: &t {text}\nl: [{}]\n", "*t, ".repeat(100));
    let (_, bad) = errors(&Scheme::kubernetes().decoder().lenient(), &input);
    assert!(bad[0].contains("aliases"), "{}", bad[0]);
}

#[test]
fn nesting_has_an_end() {
    let decoder = Scheme::kubernetes().decoder().unstructured();
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("{\"a\": ", "}")] {
        for levels in [100, 127] {
            let input =
                format!("{{apiVersion: v1, kind: F, s: {}1{}}}", open.repeat(levels), close.repeat(levels));
            assert_eq!(errors(&decoder, &input).0, 1, "{levels} levels of {open}");
        }
        let input = format!("{{apiVersion: v1, kind: F, s: {}1{}}}", open.repeat(128), close.repeat(128));
        assert!(errors(&decoder, &input).1[0].contains("128 levels"));
        for levels in [1_000, 100_000] {
            let input =
                format!("{{apiVersion: v1, kind: F, s: {}1{}}}", open.repeat(levels), close.repeat(levels));
            assert_eq!(errors(&decoder, &input).0, 0, "{levels} levels of {open}");
        }
    }
    let steps = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<Vec<_>>().concat();
    assert!(errors(&decoder, &steps).1[0].contains("levels"));
    let by_alias = (1..200).map(|n| format!("b{n}: &b{n} [*b{}]\n", n - 1)).collect::<Vec<_>>().concat();
    let (_, bad) = errors(&decoder, &format!("apiVersion: v1\nkind: F\nb0: &b0 x\n{by_alias}"));
    assert!(bad[0].contains("128 levels"), "{}", bad[0]);
    let shallow = Scheme::kubernetes().decoder().max_depth(3);
    assert_eq!(errors(&shallow, "{apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}}").0, 1);
    assert_eq!(errors(&shallow, "{apiVersion: v1, kind: Pod, spec: {containers: [{name: b}]}}").0, 0);
}

/// The type that nests deepest in its own code must fit the stack of a test thread.
#[test]
fn the_deepest_schema_fits_a_small_stack() {
    let schema =
        (0..60).fold("{type: string}".to_owned(), |inner, _| format!("{{properties: {{p: {inner}}}}}"));
    let input = format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {{group: g, scope: Cluster, \
         names: {{kind: K, plural: ks}}, versions: [{{name: v1, served: true, storage: true, schema: \
         {{openAPIV3Schema: {schema}}}}}]}}}}"
    );
    let decode = move || {
        let crd: CustomResourceDefinition = Scheme::kubernetes().decoder().decode_one(&input).unwrap();
        to_yaml(&crd).unwrap().len()
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(decode).unwrap();
    assert!(thread.join().unwrap() > 1000);
}

#[test]
fn a_long_stream_is_read_to_its_end() {
    let mut input = String::new();
    for n in 0..3_000 {
        writeln!(input, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{n}\ndata:\n  k: v")
            .unwrap();
    }
    let (good, bad) = errors(&Scheme::kubernetes().decoder(), &input);
    assert_eq!((good, bad.len()), (3_000, 0));
}
