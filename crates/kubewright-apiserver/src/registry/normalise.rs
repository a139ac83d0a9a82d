//! Objects without what Go's structs would not print, as far as that can be known without a schema.
//!
//! Upstream decodes into structs and encodes from them: nulls and empty lists vanish, and empty maps vanish where the
//! field is a map (but not where it is a struct).

use serde_json::Value;

use super::descriptor::Json;

/// Fields that are maps wherever they appear: empty, they are not printed.
const MAPS: &[&str] = &[
    "annotations",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "stringData",
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "overhead",
    "parameters",
    "nodeAffinityLabels",
    "used",
];

/// Fields whose empty lists mean something and stay.
const KEPT_LISTS: &[&str] = &["raw"];

/// Drops what Go would not print.
pub fn normalise(object: &mut Json) {
    object.retain(|key, value| match value {
        Value::Null => false,
        Value::Array(list) => {
            for item in list.iter_mut() {
                if let Value::Object(map) = item {
                    normalise(map);
                }
            }
            !list.is_empty() || KEPT_LISTS.contains(&key.as_str())
        }
        Value::Object(map) => {
            if MAPS.contains(&key.as_str()) {
                !map.is_empty()
            } else if key == "fieldsV1" || key == "openAPIV3Schema" {
                true
            } else {
                normalise(map);
                true
            }
        }
        _ => true,
    });
}

/// Drops empty lists, which do not survive upstream's storage: what is left out of a list is `null` or nothing.
pub fn drop_empty_lists(object: &mut Json) {
    object.retain(|key, value| match value {
        Value::Array(list) => {
            list.iter_mut().filter_map(Value::as_object_mut).for_each(drop_empty_lists);
            !list.is_empty()
        }
        // Raw JSON is kept as it came.
        Value::Object(_) if key == "fieldsV1" || key == "openAPIV3Schema" => true,
        Value::Object(map) => {
            drop_empty_lists(map);
            true
        }
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_lists_and_maps_go_and_structs_stay() {
        let mut value = json!({
            "metadata": {"labels": {}, "finalizers": [], "name": "a", "uid": null},
            "rules": [], "spec": {"emptyDir": {}, "x": [{"limits": {}}]},
        });
        let object = value.as_object_mut().unwrap();
        normalise(object);
        assert_eq!(value, json!({"metadata": {"name": "a"}, "spec": {"emptyDir": {}, "x": [{}]}}));
    }
}
