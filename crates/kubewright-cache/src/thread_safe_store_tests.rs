use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A value with labels: its text split at blanks.
fn words() -> IndexFn<String> {
    IndexFn::new("words", |text: &String| -> Result<Vec<String>, String> {
        if text.contains("bad") {
            return Err("bad text".into());
        }
        assert!(!text.contains("panic"), "boom");
        Ok(text.split_whitespace().map(str::to_owned).collect())
    })
}

fn store() -> ThreadSafeStore<String> {
    let store = ThreadSafeStore::new();
    store.add_indexes([words()]).unwrap();
    store
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster(name)
}

fn sorted(mut values: Vec<String>) -> Vec<String> {
    values.sort();
    values
}

#[test]
fn an_update_moves_an_object_from_its_old_values_to_its_new_ones() {
    let store = store();
    store.add(key("a"), "x y".into()).unwrap();
    store.add(key("b"), "y".into()).unwrap();
    store.update(key("a"), "y z".into()).unwrap();
    assert!(store.by_index("words", "x").unwrap().is_empty());
    assert_eq!(sorted(store.by_index("words", "y").unwrap()), ["y", "y z"]);
    assert_eq!(store.index_keys("words", "z").unwrap(), [key("a")]);
}

#[test]
fn empty_index_sets_are_removed() {
    let store = store();
    store.add(key("a"), "x".into()).unwrap();
    store.delete(&key("a"));
    assert!(store.list_index_values("words").unwrap().is_empty());
    assert!(store.is_empty());
}

#[test]
fn index_returns_what_shares_a_value_with_the_given_object() {
    let store = store();
    for (name, text) in [("a", "x y"), ("b", "y"), ("c", "z")] {
        store.add(key(name), text.into()).unwrap();
    }
    assert_eq!(sorted(store.index("words", &"y x".to_owned()).unwrap()), ["x y", "y"]);
}

#[test]
fn an_index_can_be_added_to_a_store_with_objects() {
    let store = store();
    store.add(key("a"), "x".into()).unwrap();
    store.add(key("b"), "longer".into()).unwrap();
    store.add_indexes([IndexFn::new("length", |text: &String| text.len().to_string())]).unwrap();
    assert_eq!(store.by_index("length", "6").unwrap(), ["longer"]);
    assert_eq!(store.index_names(), ["words", "length"]);
}

#[test]
fn a_taken_index_name_is_refused_and_changes_nothing() {
    let store = store();
    let error = store
        .add_indexes([IndexFn::new("new", |_: &String| ()), IndexFn::new("words", |_: &String| ())])
        .unwrap_err();
    assert!(matches!(error, StoreError::IndexExists(name) if name == "words"));
    assert_eq!(store.index_names(), ["words"]);
}

#[test]
fn an_unknown_index_is_refused_with_the_names_that_exist() {
    let error = store().by_index("labels", "x").unwrap_err().to_string();
    assert!(error.contains("labels") && error.contains("words"), "{error}");
}

#[test]
fn an_index_function_that_fails_or_panics_keeps_the_object_but_not_in_that_index() {
    for text in ["bad x", "panic x"] {
        let store = store();
        store.add(key("a"), "x".into()).unwrap();
        let error = store.update(key("a"), text.into()).unwrap_err();
        assert!(matches!(error, StoreError::Index(IndexError { .. })), "{error}");
        assert_eq!(store.get(&key("a")).as_deref(), Some(text));
        assert!(store.by_index("words", "x").unwrap().is_empty(), "the old value is gone too");
        store.update(key("a"), "x again".into()).unwrap();
        assert_eq!(store.by_index("words", "again").unwrap(), ["x again"]);
    }
}

#[test]
fn replace_keeps_just_what_it_was_given() {
    let store = store();
    store.add(key("a"), "x".into()).unwrap();
    store.add(key("b"), "y".into()).unwrap();
    store.replace([(key("b"), "y2".to_owned()), (key("c"), "z".to_owned())]).unwrap();
    assert_eq!(store.list_keys(), [key("b"), key("c")]);
    assert_eq!(store.list_index_values("words").unwrap().len(), 2);
    store.replace([]).unwrap();
    assert!(store.is_empty());
}

proptest! {
    #[test]
    fn a_store_and_its_indexes_agree_with_a_plain_map(
        changes in prop::collection::vec((0u8..12, prop::option::of("[a-e]( [a-e]){0,3}")), 1..120)
    ) {
        let store = store();
        let mut model = BTreeMap::new();
        for (name, text) in changes {
            let key = key(&name.to_string());
            if let Some(text) = text {
                store.add(key.clone(), text.clone()).unwrap();
                model.insert(key, text);
            } else {
                prop_assert_eq!(store.delete(&key), model.remove(&key));
            }
        }
        prop_assert_eq!(store.len(), model.len());
        let values: BTreeSet<&str> = model.values().flat_map(|text| text.split(' ')).collect();
        let held: BTreeSet<String> = store.list_index_values("words").unwrap().into_iter().collect();
        prop_assert_eq!(held.iter().map(String::as_str).collect::<BTreeSet<_>>(), values.clone());
        for value in values {
            let expected: BTreeSet<ObjectKey> = model
                .iter()
                .filter(|(_, text)| text.split(' ').any(|word| word == value))
                .map(|(key, _)| key.clone())
                .collect();
            let keys = store.index_keys("words", value).unwrap();
            prop_assert_eq!(keys.len(), expected.len());
            prop_assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}
