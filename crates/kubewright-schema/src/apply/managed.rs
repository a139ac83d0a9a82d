//! `metadata.managedFields`: field managers and the fields they own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{path::ElementError, set::FieldSet};
use crate::time;

/// Operation by which a manager owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Identity of a managedFields entry. The version is part of it for updates only, so an applier keeps its
/// entry when it moves to a new version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    /// The field manager's name.
    pub manager: String,
    /// Apply or update.
    pub operation: Operation,
    /// The version of the update; empty for apply.
    pub api_version: String,
    /// The subresource it wrote through, or empty.
    pub subresource: String,
}

/// Fields that a manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFields {
    /// The field paths.
    pub set: FieldSet,
    /// The API version of the paths.
    pub api_version: String,
    /// The time of the last change, in RFC 3339.
    pub time: Option<String>,
}

/// Managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields(pub BTreeMap<ManagerId, OwnedFields>);

/// Error decoding `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    /// It is not a list of objects.
    #[error("managedFields must be a list of objects")]
    NotAList,
    /// The operation is neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is missing.
    #[error("apiVersion must not be empty")]
    NoVersion,
    /// The `fieldsType` is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// The `fieldsType` is not `FieldsV1`.
    #[error("invalid fieldsType {found:?} in managed fields entry {entry}")]
    FieldsType {
        /// The index of the entry.
        entry: usize,
        /// The `fieldsType`.
        found: String,
    },
    /// A path is malformed.
    #[error("error decoding set: {0}")]
    Fields(#[from] ElementError),
}

impl ManagedFields {
    /// Decodes a list of entries.
    pub fn decode(entries: &Value) -> Result<Self, ManagedFieldsError> {
        let mut managed = Self::default();
        let entries = match entries {
            Value::Null => return Ok(managed),
            Value::Array(entries) => entries,
            _ => return Err(ManagedFieldsError::NotAList),
        };
        for (i, entry) in entries.iter().enumerate() {
            let (id, owned) = decode_entry(i, entry)?;
            managed.0.insert(id, owned);
        }
        Ok(managed)
    }

    /// Decodes the entries of an object's metadata.
    pub fn from_object(object: &Value) -> Result<Self, ManagedFieldsError> {
        Self::decode(entries_of(object))
    }

    /// Encodes the entries in upstream's order: appliers first, then by time, name, version and subresource.
    pub fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_cached_key(|(id, owned)| {
            (
                id.operation,
                owned.time.as_deref().map_or(0, epoch_seconds),
                id.manager.clone(),
                owned.api_version.clone(),
                id.subresource.clone(),
            )
        });
        entries.into_iter().map(|(id, owned)| encode_entry(id, owned)).collect()
    }

    /// Writes the entries to an object's metadata, or removes the field if there are none.
    pub fn write_to(&self, object: &mut Value) {
        set_entries(object, self.encode());
    }
}

/// Writes entries to an object's metadata, or removes the field if there are none.
pub(super) fn set_entries(object: &mut Value, entries: Vec<Value>) {
    if entries.is_empty() {
        clear(object);
    } else if let Some(object) = object.as_object_mut() {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
}

/// Returns the encoded entries of an object.
pub(super) fn entries_of(object: &Value) -> &Value {
    object.get("metadata").and_then(|m| m.get("managedFields")).unwrap_or(&Value::Null)
}

/// Removes `managedFields` from an object.
pub(super) fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Returns whether a request resets field ownership: with an empty list, or a list of one empty entry.
pub(super) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => {
            only.as_object().is_some_and(|entry| entry.values().all(|v| *v == json!("") || v.is_null()))
        }
        _ => false,
    }
}

fn decode_entry(i: usize, entry: &Value) -> Result<(ManagerId, OwnedFields), ManagedFieldsError> {
    let entry = entry.as_object().ok_or(ManagedFieldsError::NotAList)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedFieldsError::Operation),
    };
    let api_version = text("apiVersion").to_owned();
    if api_version.is_empty() {
        return Err(ManagedFieldsError::NoVersion);
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError::NoFieldsType(i)),
        found => return Err(ManagedFieldsError::FieldsType { entry: i, found: found.to_owned() }),
    }
    let id = ManagerId::new(text("manager"), operation, &api_version, text("subresource"));
    let set = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, OwnedFields { set, api_version, time }))
}

fn encode_entry(id: &ManagerId, owned: &OwnedFields) -> Value {
    entry(id, &owned.api_version, owned.time.as_deref(), owned.set.to_fields_v1())
}

/// Encodes one entry.
pub(super) fn entry(id: &ManagerId, api_version: &str, time: Option<&str>, fields: Value) -> Value {
    let mut entry = Map::new();
    if !id.manager.is_empty() {
        entry.insert("manager".to_owned(), id.manager.as_str().into());
    }
    entry.insert("operation".to_owned(), id.operation.name().into());
    entry.insert("apiVersion".to_owned(), api_version.into());
    if let Some(time) = time {
        entry.insert("time".to_owned(), time.into());
    }
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), fields);
    if !id.subresource.is_empty() {
        entry.insert("subresource".to_owned(), id.subresource.as_str().into());
    }
    Value::Object(entry)
}

/// Encodes the list of one entry, of an update; `fields` is the JSON text of `fieldsV1`.
pub(super) fn only_entry(id: &ManagerId, time: &str, fields: &str) -> String {
    let mut out = String::with_capacity(fields.len() + 192);
    let mut before = "[{\"apiVersion\":";
    let mut member = |value: &str, after| {
        out.push_str(before);
        out.push_str(value);
        before = after;
    };
    let text = |text: &str| Value::from(text).to_string();
    member(&text(&id.api_version), ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    member(fields, ",\"manager\":");
    member(&text(&id.manager), ",\"operation\":");
    if id.subresource.is_empty() {
        member(&text(id.operation.name()), ",\"time\":");
    } else {
        member(&text(id.operation.name()), ",\"subresource\":");
        member(&text(&id.subresource), ",\"time\":");
    }
    member(&text(time), "}]");
    out.push_str(before);
    out
}

impl ManagerId {
    /// Creates the identity of a writer.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// Returns seconds since the epoch, 0 for an invalid time. Only used for ordering.
pub(super) fn epoch_seconds(time: &str) -> i64 {
    time::parse(time).map_or(0, |(seconds, _)| seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_entries_are_rejected_with_the_reason() {
        let with = |operation: &str, version: &str, fields_type: &str| {
            ManagedFields::decode(
                &json!([{"operation": operation, "apiVersion": version, "fieldsType": fields_type}]),
            )
            .unwrap_err()
            .to_string()
        };
        assert_eq!(with("Nope", "v1", "FieldsV1"), "operation must be `Apply` or `Update`");
        assert_eq!(with("Apply", "", "FieldsV1"), "apiVersion must not be empty");
        assert_eq!(with("Apply", "v1", ""), "missing fieldsType in managed fields entry 0");
        assert_eq!(
            with("Apply", "v1", "FieldsV9"),
            "invalid fieldsType \"FieldsV9\" in managed fields entry 0"
        );
        assert_eq!(ManagedFields::decode(&json!({})), Err(ManagedFieldsError::NotAList));
    }

    #[test]
    fn entries_are_sorted_and_survive_a_round_trip() {
        let entries = json!([
            {"manager": "b", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}},
            {"manager": "a", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:b": {}}, "subresource": "status"},
            {"manager": "z", "operation": "Apply", "apiVersion": "v1", "time": "2021-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:c": {".": {}, "k:{\"name\":\"x\"}": {}}}},
        ]);
        let encoded = ManagedFields::decode(&entries).unwrap().encode();
        let order: Vec<_> = encoded.iter().map(|e| e["manager"].as_str().unwrap()).collect();
        assert_eq!(order, ["z", "a", "b"]);
        assert_eq!(encoded[0], entries[2]);
    }

    #[test]
    fn an_empty_list_and_an_empty_entry_ask_for_a_reset() {
        assert!(is_reset(&json!([])) && is_reset(&json!([{}])));
        assert!(
            !is_reset(&Value::Null) && !is_reset(&json!([{}, {}])) && !is_reset(&json!([{"manager": "x"}]))
        );
    }
}
