//! Validation of a value against its schema, as apply requires of a configuration.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};

use super::{Atom, ListView, MapView, ScalarKind, atom};
use crate::{Node, apply::path::PathElement, go};

/// Validation errors, in the format of structured-merge-diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problems(Vec<(String, String)>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, (path, message): &(String, String)| match &**path {
            "" => f.write_str(message),
            path => write!(f, "{path}: {message}"),
        };
        if let [only] = &*self.0 {
            return one(f, only);
        }
        f.write_str("errors:")?;
        for problem in &self.0 {
            f.write_str("\n  ")?;
            one(f, problem)?;
        }
        Ok(())
    }
}

/// Validates a value; duplicates in sets and associative lists are allowed in live objects only.
pub(crate) fn validate(node: &Node, value: &Value, allow_duplicates: bool) -> Result<(), Problems> {
    let mut walker = Walker { allow_duplicates, path: Vec::new(), problems: Vec::new() };
    walker.value(node, value);
    if walker.problems.is_empty() { Ok(()) } else { Err(Problems(walker.problems)) }
}

/// Step of a path, formatted only for errors.
enum Step<'v> {
    Field(&'v str),
    Item(PathElement),
    Index(usize),
}

struct Walker<'v> {
    allow_duplicates: bool,
    path: Vec<Step<'v>>,
    problems: Vec<(String, String)>,
}

impl<'v> Walker<'v> {
    fn report(&mut self, message: impl Into<String>) {
        let path = self
            .path
            .iter()
            .map(|step| match step {
                Step::Field(name) => format!(".{name}"),
                Step::Item(element) => element.to_string(),
                Step::Index(at) => format!("[{at}]"),
            })
            .collect();
        self.problems.push((path, message.into()));
    }

    fn value(&mut self, node: &Node, value: &'v Value) {
        if value.is_null() {
            return;
        }
        match atom(node, Some(value)) {
            Atom::Scalar(kind) => {
                if let Some(message) = scalar_problem(kind, value) {
                    self.report(message);
                }
            }
            Atom::List(view) => match value {
                Value::Array(items) => self.list(view, items),
                other => self.report(format!("expected list, got &{{{}}}", go::plain(other))),
            },
            Atom::Map(view) => match value {
                Value::Object(map) => self.map(view, map),
                other => self.report(format!("expected map, got &{{{}}}", go::plain(other))),
            },
        }
    }

    fn list(&mut self, view: ListView<'_>, items: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            let step = if view.is_atomic() {
                Step::Index(i)
            } else {
                match view.element(item) {
                    Ok(element) => {
                        if !self.allow_duplicates && !seen.insert(element.clone()) {
                            self.report(format!("duplicate entries for key {element}"));
                        }
                        Step::Item(element)
                    }
                    Err(message) => return self.report(format!("element {i}: {message}")),
                }
            };
            self.path.push(step);
            self.value(view.item(), item);
            self.path.pop();
        }
    }

    fn map(&mut self, view: MapView<'_>, map: &'v Map<String, Value>) {
        for (key, value) in map {
            self.path.push(Step::Field(key));
            let node = view.value_of(key);
            match node {
                Some(node) => self.value(node, value),
                None => self.report("field not declared in schema"),
            }
            self.path.pop();
            if node.is_none() {
                return;
            }
        }
    }
}

pub(super) fn scalar_problem(kind: ScalarKind, value: &Value) -> Option<String> {
    match (kind, value) {
        (ScalarKind::Numeric, Value::Number(_))
        | (ScalarKind::String, Value::String(_))
        | (ScalarKind::Boolean, Value::Bool(_))
        | (ScalarKind::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (ScalarKind::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", go::type_name(other)))
        }
        (ScalarKind::String, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(other)))
        }
        (ScalarKind::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", go::plain(other))),
        (ScalarKind::Untyped, other) => Some(format!("expected any scalar, got &{{{}}}", go::plain(other))),
    }
}
