//! JSON object with its field path, for validation functions.

use std::borrow::Cow;

use serde_json::Value;

use super::{Errors, field::Field};
use crate::registry::json::{Json, list, object, text};

/// Object with its field path.
#[derive(Debug)]
pub struct ObjectAt<'a> {
    /// The object.
    pub object: &'a Json,
    /// The path, such as `spec.containers[0]`.
    pub field: Field<'a>,
}

/// Error text for addresses.
pub const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// Error text for CIDR blocks.
pub const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
/// Error text for negative numbers.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// Error text for ports.
pub const PORT: &str = "must be between 1 and 65535, inclusive";

impl<'a> ObjectAt<'a> {
    /// Creates an object at a path.
    pub fn new(object: &'a Json, field: impl Into<Cow<'a, str>>) -> Self {
        Self { object, field: Field::new(field) }
    }

    /// Returns the path of a field; fields of the root have no prefix.
    pub fn path(&self, key: &'a str) -> Field<'a> {
        self.field.child(key)
    }

    /// Returns an object field.
    pub fn child(&self, key: &'a str) -> Option<ObjectAt<'a>> {
        object(self.object, key).map(|child| ObjectAt { object: child, field: self.path(key) })
    }

    /// Returns the objects of a list field.
    pub fn each(&self, key: &'a str) -> impl Iterator<Item = ObjectAt<'a>> {
        let list = self.list(key);
        // Most lists are absent and need no path.
        let path = (!list.is_empty()).then(|| self.path(key));
        let objects = list.iter().filter_map(Value::as_object);
        objects
            .enumerate()
            .filter_map(move |(n, object)| Some(ObjectAt { object, field: path.as_ref()?.item(n) }))
    }

    /// Returns whether a field is present and not null.
    pub fn has(&self, key: &str) -> bool {
        self.object.get(key).is_some_and(|value| !value.is_null())
    }

    /// Returns a string field, empty if absent.
    pub fn text(&self, key: &str) -> &'a str {
        text(self.object, key)
    }

    /// Returns a list field, empty if absent.
    pub fn list(&self, key: &str) -> &'a [Value] {
        list(self.object, key)
    }

    /// Returns an integer field.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.object.get(key).and_then(Value::as_i64)
    }

    /// Returns whether a field is true.
    pub fn is(&self, key: &str) -> bool {
        self.object.get(key).and_then(Value::as_bool) == Some(true)
    }

    /// Validates that a string field is present.
    pub fn required(&self, key: &'a str, errors: &mut Errors) {
        if self.text(key).is_empty() {
            errors.required(self.path(key), "");
        }
    }

    /// Validates that a string field is absent or one of the allowed values.
    pub fn choice(&self, key: &'a str, allowed: &[&str], errors: &mut Errors) {
        let value = self.text(key);
        if !value.is_empty() && !allowed.contains(&value) {
            errors.not_supported(self.path(key), value, allowed);
        }
    }

    /// Validates that a string field is absent or conforms to a rule.
    pub fn named(&self, key: &'a str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        let value = self.text(key);
        if !value.is_empty() {
            for why in rule(value) {
                errors.invalid(self.path(key), value, &why);
            }
        }
    }

    /// Validates that integer fields are not negative.
    pub fn not_negative(&self, keys: &[&'a str], errors: &mut Errors) {
        for key in keys {
            if let Some(number) = self.number(key).filter(|number| *number < 0) {
                errors.invalid(self.path(key), number, NOT_NEGATIVE);
            }
        }
    }

    /// Validates a port number or name.
    pub fn port(&self, key: &'a str, errors: &mut Errors) {
        match self.object.get(key) {
            Some(Value::String(name)) => {
                for why in super::names::port_name(name) {
                    errors.invalid(self.path(key), name.as_str(), &why);
                }
            }
            Some(Value::Number(number))
                if !number.as_i64().is_some_and(|number| (1..=65_535).contains(&number)) =>
            {
                errors.invalid(self.path(key), number.clone(), PORT);
            }
            _ => {}
        }
    }

    /// Validates that a field is unchanged.
    pub fn immutable(&self, old: &Json, key: &'a str, errors: &mut Errors) {
        if self.object.get(key) != old.get(key) {
            let value = self.object.get(key).cloned().unwrap_or_default();
            errors.invalid(self.path(key), value, "field is immutable");
        }
    }
}

/// Validates a relative path without `..`.
pub fn local_path(path: &str, field: &Field<'_>, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.invalid(field, path, "must be a relative path");
    }
    no_backsteps(path, field, errors);
}

/// Validates a path without `..`.
pub fn no_backsteps(path: &str, field: &Field<'_>, errors: &mut Errors) {
    if path.split('/').any(|part| part == "..") {
        errors.invalid(field, path, "must not contain '..'");
    }
}

/// Parses a CIDR block into 128 address bits and the prefix length.
pub fn parse_cidr(text: &str) -> Option<(u128, u32)> {
    let (address, length) = text.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    match address.parse().ok()? {
        std::net::IpAddr::V4(v4) if length <= 32 => Some((u128::from(u32::from(v4)) << 96, length)),
        std::net::IpAddr::V6(v6) if length <= 128 => Some((u128::from(v6), length)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_start_at_the_root() {
        let value = json!({"a": {"list": [{"x": "no"}]}, "n": -1});
        let top = ObjectAt::new(value.as_object().unwrap(), "");
        let mut errors = Errors::default();
        top.not_negative(&["n", "absent"], &mut errors);
        for item in top.child("a").unwrap().each("list") {
            item.choice("x", &["yes"], &mut errors);
            item.required("y", &mut errors);
        }
        assert_eq!(
            errors.summary(),
            "[n: Invalid value: -1: must be greater than or equal to 0, \
             a.list[0].x: Unsupported value: \"no\": supported values: \"yes\", a.list[0].y: Required value]"
        );
    }

    #[test]
    fn a_cidr_needs_an_address_and_a_valid_prefix_length() {
        assert!(parse_cidr("10.0.0.0/8").is_some() && parse_cidr("2001:db8::/64").is_some());
        for bad in ["10.0.0.0", "10.0.0.0/33", "x/8", "::/129"] {
            assert!(parse_cidr(bad).is_none(), "{bad}");
        }
    }
}
