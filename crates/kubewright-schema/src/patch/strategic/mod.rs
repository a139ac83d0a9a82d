//! Strategic merge patch: a merge patch that merges lists by key if the schema has one.
//!
//! Maps are merged; lists with the patch strategy `merge` are merged by their merge key (or as sets of
//! scalars), other lists are replaced. Directives in the patch control the merge: `$patch: replace | delete`,
//! `$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`.

mod lists;

use lists::{check_order, element_kind, merge_lists, order_items};
use serde_json::{Map, Value};

use super::{PatchError, merge::drop_nulls};
use crate::{Kind, Node, PatchStrategy, go};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Merges a patch into an object of a built-in type.
///
/// ```
/// use kubewright_schema::{Gvk, Schemas, patch::strategic};
/// use serde_json::json;
///
/// let pod = Schemas::builtin().lookup(&Gvk::new("", "v1", "Pod")).unwrap();
/// let patched = strategic::apply(
///     &pod,
///     json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}),
///     json!({"spec": {"containers": [{"name": "b", "image": "b:2"}]}}),
/// )?;
/// assert_eq!(
///     patched,
///     json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}})
/// );
/// # Ok::<(), kubewright_schema::patch::PatchError>(())
/// ```
pub fn apply(schema: &Node, document: Value, patch: Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&patch)
        )));
    };
    let Value::Object(document) = document else {
        return Err(PatchError::Internal("only objects can be patched".to_owned()));
    };
    merge_maps(Some(schema), document, patch).map(Value::Object)
}

fn bad_order() -> PatchError {
    PatchError::BadRequest("invalid patch format of setElementOrder list".to_owned())
}

fn wrong_type(expected: &str, found: &Value) -> PatchError {
    PatchError::Internal(format!("expected a {expected}, but received a {}", go::type_name(found)))
}

type JsonMap = Map<String, Value>;

fn merge_maps(node: Option<&Node>, mut original: JsonMap, mut patch: JsonMap) -> Result<JsonMap, PatchError> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(other) => {
            let (kind, map) = (go::plain(other), go::plain(&Value::Object(patch.clone())));
            return Err(PatchError::Internal(format!("unknown patch type: {kind} in map: {map}")));
        }
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_orders(node, &mut original, &mut patch)?;
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            let list = list
                .strip_prefix('/')
                .ok_or_else(|| PatchError::BadRequest("invalid patch format of primitive list".to_owned()))?;
            delete_from_list(&mut original, list, value)?;
        } else {
            merge_key(node, &mut original, key, value)?;
        }
    }
    Ok(original)
}

fn merge_key(
    node: Option<&Node>,
    original: &mut JsonMap,
    key: String,
    mut value: Value,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let merged = match (original.remove(&key), value) {
        (Some(Value::Object(current)), Value::Object(patch)) => {
            let (child, strategy) = lookup(node, &key)?;
            Value::Object(if strategy.replace { patch } else { merge_maps(Some(child), current, patch)? })
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            let (child, strategy) = lookup(node, &key)?;
            Value::Array(if strategy.merge { merge_lists(child, strategy, current, patch)? } else { patch })
        }
        (_, new) => {
            value = new;
            drop_nulls(&mut value);
            match without_directives(value) {
                Some(value) => value,
                None => return Ok(()),
            }
        }
    };
    original.insert(key, merged);
    Ok(())
}

/// Returns the schema and the patch strategy of a field.
fn lookup<'n>(node: Option<&'n Node>, key: &str) -> Result<(&'n Node, &'n PatchStrategy), PatchError> {
    let Some(Kind::Object(object)) = node.map(|n| &n.kind) else {
        return Err(PatchError::Internal(
            "merging an object in json but data type is not struct, instead is: interface".to_owned(),
        ));
    };
    match object.field(key) {
        Some(field) => Ok((field.node.node(), &field.patch)),
        None if object.fields.is_empty() => Err(PatchError::Internal(
            "merging an object in json but data type is not struct, instead is: map".to_owned(),
        )),
        None => Err(PatchError::Internal(format!(
            "unable to find api field in struct for the json field \"{key}\""
        ))),
    }
}

/// Applies `$retainKeys`: keys of the original that are not listed are removed; the patch may only set listed
/// keys.
fn retain_keys(original: &mut JsonMap, patch: &mut JsonMap) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(bad)?;
    let listed = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    let strange = patch.iter().any(|(key, value)| {
        !(value.is_null() || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER) || listed(key))
    });
    if strange {
        return Err(bad());
    }
    original.retain(|key, _| listed(key));
    Ok(())
}

/// Applies `$setElementOrder/<list>`: merges the list and orders it.
fn set_element_orders(
    node: Option<&Node>,
    original: &mut JsonMap,
    patch: &mut JsonMap,
) -> Result<(), PatchError> {
    let directives: Vec<_> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(wrong_type("[]interface {}", &other.unwrap_or_default())),
        };
        let key =
            directive.strip_prefix(SET_ORDER).and_then(|k| k.strip_prefix('/')).ok_or_else(bad_order)?;
        let list = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.clone())),
            Some(other) => Err(wrong_type("[]interface {}", other)),
        };
        let (live, new) = (list(original.get(key))?, list(patch.get(key))?);
        let (child, strategy) = lookup(node, key)?;
        let merge_key = strategy.merge_key.as_deref();
        check_order(new.as_deref().unwrap_or_default(), &order, merge_key)?;
        let server_order = live.clone().unwrap_or_default();
        let merged = match (live, new) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(live), Some(new)) if strategy.merge => merge_lists(child, strategy, live, new)?,
            (Some(_), Some(new)) => new,
        };
        original.insert(key.to_owned(), Value::Array(order_items(merged, &order, &server_order, merge_key)?));
        patch.remove(key);
    }
    Ok(())
}

fn delete_from_list(original: &mut JsonMap, key: &str, patch: Value) -> Result<(), PatchError> {
    if patch.is_null() {
        original.remove(key);
        return Ok(());
    }
    if let (Some(Value::Array(current)), Value::Array(gone)) = (original.get_mut(key), patch) {
        if current.is_empty() && gone.is_empty() {
            return Ok(());
        }
        element_kind(current.iter().chain(&gone))?;
        current.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// Returns a newly added value without directive objects; `None` if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(k, v)| Some((k, without_directives(v)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Gvk, Schemas};

    fn pod(document: Value, patch: Value) -> Result<Value, PatchError> {
        apply(&Schemas::builtin().lookup(&Gvk::new("", "v1", "Pod")).unwrap(), document, patch)
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn spec(document: Value, patch: Value) -> Value {
        pod(json!({"spec": document}), json!({"spec": patch})).unwrap()["spec"].take()
    }

    #[test]
    fn lists_without_a_strategy_are_replaced_and_scalar_sets_joined() {
        assert_eq!(
            spec(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": [{"key": "b"}]})),
            json!({"tolerations": [{"key": "b"}]})
        );
        let patched = pod(
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["c", "b"]}}),
        );
        assert_eq!(patched.unwrap(), json!({"metadata": {"finalizers": ["c", "a", "b"]}}));
    }

    #[test]
    fn new_items_come_before_known_ones_and_known_ones_keep_their_place() {
        let live = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(
            spec(live.clone(), json!({"containers": [{"name": "c"}]})),
            json!({"containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]})
        );
        assert_eq!(
            spec(live, json!({"containers": [{"name": "b", "image": "x"}]})),
            json!({"containers": [{"name": "a"}, {"name": "b", "image": "x"}]})
        );
    }

    #[test]
    fn directives_delete_and_replace() {
        let live = json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"}});
        assert_eq!(
            spec(
                live.clone(),
                json!({"containers": [{"name": "a", "$patch": "delete"}], "nodeSelector": {"$patch": "delete"}})
            ),
            json!({"containers": [{"name": "b"}], "nodeSelector": {}})
        );
        assert_eq!(
            spec(
                live,
                json!({"containers": [{"name": "z"}, {"$patch": "replace"}],
                              "nodeSelector": {"$patch": "replace", "k": "v"}})
            ),
            json!({"containers": [{"name": "z"}], "nodeSelector": {"k": "v"}})
        );
    }

    #[test]
    fn set_element_order_sorts_and_delete_from_primitive_list_removes() {
        let live = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "s"}]});
        assert_eq!(
            spec(
                live,
                json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                              "containers": [{"name": "a", "image": "i"}]})
            ),
            json!({"containers": [{"name": "b"}, {"name": "a", "image": "i"}, {"name": "s"}]})
        );
        let patched = pod(
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        );
        assert_eq!(patched.unwrap(), json!({"metadata": {"finalizers": ["b"]}}));
    }

    #[test]
    fn retain_keys_removes_unlisted_keys() {
        let live = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
        assert_eq!(
            spec(
                live,
                json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]})
            ),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})
        );
        let bad = pod(json!({"spec": {}}), json!({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}));
        assert_eq!(bad, Err(PatchError::BadRequest("invalid patch format of retainKeys".into())));
    }

    #[test]
    fn null_removes_a_field_and_is_dropped_from_new_values() {
        assert_eq!(
            spec(
                json!({"nodeName": "n"}),
                json!({"nodeName": null, "dnsConfig": {"options": null, "searches": ["x"]}})
            ),
            json!({"dnsConfig": {"searches": ["x"]}})
        );
    }

    #[test]
    fn errors_have_the_texts_of_upstream() {
        let live = json!({"spec": {"containers": [{"name": "a"}]}});
        let refused = |patch| pod(live.clone(), patch).unwrap_err();
        assert_eq!(
            refused(json!({"spec": {"containers": [{"image": "x"}]}})).to_string(),
            "map: map[image:x] does not contain declared merge key: name"
        );
        assert_eq!(
            refused(json!({"spec": {"$patch": "frob"}})).to_string(),
            "unknown patch type: frob in map: map[$patch:frob]"
        );
        assert_eq!(refused(json!({"spec": {"$setElementOrder": []}})).code(), 400);
        assert_eq!(refused(json!([])).code(), 400);
        assert!(refused(json!({"spec": {"containers": [{"name": "b"}], "$setElementOrder/containers": [{"name": "a"}]}}))
            .to_string()
            .starts_with("The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:"));
    }
}
