//! Warnings about accepted CRDs.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::Value;

use super::view::View;
use crate::{
    crd::props::{Props, any},
    schema::go,
};

const TEXT_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Returns the warnings about a new CRD or about the changes of an update: unrecognised formats, and sets
/// whose items apply and rules cannot distinguish.
///
/// ```
/// use kubewright_apiserver::crd::definition;
/// use serde_json::json;
///
/// let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
///     "type": "object", "properties": {"a": {"type": "string", "format": "banana"}}}}}]}});
/// assert_eq!(definition::warnings(&crd, None), ["unrecognized format \"banana\""]);
/// assert!(definition::warnings(&crd, Some(&crd)).is_empty());
/// ```
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(found).unwrap_or_default();
    found(crd).into_iter().filter(|warning| !before.contains(warning)).collect()
}

fn found(crd: &Value) -> Vec<String> {
    let (formats, sets) = (RefCell::new(Vec::new()), RefCell::new(BTreeSet::new()));
    let view = View::new(crd);
    let own = view.versions.iter().filter_map(|version| version.own.schema);
    for schema in view.shared.schema.into_iter().chain(own) {
        any(schema, &|props| {
            let format = props.text("format");
            if !format.is_empty() && !is_known(props.kind(), format) {
                formats.borrow_mut().push(format!("unrecognized format {}", go::quote(format)));
            }
            let items = props.items().map_or("", |items| Props::new(items).kind());
            if props.text("x-kubernetes-list-type") == "set" && matches!(items, "object" | "array") {
                sets.borrow_mut().insert(format!(
                    "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL \
                     validation rules",
                    go::quote(items)
                ));
            }
            false
        });
    }
    let mut out = formats.into_inner();
    out.extend(sets.into_inner());
    out
}

fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => TEXT_FORMATS.contains(&&*format.replace('-', "")),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}
