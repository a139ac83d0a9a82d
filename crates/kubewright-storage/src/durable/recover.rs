//! Recovery of a data directory: loads the newest snapshot and replays all logs from there on.

use std::fs;

use super::{
    codec::{self, Record},
    directory::Directory,
    error::DataDirError,
    frame::{Frames, HEAD, Kind, Next},
    log::Log,
    snapshot,
};
use crate::Snapshot;

/// Returns the state stored in a directory, and the log to continue.
pub(super) fn recover(directory: &Directory) -> Result<(Snapshot, Log), DataDirError> {
    let mut state = match directory.base_revisions(Kind::Snapshot)?.last() {
        Some(base) => snapshot::read(directory, *base)?,
        None => Snapshot::default(),
    };
    let first = state.revision;
    let missing = |revision| DataDirError::Missing { path: directory.path().to_owned(), revision };
    let mut logs: Vec<u64> = directory.base_revisions(Kind::Log)?;
    logs.retain(|base| *base >= first);
    let Some(last) = logs.last().copied() else {
        // A log is begun before the snapshot that it follows; only a new directory has neither.
        if first > 0 {
            return Err(missing(first));
        }
        return Ok((state, Log::create(directory, 0)?));
    };
    let mut length = HEAD;
    for base in &logs {
        if *base != state.revision {
            return Err(missing(state.revision));
        }
        length = replay(directory, *base, *base == last, &mut state)?;
    }
    remove_unfinished(directory)?;
    directory.remove_before(first)?;
    let log =
        if length < HEAD { Log::create(directory, last)? } else { Log::resume(directory, last, length)? };
    Ok((state, log))
}

/// Replays a log; returns the length of its valid part.
fn replay(
    directory: &Directory,
    base: u64,
    is_last: bool,
    state: &mut Snapshot,
) -> Result<u64, DataDirError> {
    let path = directory.file(Kind::Log, base);
    let cut = |offset| DataDirError::Corrupt {
        path: path.clone(),
        offset,
        what: "the log is cut short, and a later one exists".to_owned(),
    };
    let Some(mut frames) = Frames::open(&path, Kind::Log, base)? else {
        return if is_last { Ok(0) } else { Err(cut(0)) };
    };
    let mut length = HEAD;
    loop {
        match frames.next()? {
            Next::Frame { payload, offset } => {
                apply(&frames, &payload, offset, state)?;
                length = offset + (super::frame::FRAME_HEAD + payload.len()) as u64;
            }
            Next::End => return Ok(length),
            Next::Torn { offset } if is_last => {
                tracing::warn!(path = %path.display(), offset, "dropping the last write, which a crash truncated");
                return Ok(offset);
            }
            Next::Torn { offset } => return Err(cut(offset)),
        }
    }
}

fn apply(frames: &Frames, payload: &[u8], offset: u64, state: &mut Snapshot) -> Result<(), DataDirError> {
    let mut records = codec::Reader::new(payload);
    while let Some(record) = records.next().map_err(|_| frames.corrupt(offset, "a frame holds no records"))? {
        let revision = match &record {
            Record::Put { object, .. } => object.revision,
            Record::Remove { revision, .. } => *revision,
            Record::End { .. } => return Err(frames.corrupt(offset, "the end of a snapshot in a log")),
        };
        if revision <= state.revision {
            return Err(frames.corrupt(offset, "revisions go back"));
        }
        state.revision = revision;
        match record {
            Record::Put { resource, key, object } => state.insert(&resource, key, object.into()),
            Record::Remove { resource, key, .. } => {
                if !state.remove(&resource, &key) {
                    return Err(frames.corrupt(offset, "something is removed that is not there"));
                }
            }
            Record::End { .. } => {}
        }
    }
    Ok(())
}

/// Removes files that a crash left unfinished.
fn remove_unfinished(directory: &Directory) -> Result<(), DataDirError> {
    let io = |source| DataDirError::Io { path: directory.path().to_owned(), operation: "tidy up", source };
    for entry in fs::read_dir(directory.path()).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|e| e == "new") {
            fs::remove_file(&path).map_err(io)?;
        }
    }
    Ok(())
}
