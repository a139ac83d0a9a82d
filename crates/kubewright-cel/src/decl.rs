//! Types declared by a schema, with the sizes that it allows.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::escape::escape;
use kubewright_schema::props::Props;

/// Maximum request size in bytes, which bounds sizes that the schema leaves open.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// Declared type.
#[derive(Debug, Clone, PartialEq)]
pub struct Decl {
    pub(super) kind: DeclKind,
    /// Maximum number of characters, items or entries; 0 if not countable.
    pub(super) max_elements: u64,
    /// Minimum size of a value in JSON, in bytes.
    pub(super) min_size: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DeclKind {
    /// `x-kubernetes-int-or-string`.
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    /// Whether it is a date without a time.
    Timestamp(bool),
    List(Arc<Decl>, ListKind),
    Map(Arc<Decl>),
    /// Fields by identifier, with their unescaped names.
    Object(BTreeMap<String, (String, Arc<Decl>)>),
}

/// Equality and concatenation semantics of a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ListKind {
    Atomic,
    Set,
    Map(Vec<String>),
}

impl Decl {
    /// Creates the type of a schema; `None` if rules cannot access it. A resource has apiVersion, kind and
    /// the name in its metadata.
    pub fn from_schema(schema: &Value, is_resource: bool) -> Option<Arc<Self>> {
        let props = Props::new(schema);
        let max_length = props.number("maxLength").map(|n| u64::try_from(n).unwrap_or_default());
        let text = |kind, min_size, max: u64| Self { kind, max_elements: max, min_size };
        let decl = match props.kind() {
            _ if props.flag("x-kubernetes-int-or-string") => {
                text(DeclKind::Dyn, 1, max_length.map_or(MAX_REQUEST - 2, |max| max.saturating_mul(4)))
            }
            "array" => {
                let items = props.items()?;
                let elem =
                    Self::from_schema(items, Props::new(items).flag("x-kubernetes-embedded-resource"))?;
                let max =
                    props.number("maxItems").map_or((MAX_REQUEST - 2) / (elem.min_size + 1), at_least_zero);
                let kind = match props.text("x-kubernetes-list-type") {
                    "set" => ListKind::Set,
                    "map" => ListKind::Map(
                        props.texts("x-kubernetes-list-map-keys").into_iter().map(str::to_owned).collect(),
                    ),
                    _ => ListKind::Atomic,
                };
                text(DeclKind::List(elem, kind), 2, max)
            }
            "object" if !is_resource && props.values().is_some() => {
                let values = props.values()?;
                let value =
                    Self::from_schema(values, Props::new(values).flag("x-kubernetes-embedded-resource"))?;
                let max = props
                    .number("maxProperties")
                    .map_or((MAX_REQUEST - 2) / (value.min_size + 6), at_least_zero);
                text(DeclKind::Map(value), 2, max)
            }
            "object" => Self::object(props, is_resource),
            "string" => match props.text("format") {
                "byte" => text(DeclKind::Bytes, 2, max_length.unwrap_or(MAX_REQUEST - 2)),
                "duration" => text(DeclKind::Duration, 3, 32),
                "date" => text(DeclKind::Timestamp(true), 12, 12),
                "date-time" => text(DeclKind::Timestamp(false), 21, 32),
                _ => {
                    let longest = props.texts("enum").iter().map(|text| text.len() as u64).max();
                    let max =
                        max_length.map(|max| max.saturating_mul(4)).or(longest).unwrap_or(MAX_REQUEST - 2);
                    text(DeclKind::String, 2, max)
                }
            },
            "boolean" => text(DeclKind::Bool, 4, 0),
            "number" => text(DeclKind::Double, 1, 0),
            "integer" => text(DeclKind::Int, 1, 0),
            _ => return None,
        };
        Some(Arc::new(decl))
    }

    fn object(props: Props<'_>, is_resource: bool) -> Self {
        let required = props.texts("required");
        let mut fields = BTreeMap::new();
        let mut min_size = 2;
        let mut add = |name: &str, schema: &Value| {
            let embedded = Props::new(schema).flag("x-kubernetes-embedded-resource");
            let Some(decl) = Self::from_schema(schema, embedded) else { return };
            if required.contains(&name) && Props::new(schema).get("default").is_none() {
                min_size += name.len() as u64 + decl.min_size + 4;
            }
            if let Some(identifier) = escape(name) {
                fields.insert(identifier, (name.to_owned(), decl));
            }
        };
        for (name, schema) in props.properties() {
            if !(is_resource && matches!(name, "apiVersion" | "kind" | "metadata")) {
                add(name, schema);
            }
        }
        if is_resource {
            let meta = props.property("metadata").map_or(Props(None), Props::new);
            let capped = |name: &str, limit: i64| {
                let own = meta.property(name).and_then(|schema| Props::new(schema).number("maxLength"));
                json!({"type": "string", "maxLength": own.unwrap_or(limit).min(limit)})
            };
            let metadata = json!({"type": "object", "properties": {
                "name": capped("name", 253), "generateName": capped("generateName", 252)}});
            add("apiVersion", &json!({"type": "string"}));
            add("kind", &json!({"type": "string"}));
            add("metadata", &metadata);
        }
        Self { kind: DeclKind::Object(fields), max_elements: 0, min_size }
    }

    /// Returns the type with unescaped field names, for types that the server itself declares.
    pub fn unescaped(&self) -> Arc<Self> {
        let kind = match &self.kind {
            DeclKind::Object(fields) => {
                let plain =
                    |(name, decl): &(String, Arc<Self>)| (name.clone(), (name.clone(), decl.unescaped()));
                DeclKind::Object(fields.values().map(plain).collect())
            }
            DeclKind::List(elem, kind) => DeclKind::List(elem.unescaped(), kind.clone()),
            DeclKind::Map(value) => DeclKind::Map(value.unescaped()),
            other => other.clone(),
        };
        Arc::new(Self { kind, ..self.clone() })
    }

    /// Returns how often a value of this type can occur in one request.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST / (self.min_size + 1)
    }
}

fn at_least_zero(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}
