//! Objects into YAML and JSON.
//!
//! The same object always gives the same text: `apiVersion`, `kind`, `metadata` first and `status` last, everything
//! else in alphabetical order, as `kubectl get -o yaml` does below the top. Words that a YAML 1.1 reader would take
//! for something else (`yes`, `0777`, `1e3`) are quoted, in keys too.

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, SerializerOptions};

use super::scalar::{Plain, resolve};

/// Why an object cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The value has no `apiVersion` and `kind`.
    #[error("the value is not a Kubernetes object: it has no {field}")]
    NotAnObject {
        /// The field that is missing.
        field: &'static str,
    },
    /// The type's own serializer failed.
    #[error("the object cannot be serialized")]
    Serialize(#[from] serde_json::Error),
    /// The YAML writer failed.
    #[error("the object cannot be written as YAML")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

/// One object as YAML.
///
/// ```
/// use kubewright::{k8s_openapi::api::core::v1::ConfigMap, scheme::to_yaml};
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("answers".into());
/// config.data = Some([("enabled".into(), "yes".into())].into());
/// assert_eq!(
///     to_yaml(&config)?,
///     "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: answers\ndata:\n  enabled: \"yes\"\n",
/// );
/// # Ok::<(), kubewright::scheme::EncodeError>(())
/// ```
pub fn to_yaml(object: &impl Serialize) -> Result<String, EncodeError> {
    let object = object_fields(object)?;
    let mut options = SerializerOptions::default();
    // Long texts stay on one line: folding them would make the text depend on its length.
    options.folded_wrap_chars = usize::MAX;
    Ok(serde_saphyr::to_string_with_options(&Ordered::top(&object, Words::Quoted), options)?)
}

/// Objects as one YAML stream, separated by `---`.
pub fn to_yaml_stream<T: Serialize>(objects: impl IntoIterator<Item = T>) -> Result<String, EncodeError> {
    let mut stream = String::new();
    for object in objects {
        if !stream.is_empty() {
            stream.push_str("---\n");
        }
        stream.push_str(&to_yaml(&object)?);
    }
    Ok(stream)
}

/// One object as JSON, indented for reading, with a line break at the end.
pub fn to_json(object: &impl Serialize) -> Result<String, EncodeError> {
    let object = object_fields(object)?;
    let mut text = serde_json::to_string_pretty(&Ordered::top(&object, Words::Plain))?;
    text.push('\n');
    Ok(text)
}

/// Objects as a JSON stream, one object a line.
pub fn to_json_stream<T: Serialize>(objects: impl IntoIterator<Item = T>) -> Result<String, EncodeError> {
    let mut stream = String::new();
    for object in objects {
        let object = object_fields(&object)?;
        stream.push_str(&serde_json::to_string(&Ordered::top(&object, Words::Plain))?);
        stream.push('\n');
    }
    Ok(stream)
}

fn object_fields(object: &impl Serialize) -> Result<Value, EncodeError> {
    let fields = serde_json::to_value(object)?;
    for field in ["apiVersion", "kind"] {
        if !matches!(fields.get(field), Some(Value::String(_))) {
            return Err(EncodeError::NotAnObject { field });
        }
    }
    Ok(fields)
}

/// A value whose objects are written with their keys in order.
struct Ordered<'a> {
    value: &'a Value,
    words: Words,
    top: bool,
}

/// Whether keys that look like other values need quotes.
#[derive(Clone, Copy, PartialEq)]
enum Words {
    Plain,
    Quoted,
}

impl<'a> Ordered<'a> {
    fn top(value: &'a Value, words: Words) -> Self {
        Self { value, words, top: true }
    }

    fn inside(&self, value: &'a Value) -> Self {
        Self { value, words: self.words, top: false }
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| (if self.top { rank(key) } else { 0 }, *key));
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    if self.words == Words::Quoted && resolve(key) != Plain::Text {
                        map.serialize_entry(&DoubleQuoted(key), &self.inside(value))?;
                    } else {
                        map.serialize_entry(key, &self.inside(value))?;
                    }
                }
                map.end()
            }
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(&self.inside(item))?;
                }
                seq.end()
            }
            Value::String(text) if self.words == Words::Quoted && unfit_for_block(text) => {
                DoubleQuoted(text).serialize(serializer)
            }
            scalar => scalar.serialize(serializer),
        }
    }
}

/// Texts of several lines are written as blocks, except where blocks are fragile: Go's reader takes no tab at the
/// beginning of one, and line breaks at the end of one change with the blank lines that somebody adds behind it.
fn unfit_for_block(text: &str) -> bool {
    text.contains('\n') && (text.starts_with([' ', '\t', '\n']) || text.ends_with("\n\n"))
}

/// The place of a field at the top of an object.
fn rank(key: &str) -> u8 {
    match key {
        "apiVersion" => 0,
        "kind" => 1,
        "metadata" => 2,
        "status" => 4,
        _ => 3,
    }
}
