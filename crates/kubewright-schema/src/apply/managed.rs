//! `metadata.managedFields`: who owns what, since when.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{path::ElementError, set::FieldSet};
use crate::time;

/// How a manager came by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
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

/// What tells one entry from another. The version counts for updates only, so an applier keeps its entry when it
/// moves to a new version.
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

/// What a manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The paths.
    pub set: FieldSet,
    /// The version in which the paths are written.
    pub api_version: String,
    /// When they last changed, in RFC 3339.
    pub time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managed(pub BTreeMap<ManagerId, Owned>);

/// Why `managedFields` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedError {
    /// Not a list of objects.
    #[error("managedFields must be a list of objects")]
    NotAList,
    /// Neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No version.
    #[error("apiVersion must not be empty")]
    NoVersion,
    /// No `fieldsType`.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// A `fieldsType` other than `FieldsV1`.
    #[error("invalid fieldsType {found:?} in managed fields entry {entry}")]
    FieldsType {
        /// The position of the entry.
        entry: usize,
        /// What it says.
        found: String,
    },
    /// A path that cannot be read.
    #[error("error decoding set: {0}")]
    Fields(#[from] ElementError),
}

impl Managed {
    /// Reads the entries of an object.
    pub fn decode(entries: &Value) -> Result<Self, ManagedError> {
        let mut managed = Self::default();
        let entries = match entries {
            Value::Null => return Ok(managed),
            Value::Array(entries) => entries,
            _ => return Err(ManagedError::NotAList),
        };
        for (i, entry) in entries.iter().enumerate() {
            let (id, owned) = decode_entry(i, entry)?;
            managed.0.insert(id, owned);
        }
        Ok(managed)
    }

    /// Reads the entries of an object's metadata.
    pub fn of(object: &Value) -> Result<Self, ManagedError> {
        Self::decode(entries_of(object))
    }

    /// Writes the entries in upstream's order: appliers first, then by time, name, version and subresource.
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

    /// Writes the entries into an object's metadata, or removes the field when there is none.
    pub fn write_to(&self, object: &mut Value) {
        set_entries(object, self.encode());
    }
}

/// Writes entries into an object's metadata, or removes the field when there are none.
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

/// The entries as they stand in an object.
pub(super) fn entries_of(object: &Value) -> &Value {
    object.get("metadata").and_then(|m| m.get("managedFields")).unwrap_or(&Value::Null)
}

/// Takes `managedFields` out of an object.
pub(super) fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Whether a writer asks to forget all managers: an empty list, or a list of one empty entry.
pub(super) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => {
            only.as_object().is_some_and(|entry| entry.values().all(|v| *v == json!("") || v.is_null()))
        }
        _ => false,
    }
}

fn decode_entry(i: usize, entry: &Value) -> Result<(ManagerId, Owned), ManagedError> {
    let entry = entry.as_object().ok_or(ManagedError::NotAList)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedError::Operation),
    };
    let api_version = text("apiVersion").to_owned();
    if api_version.is_empty() {
        return Err(ManagedError::NoVersion);
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(ManagedError::NoFieldsType(i)),
        found => return Err(ManagedError::FieldsType { entry: i, found: found.to_owned() }),
    }
    let id = ManagerId::new(text("manager"), operation, &api_version, text("subresource"));
    let set = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, Owned { set, api_version, time }))
}

fn encode_entry(id: &ManagerId, owned: &Owned) -> Value {
    entry(id, &owned.api_version, owned.time.as_deref(), owned.set.to_fields_v1())
}

/// One entry as it is written.
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

/// The list of one entry, of an update, as it is written; `fields` is the text of `fieldsV1`.
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
    /// The identity of a writer.
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

/// Seconds since 1970; 0 where the time cannot be read. Only the order matters here.
pub(super) fn epoch_seconds(time: &str) -> i64 {
    time::parse(time).map_or(0, |(seconds, _)| seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_make_no_sense_are_refused_with_the_reason() {
        let with = |operation: &str, version: &str, fields_type: &str| {
            Managed::decode(
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
        assert_eq!(Managed::decode(&json!({})), Err(ManagedError::NotAList));
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
        let encoded = Managed::decode(&entries).unwrap().encode();
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
