//! File format of logs and snapshots: a sequence of checksummed frames.
//!
//! ```text
//!  file  = magic (8) · format (2) · kind (2) · base revision (8) · crc32 of these (4) · frame…
//!  frame = length (4) · crc32 of the payload (4) · crc32 of these (4) · payload: records
//! ```
//!
//! A frame is appended and synced before the next one is begun. A crash can therefore leave at most one bad
//! frame, at the end: truncated, or with unwritten sectors that read as zeros (a torn tail). Any other
//! checksum mismatch is damage, and [`Frames`] reports its offset.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::error::DataDirError;

const MAGIC: [u8; 8] = *b"kubewrt\0";
/// Supported format version.
const FORMAT: u16 = 1;
/// Length of a file header.
pub(super) const HEAD: u64 = 24;
/// Length of a frame header.
pub(super) const FRAME_HEAD: usize = 12;
/// Size of an atomic disk write.
const SECTOR: u64 = 512;

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes after the base revision.
    Log,
    /// All objects at the base revision.
    Snapshot,
}

impl Kind {
    fn number(self) -> u16 {
        match self {
            Self::Log => 1,
            Self::Snapshot => 2,
        }
    }
}

/// Encodes a file header.
pub(super) fn head(kind: Kind, base: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&kind.number().to_le_bytes());
    out.extend_from_slice(&base.to_le_bytes());
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Reserves the header of a frame, to be filled by [`finish_frame`].
pub(super) fn begin_frame(out: &mut Vec<u8>) {
    out.clear();
    out.resize(FRAME_HEAD, 0);
}

/// Fills the header of a frame.
pub(super) fn finish_frame(frame: &mut [u8]) {
    let payload = &frame[FRAME_HEAD..];
    // Frames are finished long before they are this large.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let crc = crc32fast::hash(payload);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    let own = crc32fast::hash(&frame[..8]);
    frame[8..12].copy_from_slice(&own.to_le_bytes());
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Reader of the frames of a file.
pub(super) struct Frames {
    path: PathBuf,
    file: BufReader<File>,
    length: u64,
    offset: u64,
}

/// Result of reading a frame.
#[derive(Debug)]
pub(super) enum Next {
    /// A frame and its offset.
    Frame { payload: Vec<u8>, offset: u64 },
    /// The regular end of the file.
    End,
    /// A torn tail from this offset on.
    Torn { offset: u64 },
}

impl Frames {
    /// Opens a file; `None` if a crash left it without a complete header.
    pub(super) fn open(path: &Path, kind: Kind, base: u64) -> Result<Option<Self>, DataDirError> {
        let io = |source| DataDirError::Io { path: path.to_owned(), operation: "read", source };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        if length < HEAD {
            return Ok(None);
        }
        let mut frames = Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 20, file),
            length,
            offset: HEAD,
        };
        let mut found = [0; 24];
        frames.file.read_exact(&mut found).map_err(io)?;
        if found.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        if found[..8] != MAGIC {
            return Err(frames.corrupt(0, "this is no file of kubewright's"));
        }
        let format = u16::from_le_bytes(number(&found, 8));
        if u32::from_le_bytes(number(&found, 20)) != crc32fast::hash(&found[..20]) {
            return Err(frames.corrupt(0, "the head does not fit its checksum"));
        }
        if format != FORMAT {
            return Err(DataDirError::Format { path: path.to_owned(), found: format, known: FORMAT });
        }
        if found[..] != head(kind, base)[..] {
            return Err(frames.corrupt(8, "the head does not fit the name of the file"));
        }
        Ok(Some(frames))
    }

    /// Returns an error about an offset of this file.
    pub(super) fn corrupt(&self, offset: u64, what: &str) -> DataDirError {
        DataDirError::Corrupt { path: self.path.clone(), offset, what: what.to_owned() }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), DataDirError> {
        self.file.read_exact(buffer).map_err(|source| DataDirError::Io {
            path: self.path.clone(),
            operation: "read",
            source,
        })
    }

    /// Reads the next frame.
    pub(super) fn next(&mut self) -> Result<Next, DataDirError> {
        let offset = self.offset;
        let left = self.length - offset;
        if left == 0 {
            return Ok(Next::End);
        }
        if left < FRAME_HEAD as u64 {
            return Ok(Next::Torn { offset });
        }
        let mut found = [0; FRAME_HEAD];
        self.read(&mut found)?;
        if u32::from_le_bytes(number(&found, 8)) != crc32fast::hash(&found[..8]) {
            return if self.has_unwritten_sector(offset, self.length)? {
                Ok(Next::Torn { offset })
            } else {
                Err(self.corrupt(offset, "the head of a frame does not fit its checksum"))
            };
        }
        let length = u32::from_le_bytes(number(&found, 0));
        let end = offset + FRAME_HEAD as u64 + u64::from(length);
        if end > self.length {
            return Ok(Next::Torn { offset });
        }
        // `length` was checked against the remaining file size above.
        let mut payload = vec![0; length as usize];
        self.read(&mut payload)?;
        if u32::from_le_bytes(number(&found, 4)) != crc32fast::hash(&payload) {
            return if end == self.length && self.has_unwritten_sector(offset, end)? {
                Ok(Next::Torn { offset })
            } else {
                Err(self.corrupt(offset, "a frame does not fit its checksum"))
            };
        }
        self.offset = end;
        Ok(Next::Frame { payload, offset })
    }

    /// Returns whether a sector in this range was never written: it consists of zeros.
    fn has_unwritten_sector(&mut self, from: u64, to: u64) -> Result<bool, DataDirError> {
        let io = |source| DataDirError::Io { path: self.path.clone(), operation: "read", source };
        self.file.seek(SeekFrom::Start(from)).map_err(io)?;
        let (mut at, mut sector) = (from, Vec::new());
        while at < to {
            let next = ((at / SECTOR + 1) * SECTOR).min(to);
            sector.clear();
            Read::by_ref(&mut self.file).take(next - at).read_to_end(&mut sector).map_err(io)?;
            if sector.iter().all(|b| *b == 0) {
                return Ok(true);
            }
            at = next;
        }
        Ok(false)
    }
}
