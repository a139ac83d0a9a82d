//! What a merge patch has to say to make one document of another.

use serde_json::{Map, Value};

/// The merge patch (RFC 7396) from `before` to `after`; none if they are equal.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut patch = Map::new();
            for (key, new) in after {
                match before.get(key) {
                    Some(old) => patch.extend(difference(old, new).map(|change| (key.clone(), change))),
                    None => drop(patch.insert(key.clone(), new.clone())),
                }
            }
            let removed = before.keys().filter(|key| !after.contains_key(*key));
            patch.extend(removed.map(|key| (key.clone(), Value::Null)));
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let members = target.as_object_mut().unwrap();
        for (key, change) in patch {
            if change.is_null() {
                members.remove(key);
            } else {
                apply(members.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3_u8).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_leads_from_one_document_to_the_other(before in documents(), after in documents()) {
            let mut reached = before.clone();
            if let Some(patch) = difference(&before, &after) {
                apply(&mut reached, &patch);
            }
            prop_assert_eq!(reached, after);
        }
    }
}
