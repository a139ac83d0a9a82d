//! The printers of built-in types.

use jiff::Timestamp;
use serde_json::Value;

use super::columns::{Column, PLAIN};
use crate::registry::json::{Json, meta, name, text};

/// How objects of a type become rows.
pub(super) struct Printer {
    /// The columns.
    pub(super) columns: &'static [Column],
    /// The cells of one object, one per column.
    pub(super) cells: fn(&Json, Timestamp) -> Vec<Value>,
    /// The conditions of its row.
    pub(super) conditions: fn(&Json) -> Option<Value>,
}

fn no_conditions(_: &Json) -> Option<Value> {
    None
}

fn plain(object: &Json, _: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(meta(object), "creationTimestamp").into()]
}

const fn printer(columns: &'static [Column], cells: fn(&Json, Timestamp) -> Vec<Value>) -> Printer {
    Printer { columns, cells, conditions: no_conditions }
}

/// The printer of a type.
pub(super) fn of(group: &str, kind: &str) -> &'static Printer {
    static FALLBACK: Printer = printer(PLAIN, plain);
    let _ = (group, kind);
    &FALLBACK
}
