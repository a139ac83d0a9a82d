//! Printer columns: their definitions and the cells of a row.

use serde_json::{Value, json};

use super::CustomResource;
use crate::{
    crd::{jsonpath::JsonPath, props::Props},
    schema::go,
};

/// Printer column after the name.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    path: Option<JsonPath>,
}

pub(super) fn from_definition(definition: &[Value]) -> Vec<Column> {
    if definition.is_empty() {
        let description = "CreationTimestamp is a timestamp representing the server time when this object was created. It is \
                           not guaranteed to be set in happens-before order across separate operations. Clients may not \
                           set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. \
                           Read-only. Null for lists. More info: \
                           https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
        return vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").ok(),
        }];
    }
    let column = |column: &Value| {
        let column = Props::new(column);
        let path = column.text("jsonPath");
        let description = match column.text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            text => text.to_owned(),
        };
        Column {
            name: column.text("name").to_owned(),
            kind: column.kind().to_owned(),
            format: column.text("format").to_owned(),
            description,
            priority: column.number("priority").unwrap_or_default(),
            path: JsonPath::parse(path).ok(),
        }
    };
    definition.iter().map(column).collect()
}

impl CustomResource {
    /// Returns the column definitions of a Table, the name first.
    pub fn column_definitions(&self) -> Vec<Value> {
        let name = "Name must be unique within a namespace. Is required when creating resources, although some resources may \
                    allow a client to request the generation of an appropriate name automatically. Name is primarily \
                    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
                    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
        let mut out = vec![
            json!({"name": "Name", "type": "string", "format": "name", "description": name, "priority": 0}),
        ];
        out.extend(self.columns().iter().map(|column| {
            json!({"name": column.name, "type": column.kind, "format": column.format,
                   "description": column.description, "priority": column.priority})
        }));
        out
    }

    /// Returns the cells of an object's row. `age` formats the time since a timestamp.
    ///
    /// ```
    /// use kubewright_apiserver::crd::resource::CustomResource;
    /// use serde_json::json;
    ///
    /// let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Demo"}, "versions": [{"name": "v1",
    ///     "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]}});
    /// let demos = CustomResource::new(&crd, "v1")?;
    /// let cells = demos.cells(&json!({"metadata": {"name": "a"}, "spec": {"size": 3}}), |_| String::new());
    /// assert_eq!(cells, [json!("a"), json!(3)]);
    /// # Ok::<(), kubewright_apiserver::crd::resource::ResourceError>(())
    /// ```
    pub fn cells(&self, object: &Value, age: impl Fn(&str) -> String) -> Vec<Value> {
        let mut out = vec![object["metadata"]["name"].clone()];
        out.extend(self.columns().iter().map(|column| {
            let found = column.path.as_ref().and_then(|path| path.find(object).into_iter().next());
            found.map_or(Value::Null, |value| cell(&column.kind, value, &age))
        }));
        out
    }
}

fn cell(kind: &str, value: &Value, age: &impl Fn(&str) -> String) -> Value {
    match (kind, value) {
        ("string", Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", Value::Bool(_) | Value::Number(_)) => go::plain(value).into(),
        ("string", other) => go::json(other).into(),
        #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
        ("integer", Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)).map_or(Value::Null, Value::from)
        }
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, |f| {
            // Whole numbers are written without a fraction, like in Go.
            if number.is_f64() && f.fract() != 0.0 { f.into() } else { value.clone() }
        }),
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => age(text).into(),
        _ => Value::Null,
    }
}
