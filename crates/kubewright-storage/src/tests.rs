//! Property tests of writes, watches and reads in any interleaving.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..6u8, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        3 => (0..6u8).prop_map(Step::Remove),
        1 => Just(Step::Compact),
    ];
    proptest::collection::vec(step, 1..60)
}

fn key(n: u8) -> ObjectKey {
    ObjectKey::namespaced(if n.is_multiple_of(2) { "even" } else { "odd" }, &format!("o{n}"))
}

fn draft(value: u8) -> Draft {
    Draft::encode(json!({"metadata": {"name": "x"}, "value": value}).as_object().unwrap(), Box::default())
}

/// Model: the stored objects after each revision.
type State = BTreeMap<String, (u64, u8)>;

fn value_of(object: &Object) -> u8 {
    u8::try_from(object.decode()["value"].as_u64().unwrap()).unwrap()
}

fn state_of(collection: &Collection) -> State {
    collection.range(None, None).map(|(k, o)| (k.to_string(), (o.revision, value_of(o)))).collect()
}

fn play(storage: &Storage, steps: &[Step]) -> Vec<State> {
    let mut states = vec![State::new()];
    for step in steps {
        let mut state = states.last().unwrap().clone();
        match step {
            Step::Put(k, v) => {
                let key = key(*k);
                let expect = storage.get("r", &key).map_or(Expect::Absent, |o| Expect::Revision(o.revision));
                let object = storage.put("r", &key, expect, draft(*v)).unwrap();
                state.insert(key.to_string(), (object.revision, *v));
            }
            Step::Remove(k) => {
                let key = key(*k);
                let Some(object) = storage.get("r", &key) else { continue };
                storage.remove("r", &key, object.revision).unwrap();
                state.remove(key.as_str());
            }
            Step::Compact => {
                storage.compact();
                continue;
            }
        }
        states.push(state);
    }
    states
}

proptest! {
    #[test]
    fn a_watcher_sees_each_change_after_its_revision_once_and_in_order(steps in steps()) {
        let storage = Storage::default();
        let states = play(&storage, &steps);
        let compact_revision = storage.history("r").compact_revision();
        for (start, state) in states.iter().enumerate() {
            let start = start as u64;
            let cursor = Cursor::after(storage.history("r"), start);
            if start < compact_revision {
                prop_assert_eq!(cursor.unwrap_err(), Expired { requested: start, oldest: compact_revision });
                continue;
            }
            let mut cursor = cursor.unwrap();
            let mut seen = start;
            let mut replayed = state.clone();
            for event in cursor.ready().unwrap() {
                prop_assert_eq!(event.revision, seen + 1);
                seen = event.revision;
                prop_assert_eq!(event.shown.revision, seen);
                match &event.after {
                    Some(object) => replayed.insert(event.key.to_string(), (object.revision, value_of(object))),
                    None => replayed.remove(event.key.as_str()),
                };
                prop_assert_eq!(&replayed, &states[usize::try_from(seen).unwrap()]);
            }
            prop_assert_eq!(seen, storage.revision());
            prop_assert!(cursor.ready().unwrap().is_empty());
        }
    }

    #[test]
    fn a_read_at_a_retained_revision_is_the_state_of_that_revision(steps in steps()) {
        let storage = Storage::default();
        let states = play(&storage, &steps);
        for (revision, state) in states.iter().enumerate() {
            match storage.collection_at("r", revision as u64) {
                Ok(collection) => prop_assert_eq!(&state_of(&collection), state),
                Err(expired) => prop_assert!(expired.requested < expired.oldest),
            }
        }
    }

    #[test]
    fn pages_of_a_snapshot_add_up_to_the_snapshot(steps in steps(), size in 1..5usize, more in steps()) {
        let storage = Storage::default();
        let states = play(&storage, &steps);
        let snapshot = storage.snapshot().collection("r");
        play(&storage, &more);
        for namespace in [None, Some("even"), Some("odd"), Some("none")] {
            let (mut after, mut paged) = (None, State::new());
            loop {
                let page: Vec<_> = snapshot.range(namespace, after.as_ref()).take(size).collect();
                let Some((last, _)) = page.last() else { break };
                after = Some((*last).clone());
                paged.extend(page.iter().map(|(k, o)| (k.to_string(), (o.revision, value_of(o)))));
            }
            let mut want = states.last().unwrap().clone();
            want.retain(|k, _| namespace.is_none_or(|ns| k.starts_with(&format!("{ns}/"))));
            prop_assert_eq!(paged, want);
        }
    }
}

#[test]
fn concurrent_writers_produce_a_linear_history_per_object() {
    let storage = Arc::new(Storage::default());
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let storage = Arc::clone(&storage);
            scope.spawn(move || {
                for turn in 0..200u8 {
                    let key = key(turn % 3);
                    loop {
                        let expect =
                            storage.get("r", &key).map_or(Expect::Absent, |o| Expect::Revision(o.revision));
                        if storage.put("r", &key, expect, draft(writer)).is_ok() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(storage.revision(), 800);
    let events = storage.history("r").after(0, usize::MAX).unwrap();
    assert_eq!(events.len(), 800);
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for event in events {
        let before = event.before.as_ref().map(|o| o.revision);
        assert_eq!(last.insert(event.key.to_string(), event.revision), before, "a write was lost");
    }
}

#[test]
fn a_conflict_returns_the_current_object() {
    let storage = Storage::default();
    let key = key(1);
    let first = storage.put("r", &key, Expect::Absent, draft(1)).unwrap();
    let second = storage.put("r", &key, Expect::Revision(first.revision), draft(2)).unwrap();
    for lost in [
        storage.put("r", &key, Expect::Absent, draft(3)),
        storage.put("r", &key, Expect::Revision(first.revision), draft(3)),
        storage.remove("r", &key, first.revision),
    ] {
        assert_eq!(lost.unwrap_err().current.unwrap().revision, second.revision);
    }
    assert!(storage.remove("other", &key, 1).unwrap_err().current.is_none());
}

#[test]
fn history_is_bounded_by_count_and_by_bytes() {
    let storage = Storage::with_retention(Retention { events: 5, bytes: 1 << 20 });
    for n in 0..20 {
        let expect = storage.get("r", &key(0)).map_or(Expect::Absent, |o| Expect::Revision(o.revision));
        storage.put("r", &key(0), expect, draft(n)).unwrap();
    }
    assert_eq!(storage.history("r").compact_revision(), 15);
    assert_eq!(storage.history("r").after(15, 100).unwrap().len(), 5);
    assert!(storage.history("r").after(14, 100).is_err());
}

#[tokio::test]
async fn a_slow_watcher_expires_and_a_fast_one_does_not() {
    let storage = Storage::with_retention(Retention { events: 4, bytes: 1 << 20 });
    let mut slow = Cursor::after(storage.history("r"), 0).unwrap();
    let mut fast = Cursor::after(storage.history("r"), 0).unwrap();
    for n in 0..10 {
        storage.put("r", &key(n), Expect::Absent, draft(n)).unwrap_or_else(|raced| {
            let revision = raced.current.unwrap().revision;
            storage.put("r", &key(n), Expect::Revision(revision), draft(n)).unwrap()
        });
        assert_eq!(fast.next().await.unwrap().unwrap().len(), 1);
    }
    assert!(slow.next().await.is_err());
}

#[tokio::test]
async fn a_waiting_watcher_wakes_for_a_change_and_for_close() {
    let storage = Arc::new(Storage::default());
    let mut cursor = Cursor::after(storage.history("r"), 0).unwrap();
    let waiting = tokio::spawn(async move {
        let first = cursor.next().await.unwrap().unwrap();
        (first.len(), cursor.next().await.unwrap().is_none())
    });
    tokio::task::yield_now().await;
    storage.put("r", &key(0), Expect::Absent, draft(0)).unwrap();
    tokio::task::yield_now().await;
    storage.close();
    assert_eq!(waiting.await.unwrap(), (1, true));
}

/// Returns a storage with `count` objects, and its objects.
fn filled(count: usize) -> (Storage, Vec<Arc<Object>>) {
    let storage = Storage::default();
    for i in 0..count {
        let name = format!("o-{i}");
        let object = json!({"metadata": {"name": name}});
        let draft = Draft::encode(object.as_object().unwrap(), Box::default());
        storage.put("things", &ObjectKey::namespaced("default", &name), Expect::Absent, draft).unwrap();
    }
    storage.compact();
    let objects = storage.snapshot().collection("things").range(None, None).map(|(_, o)| o.clone()).collect();
    (storage, objects)
}

#[test]
fn a_fork_copies_no_objects() {
    for count in [10, 10_000] {
        let (storage, objects) = filled(count);
        let references = |objects: &[Arc<Object>]| objects.iter().map(Arc::strong_count).sum::<usize>();
        let before = references(&objects);
        let fork = storage.fork();
        assert_eq!(references(&objects), before, "{count} objects are shared by the tree above them");
        assert_eq!(fork.revision(), storage.revision());
        assert_eq!(fork.snapshot().collection("things").len(), count);
        // A write copies the path to one object, and does not affect the other storage.
        let key = ObjectKey::namespaced("default", "o-0");
        fork.remove("things", &key, fork.get("things", &key).unwrap().revision).unwrap();
        assert!(storage.get("things", &key).is_some());
        assert!(references(&objects) - before < 200, "{} more references", references(&objects) - before);
    }
}

#[test]
fn a_fork_starts_with_empty_history() {
    let (storage, _) = filled(3);
    let fork = storage.fork();
    assert!(fork.history("things").after(1, usize::MAX).is_err(), "what was before is the other's");
    assert!(fork.history("things").after(fork.revision(), usize::MAX).unwrap().is_empty());
}

/// Stores pods of one owner, of which the last was changed twice.
fn pods_of_one_owner(storage: &Storage) -> Vec<(ObjectKey, Arc<Object>)> {
    let put = |n: u64, phase: &str| {
        let object = json!({
            "metadata": {"name": format!("p{n}"), "ownerReferences": [{"uid": "owner"}]},
            "spec": {"words": "one two three ".repeat(200)}, "status": {"phase": phase, "n": n},
        });
        let key = ObjectKey::namespaced("default", &format!("p{n}"));
        let expect = storage.get("pods", &key).map_or(Expect::Absent, |held| Expect::Revision(held.revision));
        let draft = Draft::encode(object.as_object().unwrap(), Box::default());
        (key.clone(), storage.put("pods", &key, expect, draft).unwrap())
    };
    let mut pods: Vec<_> = (0..20).map(|n| put(n, "Pending")).collect();
    put(19, "Running");
    pods[19] = put(19, "Succeeded");
    pods
}

#[test]
fn deltas_outlive_their_base() {
    let storage = Storage::default();
    let pods = pods_of_one_owner(&storage);
    let texts: Vec<_> = pods.iter().map(|(_, pod)| pod.bytes()).collect();
    storage.remove("pods", &pods[0].0, pods[0].1.revision).unwrap();
    drop(pods);
    storage.compact();
    let held = storage.snapshot().collection("pods");
    let mut held: Vec<_> = held.range(None, None).map(|(_, pod)| (pod.revision, pod.bytes())).collect();
    held.sort_unstable_by_key(|(revision, _)| *revision);
    assert_eq!(held.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), texts[1..]);
}

#[tokio::test]
async fn delta_encoded_objects_are_recovered_from_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path(), Retention::default()).unwrap();
    let pods = pods_of_one_owner(&storage);
    storage.flush().await.unwrap();
    drop(storage);
    let again = Storage::open(directory.path(), Retention::default()).unwrap();
    for (key, pod) in &pods {
        let found = again.get("pods", key).unwrap();
        assert_eq!((found.revision, found.bytes(), &found.meta), (pod.revision, pod.bytes(), &pod.meta));
    }
}
