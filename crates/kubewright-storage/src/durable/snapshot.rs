//! Snapshot files: all objects at one revision.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    codec::{self, Record},
    directory::Directory,
    error::DataDirError,
    frame::{self, Frames, Kind, Next},
};
use crate::Snapshot;

/// Approximate frame size of a snapshot.
const FRAME: usize = 1 << 20;

/// Writes a snapshot file; returns its length, or `None` if cancelled.
pub(super) fn write(
    directory: &Directory,
    snapshot: &Snapshot,
    stop: &AtomicBool,
) -> Result<Option<u64>, DataDirError> {
    let path = directory.file(Kind::Snapshot, snapshot.revision);
    let new = path.with_extension("new");
    let written = fill(&new, snapshot, stop)
        .and_then(|length| {
            if length.is_some() {
                fs::rename(&new, &path)?;
            } else {
                fs::remove_file(&new)?;
            }
            Ok(length)
        })
        .map_err(|source| DataDirError::Io { path, operation: "write", source })?;
    directory.sync()?;
    Ok(written)
}

fn fill(path: &Path, snapshot: &Snapshot, stop: &AtomicBool) -> io::Result<Option<u64>> {
    let mut file = BufWriter::with_capacity(FRAME, Directory::create(path)?);
    let head = frame::head(Kind::Snapshot, snapshot.revision);
    file.write_all(&head)?;
    let (mut length, mut objects, mut buffer) = (head.len(), 0, Vec::with_capacity(FRAME + FRAME / 4));
    frame::begin_frame(&mut buffer);
    for resource in snapshot.resources() {
        for (key, object) in snapshot.collection(resource).range(None, None) {
            codec::put(&mut buffer, resource, key, object);
            objects += 1;
            if buffer.len() < FRAME {
                continue;
            }
            if stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            frame::finish_frame(&mut buffer);
            file.write_all(&buffer)?;
            length += buffer.len();
            frame::begin_frame(&mut buffer);
        }
    }
    codec::end(&mut buffer, objects);
    frame::finish_frame(&mut buffer);
    file.write_all(&buffer)?;
    file.into_inner()?.sync_all()?;
    Ok(Some((length + buffer.len()) as u64))
}

/// Reads a snapshot. It is renamed into place when complete, so a torn tail is damage.
pub(super) fn read(directory: &Directory, base: u64) -> Result<Snapshot, DataDirError> {
    let path = directory.file(Kind::Snapshot, base);
    let cut = |offset| DataDirError::Corrupt {
        path: path.clone(),
        offset,
        what: "the snapshot is cut short".to_owned(),
    };
    let Some(mut frames) = Frames::open(&path, Kind::Snapshot, base)? else { return Err(cut(0)) };
    let mut snapshot = Snapshot { revision: base, ..Snapshot::default() };
    let mut objects = 0;
    loop {
        match frames.next()? {
            Next::Frame { payload, offset } => {
                let malformed = || frames.corrupt(offset, "a frame holds no records");
                let mut records = codec::Reader::new(&payload);
                while let Some(record) = records.next().map_err(|_| malformed())? {
                    match record {
                        Record::Put { resource, key, object } if object.revision <= base => {
                            snapshot.insert(&resource, key, object.into());
                            objects += 1;
                        }
                        Record::End { objects: said } if said == objects => return Ok(snapshot),
                        _ => {
                            return Err(frames.corrupt(offset, "a record does not belong into this snapshot"));
                        }
                    }
                }
            }
            Next::End => return Err(cut(fs::metadata(&path).map_or(0, |m| m.len()))),
            Next::Torn { offset } => return Err(cut(offset)),
        }
    }
}
