//! Nodes into types: what fits, what does not, and how that is told.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{Container, Secret},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde::{Deserialize, de};

use crate::scheme::{de::from_node, limits::Limits, node::Node, yaml::YamlReader};

fn node(yaml: &str) -> Node {
    YamlReader::new(yaml, 1, Limits::default()).next().unwrap().unwrap()
}

fn fault<T: de::DeserializeOwned + fmt::Debug>(yaml: &str) -> (usize, String, String) {
    let fault = from_node::<T>(node(yaml)).unwrap_err().into_fault();
    (fault.at.unwrap().line, fault.path, fault.message)
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Sample {
    count: u8,
    ratio: f64,
    word: String,
    maybe: Option<i64>,
    shape: Shape,
    marks: BTreeMap<String, Vec<i32>>,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            count: 0,
            ratio: 0.0,
            word: String::new(),
            maybe: None,
            shape: Shape::Point,
            marks: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { width: u8 },
}

#[test]
fn every_kind_of_value_finds_its_field() {
    let yaml =
        "{count: 3, ratio: 2, word: 'yes', maybe: null, shape: {box: {width: 4}}, marks: {a: [1, -2]}}";
    let (sample, unknown) = from_node::<Sample>(node(yaml)).unwrap();
    let marks = BTreeMap::from([("a".to_owned(), vec![1, -2])]);
    let shape = Shape::Box { width: 4 };
    assert_eq!(sample, Sample { count: 3, ratio: 2.0, word: "yes".into(), maybe: None, shape, marks });
    assert_eq!(unknown, []);
    for (yaml, shape) in [
        ("shape: point", Shape::Point),
        ("shape: {point: }", Shape::Point),
        ("shape: {circle: 1.5}", Shape::Circle(1.5)),
        ("shape: {line: [1, 2]}", Shape::Line(1, 2)),
    ] {
        assert_eq!(from_node::<Sample>(node(yaml)).unwrap().0.shape, shape);
    }
}

#[test]
fn a_value_that_does_not_fit_names_its_path_and_line() {
    let at = |line, path: &str, message: &str| (line, path.to_owned(), message.to_owned());
    assert_eq!(
        fault::<Sample>("word: x\ncount: 300\n"),
        at(2, "count", "invalid value: integer `300`, expected u8")
    );
    assert_eq!(
        fault::<Sample>("marks:\n  a.b:\n  - 1\n  - x\n"),
        at(4, "marks[a.b][1]", "invalid type: a string, expected i32")
    );
    assert_eq!(fault::<Sample>("shape:\n  line: [1]"), {
        at(2, "shape", "invalid length 1, expected tuple variant Shape::Line with 2 elements")
    });
    assert_eq!(fault::<Sample>("- 1"), at(1, "", "invalid type: a list, expected struct Sample"));
    assert_eq!(
        fault::<Sample>("shape: {line: [1, 2, 3]}"),
        at(1, "shape", "invalid length 3, expected a list of 2")
    );
    let (_, path, message) = fault::<Sample>("shape: {a: 1, b: 2}");
    assert!(path == "shape" && message.contains("variant"), "{message}");
    let (_, _, message) = fault::<Sample>("shape: blob");
    assert!(message.contains("blob") && message.contains("circle"), "{message}");
}

#[test]
fn an_unquoted_word_in_a_text_field_is_an_error_that_shows_the_word() {
    for (word, found) in [("yes", "boolean `true`"), ("0777", "integer `511`"), ("1e3", "integer `1000`")] {
        let (line, path, message) = fault::<Sample>(&format!("\nword: {word}"));
        assert_eq!((line, path.as_str()), (2, "word"));
        assert!(message.contains(found) && message.contains(&format!("written {word} ")), "{message}");
    }
    let (_, _, message) = fault::<Sample>("word: 12");
    assert_eq!(message, "invalid type: integer `12`, expected a string");
}

#[test]
fn ignored_fields_are_reported_with_a_guess() {
    let yaml = "name: a\nimagePullPolcy: Always\nports:\n- containerport: 80\n  what: {deep: 1}\n";
    // containerPort is required by the API but not by the Rust type's reader.
    let (_, unknown) = from_node::<Container>(node(yaml)).unwrap();
    let found: Vec<_> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "unknown field imagePullPolcy (did you mean imagePullPolicy?), line 2",
            "unknown field ports[0].containerport (did you mean containerPort?), line 4",
            "unknown field ports[0].what, line 5",
        ]
    );
}

#[test]
fn quantities_and_int_or_strings_take_numbers() {
    let yaml = "name: a\nresources: {limits: {cpu: 1, memory: 0.5, disk: 1e3, gpu: 2k}}\n";
    let (container, _) = from_node::<Container>(node(yaml)).unwrap();
    let limits = container.resources.unwrap().limits.unwrap();
    let texts: Vec<_> = limits.iter().map(|(name, quantity)| (name.as_str(), quantity.0.as_str())).collect();
    assert_eq!(texts, [("cpu", "1"), ("disk", "1000"), ("gpu", "2k"), ("memory", "0.5")]);

    assert_eq!(from_node::<IntOrString>(node("80")).unwrap().0, IntOrString::Int(80));
    assert_eq!(from_node::<IntOrString>(node("http")).unwrap().0, IntOrString::String("http".into()));
}

#[test]
fn texts_of_the_document_are_not_quoted() {
    let (_, path, message) = fault::<Secret>("stringData: hunter2");
    assert_eq!(path, "stringData");
    assert!(!message.contains("hunter2"), "{message}");
    let (_, _, message) = fault::<Sample>("count: hunter2");
    assert!(!message.contains("hunter2"), "{message}");
}
