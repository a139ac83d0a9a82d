//! Compilation of the value rules of a schema.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::formats::{self, Format};
use crate::{SchemaError, structural::with_segment};

/// Rules for one value.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    /// Allowed JSON types; empty for any.
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    /// Name of the format, if it applies to the type.
    pub(super) format_name: String,
    pub(super) format: Option<Format>,
    pub(super) maximum: Option<Limit>,
    pub(super) minimum: Option<Limit>,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) pattern: Option<Regex>,
    pub(super) max_items: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) items: Option<Box<Rules>>,
    pub(super) max_properties: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Rules>,
    pub(super) additional: Additional,
    pub(super) allowed: Vec<Value>,
    pub(super) all_of: Vec<Rules>,
    pub(super) any_of: Vec<Rules>,
    pub(super) one_of: Vec<Rules>,
    pub(super) not: Option<Box<Rules>>,
    /// Keys of an associative list, by which old and new items are correlated.
    pub(super) list_keys: Vec<String>,
}

/// Bound of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// Rules for properties besides the named ones.
#[derive(Debug, Clone, Default)]
pub(super) enum Additional {
    #[default]
    Any,
    None,
    Of(Box<Rules>),
}

impl Rules {
    pub(super) fn compile(schema: &Value, path: &mut String) -> Result<Self, SchemaError> {
        let Value::Object(schema) = schema else {
            return Err(SchemaError::NotAnObject { path: path.clone() });
        };
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let limit = |name: &str, exclusive: &str| {
            number(name).map(|value| Limit { value, exclusive: flag(exclusive) })
        };
        let types = if flag("x-kubernetes-int-or-string") {
            vec!["integer".to_owned(), "string".to_owned()]
        } else {
            Some(text("type")).filter(|t| !t.is_empty()).map(str::to_owned).into_iter().collect()
        };
        let format_name = formats::supported(text("format"), &types).to_owned();
        let child = |path: &mut String, name: &str, schema: &Value| {
            with_segment(path, name, |path| Self::compile(schema, path))
        };
        let boxed = |path: &mut String, name: &str| -> Result<Option<Box<Self>>, SchemaError> {
            schema.get(name).map(|schema| child(path, name, schema).map(Box::new)).transpose()
        };
        Ok(Self {
            nullable: flag("nullable"),
            format: Format::named(&format_name),
            maximum: limit("maximum", "exclusiveMaximum"),
            minimum: limit("minimum", "exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: pattern(text("pattern"), path)?,
            max_items: count("maxItems"),
            min_items: count("minItems"),
            unique_items: flag("uniqueItems"),
            items: boxed(path, "items")?,
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: texts(schema, "required"),
            properties: schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, schema)| Ok((name.clone(), child(path, name, schema)?)))
                .collect::<Result<_, SchemaError>>()?,
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => Additional::None,
                Some(values @ Value::Object(_)) => {
                    Additional::Of(Box::new(child(path, "additionalProperties", values)?))
                }
                _ => Additional::Any,
            },
            allowed: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            all_of: Self::each(schema, "allOf", path)?,
            any_of: Self::each(schema, "anyOf", path)?,
            one_of: Self::each(schema, "oneOf", path)?,
            not: boxed(path, "not")?,
            list_keys: texts(schema, "x-kubernetes-list-map-keys"),
            format_name,
            types,
        })
    }

    fn each(schema: &Map<String, Value>, name: &str, path: &mut String) -> Result<Vec<Self>, SchemaError> {
        let schemas = schema.get(name).and_then(Value::as_array);
        let schemas = schemas.into_iter().flatten().enumerate();
        schemas
            .map(|(i, schema)| {
                with_segment(path, &format!("{name}[{i}]"), |path| Self::compile(schema, path))
            })
            .collect()
    }

    pub(super) fn allows_type(&self, name: &str) -> bool {
        self.types.iter().any(|t| t == name)
    }
}

fn pattern(pattern: &str, path: &str) -> Result<Option<Regex>, SchemaError> {
    if pattern.is_empty() {
        return Ok(None);
    }
    Regex::new(pattern).map(Some).map_err(|error| SchemaError::BadPattern {
        path: path.to_owned(),
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    })
}

fn texts(schema: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
