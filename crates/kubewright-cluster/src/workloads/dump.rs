//! A pod template, written down as Go writes it down, for its hash.
//!
//! kube-controller-manager names the `ReplicaSet`s of a Deployment by a hash of what `spew` prints of the Go value with
//! `%#v`: every field of every struct, in the order of the source, with the names of its types. `pod_template.txt` has those
//! types, printed by `tools/real/pod-template` from the release that we are held against; another release has other fields
//! and so other hashes, there as here.
//!
//! What is not in the JSON is nil, and so is an empty list or map: that is what the wire form, protobuf, makes of them.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

use super::quantity::Quantity;

/// The names of the types, and what they are.
static TYPES: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    include_str!("pod_template.txt").lines().filter_map(|line| line.split_once(' ')).collect()
});

/// Writes a `v1.PodTemplateSpec` down.
pub(super) fn pod_template(template: &Value) -> String {
    let mut dump = Dump(String::new());
    dump.typed("v1.PodTemplateSpec", Some(template));
    dump.0
}

struct Dump(String);

impl Dump {
    /// A value with its type before it.
    fn typed(&mut self, of: &str, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        self.0.push('(');
        self.0.push_str(of);
        self.0.push(')');
        self.untyped(of, value);
    }

    /// A value whose type is known from what it is in.
    fn untyped(&mut self, of: &str, value: Option<&Value>) {
        if let Some(of) = of.strip_prefix('*') {
            match value {
                None => self.0.push_str("<nil>"),
                Some(_) => self.untyped(of, value),
            }
        } else if let Some(of) = of.strip_prefix("[]") {
            let items = value.and_then(Value::as_array).filter(|items| !items.is_empty());
            self.list(items.map(Vec::as_slice), of);
        } else if let Some((_, of)) = of.strip_prefix("map[").and_then(|of| of.split_once(']')) {
            self.map(value.and_then(Value::as_object).filter(|map| !map.is_empty()), of);
        } else {
            self.named(of, value);
        }
    }

    fn list(&mut self, items: Option<&[Value]>, of: &str) {
        let Some(items) = items else { return self.0.push_str("<nil>") };
        self.0.push('[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.0.push(' ');
            }
            self.untyped(of, Some(item));
        }
        self.0.push(']');
    }

    fn map(&mut self, map: Option<&Map<String, Value>>, of: &str) {
        let Some(map) = map else { return self.0.push_str("<nil>") };
        let sorted: BTreeMap<&String, &Value> = map.iter().collect();
        self.0.push_str("map[");
        for (at, (key, value)) in sorted.into_iter().enumerate() {
            if at > 0 {
                self.0.push(' ');
            }
            self.0.push_str(key);
            self.0.push(':');
            self.untyped(of, Some(value));
        }
        self.0.push(']');
    }

    fn named(&mut self, of: &str, value: Option<&Value>) {
        match (of, TYPES.get(of).copied().unwrap_or(of)) {
            // No template has a time in it that means anything.
            ("v1.Time", _) => {
                self.0.push_str("{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}");
            }
            ("intstr.IntOrString", _) => {
                let text = value.and_then(Value::as_str);
                let number = value.and_then(Value::as_i64).unwrap_or_default();
                let kind = u8::from(text.is_some());
                let text = text.unwrap_or_default();
                let dump =
                    format!("{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}");
                self.0.push_str(&dump);
            }
            ("resource.Quantity", _) => {
                self.0.push_str(&Quantity::parse(value.and_then(Value::as_str).unwrap_or("0")).dump());
            }
            (_, "string") => self.0.push_str(value.and_then(Value::as_str).unwrap_or_default()),
            (_, "bool") => self.0.push_str(if value == Some(&Value::Bool(true)) { "true" } else { "false" }),
            (_, kind) => match kind.strip_prefix('{').and_then(|fields| fields.strip_suffix('}')) {
                Some(fields) => self.fields(fields, value),
                None if kind.starts_with("map[") => self.untyped(kind, value),
                None => self.0.push_str(&value.and_then(Value::as_i64).unwrap_or_default().to_string()),
            },
        }
    }

    fn fields(&mut self, fields: &str, value: Option<&Value>) {
        self.0.push('{');
        for (at, field) in fields.split(' ').enumerate() {
            if at > 0 {
                self.0.push(' ');
            }
            let mut parts = field.splitn(3, ':');
            let (name, json, of) = (parts.next(), parts.next(), parts.next());
            self.0.push_str(name.unwrap_or_default());
            self.0.push(':');
            let inner = match json.unwrap_or_default() {
                // Embedded: its fields are among those of the whole.
                "" => value,
                json => value.and_then(|value| value.get(json)),
            };
            self.typed(of.unwrap_or_default(), inner);
        }
        self.0.push('}');
    }
}
