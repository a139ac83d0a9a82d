//! Columns of tables.

use serde_json::{Value, json};

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// The heading.
    pub(crate) name: &'static str,
    /// `string`, `integer`, …
    pub(crate) kind: &'static str,
    /// `name` for the column that names the object.
    pub(crate) format: &'static str,
    /// 0 is always shown, others with `-o wide`.
    pub(crate) priority: u8,
}

impl Column {
    /// As clients receive it.
    pub(crate) fn to_value(self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": "",
            "priority": self.priority,
        })
    }
}

/// The column that names the object.
pub(super) const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };
/// The age.
pub(super) const AGE: Column = text("Age");

/// A column of text.
pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

/// A column of whole numbers.
pub(super) const fn number(name: &'static str) -> Column {
    Column { name, kind: "integer", format: "", priority: 0 }
}

/// A column that only `-o wide` shows.
pub(super) const fn wide(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 1 }
}

pub(super) const SCALE: &[Column] = &[text("Name"), number("Desired"), number("Available"), AGE];
pub(super) const PLAIN: &[Column] =
    &[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }];
