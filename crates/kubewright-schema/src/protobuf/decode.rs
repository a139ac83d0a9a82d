//! Decoding of protobuf messages into JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use super::wire::{Payload, ProtobufError, Reader};
use crate::{
    AdditionalProperties, Field, Kind, Node, Object, Scalar, Schemas, WireForm,
    body::{self, Format, Limits},
    canonical, quantity, time,
};

/// Decodes a message into the members of an object. Unknown fields are skipped.
pub(super) fn message(
    object: &Object,
    bytes: &[u8],
    depth: usize,
    out: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    message_part(object, &[], bytes, depth, out)
}

/// Decodes the part of an object below the field numbers `outer`: an embedded struct is a message of its own,
/// but its fields are members of the embedding object.
fn message_part(
    object: &Object,
    outer: &[u16],
    bytes: &[u8],
    depth: usize,
    out: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::TooDeep)?;
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        let Ok(number) = u16::try_from(number) else { continue };
        let below = |field: &&Field| {
            field.wire.numbers.strip_prefix(outer).is_some_and(|rest| rest.first() == Some(&number))
        };
        let Some(found) = object.fields.iter().find(below) else { continue };
        if found.wire.numbers.len() == outer.len() + 1 {
            decode_field(found, payload, depth, out)?;
        } else {
            let inner = &found.wire.numbers[..=outer.len()];
            message_part(object, inner, payload.bytes(&found.name)?, depth, out)?;
        }
    }
    Ok(())
}

/// Decodes one occurrence of a field: a value, or one more element of a list or map.
fn decode_field(
    field: &Field,
    payload: Payload<'_>,
    depth: usize,
    out: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    let (node, name) = (field.node.node(), &*field.name);
    let slot = out.entry(name).or_insert(Value::Null);
    match &node.kind {
        Kind::List(list) if field.wire.form != WireForm::Wrapped => {
            if slot.is_null() {
                *slot = Value::Array(Vec::new());
            }
            let Value::Array(items) = slot else { return Ok(()) };
            let item = list.item.node();
            if let (Kind::Scalar(scalar), Payload::Bytes(packed)) = (&item.kind, payload)
                && matches!(scalar, Scalar::Int32 | Scalar::Int64 | Scalar::Boolean)
            {
                let mut numbers = Reader::new(packed);
                while let Some(number) = numbers.packed()? {
                    items.push(scalar_value(*scalar, Payload::Varint(number), name)?);
                }
                return Ok(());
            }
            items.push(value(item, field.wire.form, payload, depth, name)?);
        }
        Kind::Object(Object { fields, additional: AdditionalProperties::Values(values), .. })
            if fields.is_empty() =>
        {
            if slot.is_null() {
                *slot = Value::Object(Map::new());
            }
            let Value::Object(members) = slot else { return Ok(()) };
            let (mut key, mut content) = (String::new(), None);
            let mut entry = Reader::new(payload.bytes(name)?);
            while let Some((number, payload)) = entry.next()? {
                match number {
                    1 => key = payload.text(name)?,
                    2 => content = Some(value(values.node(), field.wire.form, payload, depth, name)?),
                    _ => {}
                }
            }
            let content = match content {
                Some(content) => content,
                None => empty(values.node(), field.wire.form, depth, name)?,
            };
            members.insert(key, content);
        }
        // Occurrences of a message field are merged, as protobuf requires.
        Kind::Object(object) => {
            if slot.is_null() {
                *slot = Value::Object(Map::new());
            }
            if let Value::Object(members) = slot {
                message(object, payload.bytes(name)?, depth, members)?;
            }
        }
        _ => *slot = value(node, field.wire.form, payload, depth, name)?,
    }
    Ok(())
}

/// Returns the value of a map entry without a value.
fn empty(node: &Node, form: WireForm, depth: usize, name: &str) -> Result<Value, ProtobufError> {
    let payload = match &node.kind {
        Kind::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Boolean) => Payload::Varint(0),
        Kind::Scalar(Scalar::Number) => Payload::Fixed64(0),
        _ => Payload::Bytes(b""),
    };
    value(node, form, payload, depth, name)
}

fn value(
    node: &Node,
    form: WireForm,
    payload: Payload<'_>,
    depth: usize,
    name: &str,
) -> Result<Value, ProtobufError> {
    match form {
        WireForm::Plain => {}
        WireForm::Wrapped => return strings(payload.bytes(name)?, 1, name),
        _ => return union(form, payload.bytes(name)?, depth, name),
    }
    match &node.kind {
        Kind::Scalar(scalar) => scalar_value(*scalar, payload, name),
        Kind::Object(object) => {
            let mut members = Map::new();
            message(object, payload.bytes(name)?, depth, &mut members)?;
            Ok(Value::Object(members))
        }
        Kind::Any | Kind::Raw => raw(payload.bytes(name)?, depth, name),
        Kind::List(_) => {
            Err(ProtobufError::Value { field: name.to_owned(), why: "a list of lists".to_owned() })
        }
    }
}

/// Decodes the `repeated string` with a field number.
fn strings(bytes: &[u8], wanted: u64, name: &str) -> Result<Value, ProtobufError> {
    let mut items = Vec::new();
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        if number == wanted {
            items.push(Value::from(payload.text(name)?));
        }
    }
    Ok(Value::Array(items))
}

/// Decodes JSON in a message (`RawExtension`, `FieldsV1`, `JSON`), or a nested document.
fn raw(bytes: &[u8], depth: usize, name: &str) -> Result<Value, ProtobufError> {
    let mut content: &[u8] = b"";
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            content = payload.bytes(name)?;
        }
    }
    if content.is_empty() {
        return Ok(Value::Null);
    }
    if content.starts_with(super::MAGIC) {
        let envelope = super::open(content)?;
        let gvk = crate::Gvk::from_api_version(&envelope.api_version, envelope.kind.clone());
        let schema = super::schema(&gvk)
            .ok_or(ProtobufError::UnknownKind { api_version: gvk.api_version(), kind: gvk.kind })?;
        return envelope.object_of(&schema, depth);
    }
    body::decode(content, Format::Json, None, &Limits::default())
        .map(|decoded| decoded.value)
        .map_err(|error| ProtobufError::Value { field: name.to_owned(), why: error.to_string() })
}

/// Decodes a union of a CRD's schema: its content tells which variant it is.
fn union(form: WireForm, bytes: &[u8], depth: usize, name: &str) -> Result<Value, ProtobufError> {
    let (mut allows, mut schema, mut schemas) = (false, None, Vec::new());
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        match (form, number) {
            (WireForm::SchemaOrBool, 1) => allows = payload.varint(name)? != 0,
            (WireForm::SchemaOrBool, 2) | (WireForm::SchemaOrArray | WireForm::SchemaOrStrings, 1) => {
                schema = Some(schema_props(payload.bytes(name)?, depth)?);
            }
            (WireForm::SchemaOrArray, 2) => schemas.push(schema_props(payload.bytes(name)?, depth)?),
            (WireForm::SchemaOrStrings, 2) => schemas.push(payload.text(name)?.into()),
            _ => {}
        }
    }
    Ok(match (schema, form) {
        (Some(schema), _) => schema,
        (None, WireForm::SchemaOrBool) => allows.into(),
        (None, _) if schemas.is_empty() => Value::Null,
        (None, _) => Value::Array(schemas),
    })
}

/// Decodes a schema inside a union. The schema of the union is untyped, so the value is canonicalised here.
fn schema_props(bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let mut value = Value::Object(Map::new());
    let schemas = Schemas::builtin();
    if let Some(id) = schemas.definition_named(super::SCHEMA_PROPS) {
        let node = schemas.definition_node(id);
        if let (Kind::Object(object), Value::Object(members)) = (&node.kind, &mut value) {
            message(object, bytes, depth, members)?;
        }
        canonical::canonicalise(node, &mut value);
    }
    Ok(value)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "int32 travels as 64 bits, of which Go keeps the lower half"
)]
fn scalar_value(scalar: Scalar, payload: Payload<'_>, name: &str) -> Result<Value, ProtobufError> {
    Ok(match scalar {
        Scalar::String | Scalar::Formatted => payload.text(name)?.into(),
        Scalar::Bytes => STANDARD.encode(payload.bytes(name)?).into(),
        Scalar::Int32 => (payload.varint(name)? as u32).cast_signed().into(),
        Scalar::Int64 => payload.varint(name)?.cast_signed().into(),
        Scalar::Boolean => (payload.varint(name)? != 0).into(),
        Scalar::Number => number(payload.double(name)?, name)?,
        Scalar::IntOrString => int_or_string(payload.bytes(name)?, name)?,
        Scalar::Quantity => quantity_value(payload.bytes(name)?, name)?,
        Scalar::Time | Scalar::MicroTime => time_value(scalar, payload.bytes(name)?, name)?,
    })
}

/// Converts a float; whole numbers are written without a fraction, like in Go.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn number(value: f64, name: &str) -> Result<Value, ProtobufError> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| ProtobufError::Value {
        field: name.to_owned(),
        why: format!("json: unsupported value: {value}"),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "int32 travels as 64 bits, of which Go keeps the lower half"
)]
fn int_or_string(bytes: &[u8], name: &str) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    let mut fields = Reader::new(bytes);
    while let Some((field, payload)) = fields.next()? {
        match field {
            1 => is_text = payload.varint(name)? != 0,
            2 => number = (payload.varint(name)? as u32).cast_signed(),
            3 => text = payload.text(name)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn quantity_value(bytes: &[u8], name: &str) -> Result<Value, ProtobufError> {
    let mut text = None;
    let mut fields = Reader::new(bytes);
    while let Some((field, payload)) = fields.next()? {
        if field == 1 {
            text = Some(payload.text(name)?);
        }
    }
    match text {
        None => Ok("0".into()),
        Some(text) => quantity::canonical(&text).map(Value::from).ok_or_else(|| ProtobufError::Value {
            field: name.to_owned(),
            why: "quantities must match the regular expression \
                      '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        }),
    }
}

/// Decodes a time. An empty message is `null`; years outside of four digits are rejected.
fn time_value(scalar: Scalar, bytes: &[u8], name: &str) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Reader::new(bytes);
    while let Some((field, payload)) = fields.next()? {
        match field {
            1 => seconds = payload.varint(name)?.cast_signed(),
            2 => nanos = payload.varint(name)?.cast_signed(),
            _ => {}
        }
    }
    let nanos = u32::try_from(nanos).ok().filter(|n| *n < 1_000_000_000);
    let seconds = Some(seconds).filter(|s| (-62_167_219_200..253_402_300_800).contains(s));
    let instant = seconds.zip(nanos).ok_or_else(|| ProtobufError::Value {
        field: name.to_owned(),
        why: "Time.MarshalJSON: year outside of range [0,9999]".to_owned(),
    })?;
    Ok(if scalar == Scalar::Time { time::format_seconds(instant) } else { time::format_micros(instant) }
        .into())
}
