//! Lists in a strategic merge patch: merging by key, and the order of the result.

use serde_json::{Map, Value};

use super::{DIRECTIVE, SET_ORDER, merge_maps, wrong_type};
use crate::{Node, PatchStrategy, go, patch::PatchError};

fn no_merge_key(item: &Map<String, Value>, key: &str) -> PatchError {
    let item = go::plain(&Value::Object(item.clone()));
    PatchError::Internal(format!("map: {item} does not contain declared merge key: {key}"))
}

/// Merges a list with the strategy `merge`: by its merge key, or as a set of scalars.
pub(super) fn merge_lists(
    node: &Node,
    strategy: &PatchStrategy,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let of_maps = element_kind(original.iter().chain(&patch))?;
    let merge_key = strategy.merge_key.as_deref();
    if !of_maps {
        let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
        for item in original.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return order_items(merged, &patch, &original, None);
    }
    let Some(key) = merge_key else {
        return Err(PatchError::Internal("cannot merge lists without merge key for struct".to_owned()));
    };
    let item_node = node.as_list().map(|list| list.item.node());
    let (original, patch) = apply_directives(original, patch, key)?;
    let mut merged = original.clone();
    for item in &patch {
        let wanted = identity(item, merge_key)?;
        let at = merged.iter().position(|candidate| candidate.get(key) == Some(wanted));
        match (at, item) {
            (Some(at), Value::Object(item)) => {
                let current = std::mem::take(&mut merged[at]);
                let Value::Object(current) = current else { continue };
                merged[at] = Value::Object(merge_maps(item_node, current, item.clone())?);
            }
            _ => merged.push(item.clone()),
        }
    }
    order_items(merged, &patch, &original, merge_key)
}

/// Applies the directives: `$patch: delete` items remove the items with the same key, one `$patch: replace`
/// item replaces the whole list with the patch.
fn apply_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Some(map) = item.as_object() else { continue };
        match map.get(DIRECTIVE).map(|directive| (directive.as_str(), directive)) {
            None => rest.push(item),
            Some((Some("delete"), _)) => {
                let gone = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                original.retain(|candidate| candidate.get(key) != Some(gone));
            }
            Some((Some("replace"), _)) => replace = true,
            Some((Some("merge"), _)) => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some((_, other)) => {
                return Err(PatchError::Internal(format!(
                    "unknown patch type: {} in map: {}",
                    go::plain(other),
                    go::plain(&item)
                )));
            }
        }
    }
    Ok(if replace { (rest, Vec::new()) } else { (original, rest) })
}

/// Returns whether the items are objects. They must all be of one kind, and not lists.
pub(super) fn element_kind<'v>(items: impl Iterator<Item = &'v Value> + Clone) -> Result<bool, PatchError> {
    let mut kinds = items.clone();
    let Some(first) = kinds.next() else {
        return Err(PatchError::Internal("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if kinds.any(|item| go::type_name(item) != go::type_name(first)) {
        let all: Vec<_> = items.cloned().collect();
        return Err(PatchError::Internal(format!(
            "list element types are not identical: {}",
            go::plain(&Value::Array(all))
        )));
    }
    Ok(first.is_object())
}

/// Orders a merged list: items of the patch in the patch's order, other items in the server's order,
/// interleaved by the server's order if it has both; otherwise the patch's item comes first.
pub(super) fn order_items(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let place = |order: &[Value], item: &Value| -> Result<Option<usize>, PatchError> {
        let wanted = identity(item, merge_key)?;
        Ok(order.iter().position(|other| match merge_key {
            Some(key) => other.get(key) == Some(wanted),
            None => other == wanted,
        }))
    };
    let (mut patched, mut server_only) = (Vec::new(), Vec::new());
    for item in merged {
        let server = place(server_order, &item)?;
        match place(patch_order, &item)? {
            Some(at) => patched.push((at, server, item)),
            None => server_only.push((server, item)),
        }
    }
    patched.sort_by_key(|(at, ..)| *at);
    server_only.sort_by_key(|(server, _)| *server);
    let mut out = Vec::with_capacity(patched.len() + server_only.len());
    let (mut patched, mut server_only) = (patched.into_iter().peekable(), server_only.into_iter().peekable());
    loop {
        let server_first = match (patched.peek(), server_only.peek()) {
            (None, None) => break,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some((_, right, _)), Some((left, _))) => {
                left.zip(*right).is_some_and(|(left, right)| left < right)
            }
        };
        out.extend(if server_first {
            server_only.next().map(|(_, item)| item)
        } else {
            patched.next().map(|(.., item)| item)
        });
    }
    Ok(out)
}

/// Checks that the patch list is a subset of the order list in the same order; deletions are ignored.
pub(super) fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    let mut items = patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).peekable();
    if order.is_empty() || items.peek().is_none() {
        return Ok(());
    }
    for wanted in order {
        let Some(item) = items.peek() else { break };
        if identity(item, merge_key)? == identity(wanted, merge_key)? {
            items.next();
        }
    }
    if items.peek().is_none() {
        return Ok(());
    }
    let print = |items: &[Value]| go::plain(&Value::Array(items.to_vec()));
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
        print(patch),
        print(order)
    )))
}

/// Returns the identity of an item: the value of its merge key, or the scalar itself.
fn identity<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<&'v Value, PatchError> {
    let Some(key) = merge_key else { return Ok(item) };
    let map = item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))?;
    map.get(key).ok_or_else(|| no_merge_key(map, key))
}
