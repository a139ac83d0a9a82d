//! Encoding of log and snapshot records.
//!
//! Lengths are LEB128, everything else is as in memory: recovery does not decode the stored JSON, so it costs
//! a copy and a checksum per object. The metadata that selectors need is stored beside it.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_core::ObjectKey;

use crate::{Event, Meta, Object, object::StoredVersion};

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const END: u8 = 3;

/// Record of a log or snapshot.
#[derive(Debug)]
pub(super) enum Record {
    /// An object was stored.
    Put { resource: Box<str>, key: ObjectKey, object: Object },
    /// An object was removed.
    Remove { resource: Box<str>, key: ObjectKey, revision: u64 },
    /// The end of a snapshot with this many objects.
    End { objects: u64 },
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn texts(out: &mut Vec<u8>, list: &[Box<str>]) {
    number(out, list.len() as u64);
    for item in list {
        text(out, item);
    }
}

/// Appends a put record.
pub(super) fn put(out: &mut Vec<u8>, resource: &str, key: &ObjectKey, object: &Object) {
    out.push(PUT);
    number(out, object.revision);
    text(out, resource);
    text(out, key.as_str());
    let meta = &object.meta;
    text(out, &meta.uid);
    number(out, meta.labels.len() as u64);
    for (label, value) in &meta.labels {
        text(out, label);
        text(out, value);
    }
    texts(out, &meta.owners);
    texts(out, &meta.finalizers);
    match &meta.deletion {
        None => out.push(0),
        Some(time) => {
            out.push(1);
            text(out, time);
        }
    }
    texts(out, &meta.fields);
    match &meta.stored_version {
        None => out.push(0),
        Some(stored_version) => {
            out.push(1);
            text(out, &stored_version.version);
            number(out, stored_version.schema);
        }
    }
    number(out, object.revision_offset() as u64);
    number(out, object.size() as u64);
    object.for_each_chunk(|chunk| out.extend_from_slice(chunk));
}

/// Appends the record of an event.
pub(super) fn event(out: &mut Vec<u8>, resource: &str, event: &Event) {
    if let Some(object) = &event.after {
        put(out, resource, &event.key, object);
    } else {
        out.push(REMOVE);
        number(out, event.revision);
        text(out, resource);
        text(out, event.key.as_str());
    }
}

/// Appends the end record of a snapshot.
pub(super) fn end(out: &mut Vec<u8>, objects: u64) {
    out.push(END);
    number(out, objects);
}

/// Decoder of the records of a frame.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

/// Error for a frame with a valid checksum and invalid content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the next record; `None` at the end of the frame.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Malformed> {
        let Some((&kind, rest)) = self.bytes.split_first() else { return Ok(None) };
        self.bytes = rest;
        if kind == END {
            return Ok(Some(Record::End { objects: self.number()? }));
        }
        let revision = self.number()?;
        let resource = self.text()?;
        let key: ObjectKey = self.text()?.parse().map_err(|_| Malformed)?;
        match kind {
            REMOVE => Ok(Some(Record::Remove { resource: resource.into(), key, revision })),
            PUT => {
                let meta = Arc::new(self.meta()?);
                let revision_offset = usize::try_from(self.number()?).map_err(|_| Malformed)?;
                let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
                let bytes = Bytes::copy_from_slice(self.take(length)?);
                let object = Object::restore(revision, bytes, revision_offset, meta).ok_or(Malformed)?;
                Ok(Some(Record::Put { resource: resource.into(), key, object }))
            }
            _ => Err(Malformed),
        }
    }

    fn meta(&mut self) -> Result<Meta, Malformed> {
        let uid = self.text()?.into();
        let count = self.count()?;
        let labels =
            (0..count).map(|_| Ok((self.text()?.into(), self.text()?.into()))).collect::<Result<_, _>>()?;
        let owners = self.texts()?;
        let finalizers = self.texts()?;
        let deletion = match self.take(1)? {
            [0] => None,
            [1] => Some(self.text()?.into()),
            _ => return Err(Malformed),
        };
        let fields = self.texts()?;
        let stored_version = match self.take(1)? {
            [0] => None,
            [1] => Some(StoredVersion { version: self.text()?.into(), schema: self.number()? }),
            _ => return Err(Malformed),
        };
        Ok(Meta { uid, labels, owners, finalizers, deletion, fields, stored_version })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// Returns the number of following items, bounded by the remaining bytes.
    fn count(&mut self) -> Result<u64, Malformed> {
        self.number().and_then(|n| if n <= self.bytes.len() as u64 { Ok(n) } else { Err(Malformed) })
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed)
    }

    fn texts(&mut self) -> Result<Box<[Box<str>]>, Malformed> {
        (0..self.count()?).map(|_| Ok(self.text()?.into())).collect()
    }
}
