//! Encoding of JSON into protobuf messages, byte for byte like Go: fields by number, maps by key, and plain
//! fields even if not set.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::wire::{put_bytes, put_double, put_number};
use crate::{AdditionalProperties, Field, Kind, Node, Object, Presence, Scalar, Schemas, WireForm, time};

/// Encodes the members of an object as a message.
pub(super) fn message(object: &Object, members: &Map<String, Value>, out: &mut Vec<u8>) {
    let mut fields: Vec<&Field> = object.fields.iter().filter(|f| !f.wire.numbers.is_empty()).collect();
    fields.sort_unstable_by(|a, b| a.wire.numbers.cmp(&b.wire.numbers));
    message_part(&fields, 0, members, out);
}

/// Encodes fields that share their first `depth` numbers. An embedded struct is a nested message of the
/// fields that share the next number too.
fn message_part(fields: &[&Field], depth: usize, members: &Map<String, Value>, out: &mut Vec<u8>) {
    for group in fields.chunk_by(|a, b| a.wire.numbers[depth] == b.wire.numbers[depth]) {
        let number = group[0].wire.numbers[depth];
        if group[0].wire.numbers.len() > depth + 1 {
            let mut bytes = Vec::new();
            message_part(group, depth + 1, members, &mut bytes);
            put_bytes(out, number, &bytes);
            continue;
        }
        for field in group {
            match members.get(&*field.name) {
                Some(content) if !content.is_null() => encode_field(field, number, content, out),
                _ => encode_unset(field, number, out),
            }
        }
    }
}

/// Encodes an absent field. Go has no "not set" for plain fields: numbers, strings and structs are written as
/// zero.
fn encode_unset(field: &Field, number: u16, out: &mut Vec<u8>) {
    if field.presence == Presence::Optional || field.wire.form != WireForm::Plain {
        return;
    }
    match &field.node.node().kind {
        Kind::Scalar(Scalar::Bytes) | Kind::List(_) => {}
        // A pointer that is written as null has no zero value, but a time has one.
        Kind::Scalar(scalar)
            if field.presence == Presence::AlwaysNull
                && !matches!(scalar, Scalar::Time | Scalar::MicroTime) => {}
        Kind::Scalar(Scalar::Quantity) => put_scalar(Scalar::Quantity, number, &"0".into(), out),
        Kind::Scalar(scalar) => put_scalar(*scalar, number, &Value::Null, out),
        Kind::Object(Object { fields, additional: AdditionalProperties::Values(_), .. })
            if fields.is_empty() => {}
        Kind::Object(object) if field.presence != Presence::AlwaysNull => {
            let mut bytes = Vec::new();
            message(object, &Map::new(), &mut bytes);
            put_bytes(out, number, &bytes);
        }
        Kind::Raw => put_bytes(out, number, b""),
        Kind::Object(_) | Kind::Any => {}
    }
}

fn encode_field(field: &Field, number: u16, content: &Value, out: &mut Vec<u8>) {
    let (node, form) = (field.node.node(), field.wire.form);
    match (&node.kind, content) {
        (Kind::List(list), Value::Array(items)) if form != WireForm::Wrapped => {
            for item in items {
                value(list.item.node(), form, number, item, out);
            }
        }
        (
            Kind::Object(Object { fields, additional: AdditionalProperties::Values(values), .. }),
            Value::Object(members),
        ) if fields.is_empty() => {
            let mut entries: Vec<_> = members.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, content) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                value(values.node(), form, 2, content, &mut entry);
                put_bytes(out, number, &entry);
            }
        }
        _ => value(node, form, number, content, out),
    }
}

fn value(node: &Node, form: WireForm, number: u16, content: &Value, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    match (form, &node.kind, content) {
        (WireForm::Wrapped, _, _) => {
            for text in content.as_array().into_iter().flatten().filter_map(Value::as_str) {
                put_bytes(&mut bytes, 1, text.as_bytes());
            }
        }
        (WireForm::SchemaOrBool | WireForm::SchemaOrArray | WireForm::SchemaOrStrings, _, _) => {
            union(form, content, &mut bytes);
        }
        (WireForm::Plain, Kind::Scalar(scalar), _) => return put_scalar(*scalar, number, content, out),
        (WireForm::Plain, Kind::Object(object), Value::Object(members)) => {
            message(object, members, &mut bytes);
        }
        (WireForm::Plain, Kind::Any | Kind::Raw, content) if !content.is_null() => {
            put_bytes(&mut bytes, 1, content.to_string().as_bytes());
        }
        _ => {}
    }
    put_bytes(out, number, &bytes);
}

fn union(form: WireForm, content: &Value, out: &mut Vec<u8>) {
    let schema = if form == WireForm::SchemaOrBool { 2 } else { 1 };
    match content {
        Value::Bool(allows) => put_number(out, 1, i64::from(*allows)),
        Value::Object(members) => {
            if form == WireForm::SchemaOrBool {
                put_number(out, 1, 1);
            }
            put_bytes(out, schema, &schema_props(members));
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(text) => put_bytes(out, 2, text.as_bytes()),
                    Value::Object(members) => put_bytes(out, 2, &schema_props(members)),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn schema_props(members: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let schemas = Schemas::builtin();
    if let Some(id) = schemas.definition_named(super::SCHEMA_PROPS)
        && let Kind::Object(object) = &schemas.definition_node(id).kind
    {
        message(object, members, &mut bytes);
    }
    bytes
}

fn put_scalar(scalar: Scalar, number: u16, content: &Value, out: &mut Vec<u8>) {
    let text = content.as_str().unwrap_or_default();
    let mut bytes = Vec::new();
    match scalar {
        Scalar::String | Scalar::Formatted => return put_bytes(out, number, text.as_bytes()),
        Scalar::Bytes => return put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default()),
        Scalar::Int32 | Scalar::Int64 => return put_number(out, number, as_i64(content)),
        Scalar::Boolean => return put_number(out, number, i64::from(content.as_bool().unwrap_or_default())),
        Scalar::Number => return put_double(out, number, content.as_f64().unwrap_or_default()),
        Scalar::IntOrString => match content {
            Value::String(text) => {
                put_number(&mut bytes, 1, 1);
                put_number(&mut bytes, 2, 0);
                put_bytes(&mut bytes, 3, text.as_bytes());
            }
            other => {
                put_number(&mut bytes, 1, 0);
                put_number(&mut bytes, 2, as_i64(other));
                put_bytes(&mut bytes, 3, b"");
            }
        },
        Scalar::Quantity => match content {
            Value::String(text) => put_bytes(&mut bytes, 1, text.as_bytes()),
            other => put_bytes(&mut bytes, 1, other.to_string().as_bytes()),
        },
        Scalar::Time | Scalar::MicroTime => {
            if let Some((seconds, nanos)) = time::parse(text) {
                put_number(&mut bytes, 1, seconds);
                put_number(&mut bytes, 2, i64::from(nanos));
            }
        }
    }
    put_bytes(out, number, &bytes);
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a whole number that was written with a fraction of zero"
)]
fn as_i64(content: &Value) -> i64 {
    content.as_i64().or_else(|| content.as_f64().map(|n| n as i64)).unwrap_or_default()
}
