//! Tests of crashes, damage and failing disks.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use kubewright_core::ObjectKey;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::{frame::Kind, log::LogFile, *};
use crate::{Draft, Expect, Storage};

fn key(n: u8) -> ObjectKey {
    if n.is_multiple_of(2) {
        ObjectKey::cluster(&format!("o{n}"))
    } else {
        ObjectKey::namespaced("ns", &format!("o{n}"))
    }
}

fn draft(value: u64) -> Draft {
    let object = json!({
        "metadata": {
            "name": "x", "uid": format!("uid-{value}"), "labels": {"value": value.to_string(), "a": ""},
            "finalizers": ["f"], "ownerReferences": [{"uid": "o"}],
        },
        "value": value, "text": "\u{1f980}\n",
    });
    Draft::encode(object.as_object().unwrap(), Box::new([value.to_string().into()]))
}

fn put(storage: &Storage, n: u8, value: u64) -> u64 {
    let key = key(n);
    let expect = storage.get("r", &key).map_or(Expect::Absent, |o| Expect::Revision(o.revision));
    storage.put("r", &key, expect, draft(value)).unwrap().revision
}

fn open(directory: &TempDir) -> Result<Storage, DataDirError> {
    Storage::open(directory.path(), Retention::default())
}

/// Stored objects with their metadata.
type State = (u64, BTreeMap<String, (u64, String, String)>);

fn state(snapshot: &Snapshot) -> State {
    let mut objects = BTreeMap::new();
    for resource in snapshot.resources() {
        for (key, object) in snapshot.collection(resource).range(None, None) {
            let text = String::from_utf8(object.bytes().to_vec()).unwrap();
            let meta = format!("{:?} {}", object.meta, object.revision_offset());
            objects.insert(format!("{resource} {key:?}"), (object.revision, text, meta));
        }
    }
    (snapshot.revision, objects)
}

fn only(directory: &TempDir, kind: &str) -> PathBuf {
    let mut found = files(directory, kind);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn files(directory: &TempDir, kind: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with(kind))
        .collect();
    found.sort();
    found
}

/// Returns a directory with one frame per write, and the state after each write.
fn written(writes: u8) -> (TempDir, Vec<State>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).unwrap();
    let mut states = vec![state(&storage.snapshot())];
    for n in 0..writes {
        if n % 5 == 4 {
            let key = key(n - 1);
            storage.remove("r", &key, storage.get("r", &key).unwrap().revision).unwrap();
        } else {
            put(&storage, n % 7, u64::from(n));
        }
        storage.flush_blocking().unwrap();
        states.push(state(&storage.snapshot()));
    }
    (directory, states)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_objects_are_recovered_after_any_writes_and_restarts(
        runs in proptest::collection::vec(proptest::collection::vec((0..6u8, 0..4u64), 0..30), 1..4),
        min_length in 100..4000u64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut before = (0, BTreeMap::new());
        for run in runs {
            let storage = rotating(&directory, min_length);
            prop_assert_eq!(&state(&storage.snapshot()), &before);
            prop_assert_eq!(storage.history("r").compact_revision(), before.0);
            for (n, value) in run {
                let key = key(n);
                match storage.get("r", &key) {
                    Some(object) if value == 0 => drop(storage.remove("r", &key, object.revision).unwrap()),
                    _ => drop(put(&storage, n, value)),
                }
            }
            before = state(&storage.snapshot());
        }
        prop_assert_eq!(state(&open(&directory).unwrap().committed()), before);
    }
}

/// Opens a storage that takes snapshots early and often.
fn rotating(directory: &TempDir, min_length: u64) -> Storage {
    let held = Directory::open(directory.path()).unwrap();
    let (snapshot, log) = recover::recover(&held).unwrap();
    let (shared, durable) = Durable::start(held, snapshot, log, Retention::default(), min_length).unwrap();
    Storage { shared, durable: Some(durable), bases: Bases::default() }
}

#[test]
fn a_log_truncated_anywhere_recovers_the_writes_before_and_accepts_new_ones() {
    let (directory, states) = written(8);
    let log = only(&directory, "log");
    let whole = fs::read(&log).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for length in (0..whole.len()).step_by(7).chain([whole.len()]) {
        fs::write(&log, &whole[..length]).unwrap();
        let storage = open(&directory).unwrap();
        let found = state(&storage.committed());
        assert_eq!(&found, &states[usize::try_from(found.0).unwrap()], "cut at {length}");
        seen.insert(found.0);
        put(&storage, 0, 99);
        storage.flush_blocking().unwrap();
        let after = state(&storage.committed());
        drop(storage);
        assert_eq!(state(&open(&directory).unwrap().committed()), after, "cut at {length}");
    }
    assert_eq!(seen.len(), states.len());
}

#[test]
fn a_last_frame_with_unwritten_sectors_is_a_torn_tail() {
    let (directory, states) = written(3);
    let log = only(&directory, "log");
    let length = fs::metadata(&log).unwrap().len();
    let storage = open(&directory).unwrap();
    for n in 0..9 {
        put(&storage, 3, 1000 + n);
    }
    storage.flush_blocking().unwrap();
    drop(storage);
    let mut bytes = fs::read(&log).unwrap();
    let from = usize::try_from(length).unwrap();
    bytes[from..].fill(0);
    fs::write(&log, &bytes).unwrap();
    assert_eq!(state(&open(&directory).unwrap().committed()), states[3]);
}

#[test]
fn a_flipped_bit_anywhere_is_reported_with_file_and_offset() {
    let (directory, states) = written(4);
    let log = only(&directory, "log");
    let whole = fs::read(&log).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&log, &bytes).unwrap();
        match open(&directory) {
            Err(DataDirError::Corrupt { path, offset, .. }) => {
                assert_eq!(path, log);
                assert!(usize::try_from(offset).unwrap() <= at, "{offset} for a flip at {at}");
            }
            other => panic!("a flip at byte {at} gave {other:?}"),
        }
        assert_eq!(fs::read(&log).unwrap(), bytes, "a refused file was touched");
    }
    fs::write(&log, &whole).unwrap();
    assert_eq!(state(&open(&directory).unwrap().committed()), states[4]);
}

#[test]
fn a_damaged_or_truncated_snapshot_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let storage = rotating(&directory, 1);
    while files(&directory, "snapshot").is_empty() {
        put(&storage, 1, 1);
        storage.flush_blocking().unwrap();
    }
    drop(storage);
    let snapshot = files(&directory, "snapshot").pop().unwrap();
    let whole = fs::read(&snapshot).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&snapshot, bytes).unwrap();
        assert!(
            matches!(open(&directory), Err(DataDirError::Corrupt { path, .. }) if path == snapshot),
            "{at}"
        );
        fs::write(&snapshot, &whole[..at]).unwrap();
        assert!(
            matches!(open(&directory), Err(DataDirError::Corrupt { path, .. }) if path == snapshot),
            "{at}"
        );
    }
}

#[test]
fn snapshots_make_old_logs_obsolete_and_unfinished_files_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = rotating(&directory, 2000);
    for n in 0..400 {
        put(&storage, u8::try_from(n % 50).unwrap(), n);
        storage.flush_blocking().unwrap();
    }
    let want = state(&storage.committed());
    drop(storage);
    assert!(files(&directory, "snapshot").len() <= 2, "{:?}", files(&directory, ""));
    fs::write(directory.path().join("snapshot-00000000000000009999.new"), "half").unwrap();
    fs::write(directory.path().join("log-00000000000000000000"), "superfluous").unwrap();
    assert_eq!(state(&open(&directory).unwrap().committed()), want);
    assert_eq!(files(&directory, "snapshot").len(), 1);
    assert!(!directory.path().join("log-00000000000000000000").exists());
}

#[test]
fn a_missing_log_is_reported() {
    let (directory, _) = written(3);
    let log = only(&directory, "log");
    let later = directory.path().join("log-00000000000000000007");
    fs::write(&later, frame::head(Kind::Log, 7)).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Missing { revision: 3, .. })));
    fs::remove_file(log).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Missing { revision: 0, .. })));
}

#[test]
fn a_truncated_log_before_another_one_is_damage() {
    let (directory, _) = written(3);
    let log = only(&directory, "log");
    fs::write(directory.path().join("log-00000000000000000003"), frame::head(Kind::Log, 3)).unwrap();
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Corrupt { path, .. }) if path == log));
}

#[test]
fn a_file_of_another_format_is_rejected_with_its_number() {
    let (directory, _) = written(1);
    let log = only(&directory, "log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[8] = 2;
    let crc = crc32fast::hash(&bytes[..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    fs::write(&log, bytes).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Format { found: 2, known: 1, .. })));
}

#[test]
fn a_directory_is_locked_by_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(&directory).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Locked { .. })));
    drop(first);
    assert!(open(&directory).is_ok());
}

/// Disk whose failures are controlled by the test.
#[derive(Default)]
struct Rules {
    full: Mutex<bool>,
    sync_fails: Mutex<bool>,
    appended: Mutex<Vec<u8>>,
    syncs: AtomicUsize,
    /// If there is a channel, every sync waits for a message on it.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

struct Disk(Arc<Rules>);

impl LogFile for Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut appended = self.0.appended.lock();
        if *self.0.full.lock() {
            appended.extend_from_slice(&bytes[..bytes.len() / 2]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        appended.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(gate) = &*self.0.gate.lock() {
            let _ = gate.recv();
        }
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        if *self.0.sync_fails.lock() { Err(io::Error::other("the disk lost a page")) } else { Ok(()) }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.appended.lock().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

fn on_disk(directory: &TempDir, rules: &Arc<Rules>) -> Storage {
    let log = Log::new(Box::new(Disk(Arc::clone(rules))), 0);
    let held = Directory::open(directory.path()).unwrap();
    let (shared, durable) =
        Durable::start(held, Snapshot::default(), log, Retention::default(), u64::MAX).unwrap();
    Storage { shared, durable: Some(durable), bases: Bases::default() }
}

#[tokio::test]
async fn a_full_disk_fails_writes_without_publishing_them_and_stores_them_on_retry() {
    let (directory, rules) = (tempfile::tempdir().unwrap(), Arc::new(Rules::default()));
    let storage = on_disk(&directory, &rules);
    put(&storage, 1, 1);
    storage.flush().await.unwrap();
    let good = rules.appended.lock().len();

    *rules.full.lock() = true;
    put(&storage, 2, 2);
    assert!(matches!(storage.flush().await, Err(WriteError::Refused(_))));
    assert_eq!((storage.revision(), storage.snapshot().revision), (1, 2));
    assert!(storage.history("r").after(1, 10).unwrap().is_empty());
    assert_eq!(rules.appended.lock().len(), good, "half a frame was left");
    // Calling it makes the committer retry, so this comes last.
    assert!(matches!(storage.accepts_writes(), Err(WriteError::Refused(_))));

    *rules.full.lock() = false;
    while storage.accepts_writes().is_err() {
        tokio::task::yield_now().await;
    }
    storage.flush().await.unwrap();
    put(&storage, 3, 3);
    storage.flush().await.unwrap();
    assert_eq!(storage.revision(), 3);
    assert_eq!(storage.history("r").after(1, 10).unwrap().len(), 2);
}

#[tokio::test]
async fn after_a_failed_sync_nothing_more_is_written() {
    let (directory, rules) = (tempfile::tempdir().unwrap(), Arc::new(Rules::default()));
    let storage = on_disk(&directory, &rules);
    *rules.sync_fails.lock() = true;
    put(&storage, 1, 1);
    assert!(matches!(storage.flush().await, Err(WriteError::Failed(_))));
    *rules.sync_fails.lock() = false;
    for _ in 0..50 {
        assert!(matches!(storage.accepts_writes(), Err(WriteError::Failed(_))));
        assert!(matches!(storage.flush().await, Err(WriteError::Failed(_))));
    }
    assert_eq!((storage.revision(), rules.syncs.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn concurrent_writes_share_a_sync_and_are_published_after_it() {
    let (directory, rules) = (tempfile::tempdir().unwrap(), Arc::new(Rules::default()));
    let (open, gate) = mpsc::channel();
    *rules.gate.lock() = Some(gate);
    let storage = Arc::new(on_disk(&directory, &rules));
    put(&storage, 0, 0);
    // The first write is being synced; these arrive meanwhile.
    while rules.appended.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut waiting = tokio::task::JoinSet::new();
    for n in 1..=64 {
        put(&storage, n, 1);
        let storage = Arc::clone(&storage);
        waiting.spawn(async move { storage.flush().await });
    }
    assert_eq!((storage.revision(), storage.snapshot().revision), (0, 65));
    open.send(()).unwrap();
    open.send(()).unwrap();
    while let Some(flushed) = waiting.join_next().await {
        flushed.unwrap().unwrap();
    }
    assert_eq!((storage.revision(), rules.syncs.load(Ordering::SeqCst)), (65, 2));
    drop(open);
}
