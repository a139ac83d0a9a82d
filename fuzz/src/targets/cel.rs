//! CEL expressions: what compiles is evaluated within its cost limit.

use std::sync::{Arc, LazyLock};

use kubewright_cel::{Decl, Expression};
use serde_json::json;

use crate::report_outcome;

static DECL: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let schema = json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "n": {"type": "number"}, "s": {"type": "string", "maxLength": 20},
        "b": {"type": "boolean"}, "d": {"type": "string", "format": "date-time"}, "x": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "maxItems": 10, "items": {"type": "string"}},
        "m": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }});
    Decl::from_schema(&schema, false).expect("it is a good schema")
});

/// Runs the target.
pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let expression = match Expression::compile(text, &DECL, true) {
        Ok(expression) => expression,
        Err(why) => return report_outcome(&why.to_string()),
    };
    expression.estimated_cost();
    let value = json!({
        "i": -1, "n": 1.5, "s": "text \u{1f980}", "b": true, "d": "2026-01-01T00:00:00Z", "x": "1", "l": ["a", "b", "a"],
        "m": {"k": 9_223_372_036_854_775_807i64}, "o": {"a": 0},
    });
    for old in [None, Some(&value)] {
        match expression.evaluate_bool(&value, old, &mut 100_000) {
            Ok(held) => report_outcome(if held { "true" } else { "false" }),
            Err(why) => report_outcome(&why.to_string()),
        }
        let _ = expression.evaluate_string(&value, old, &mut 100_000);
        let _ = expression.evaluate_bool(&json!({}), old, &mut 100_000);
    }
}
