//! Table columns.

use serde_json::{Value, json};

/// Column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, …
    pub kind: &'static str,
    /// `name` for the column that names the object.
    pub format: &'static str,
    /// 0 is always shown, others only with `-o wide`.
    pub priority: u8,
}

impl Column {
    /// Encodes the column definition.
    pub fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": "",
            "priority": self.priority,
        })
    }
}

/// Column of the object's name.
pub(super) const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };
/// Column of the age.
pub(super) const AGE: Column = text("Age");

/// Creates a text column.
pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

/// Creates an integer column.
pub(super) const fn number(name: &'static str) -> Column {
    Column { name, kind: "integer", format: "", priority: 0 }
}

/// Creates a column shown only with `-o wide`.
pub(super) const fn wide(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 1 }
}

pub(super) const SCALE: &[Column] = &[text("Name"), number("Desired"), number("Available"), AGE];
pub(super) const PLAIN: &[Column] =
    &[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }];
