//! Log file: one frame per batch of writes.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
};

use super::{
    Pending, codec,
    directory::Directory,
    error::{DataDirError, WriteError},
    frame::{self, Kind},
};

/// Maximum frame size, which bounds the memory of writer and reader.
const FRAME_LIMIT: usize = 8 << 20;

/// File that a log is written to. Tests substitute a failing one.
pub(super) trait LogFile: Send {
    /// Appends bytes, all or an unknown part of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when all appended bytes are on disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates the file.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// Log open for appending.
pub(super) struct Log {
    file: Box<dyn LogFile>,
    length: u64,
    frame: Vec<u8>,
}

impl Log {
    /// Creates a log of the writes after a revision.
    pub(super) fn create(directory: &Directory, base: u64) -> Result<Self, DataDirError> {
        let path = directory.file(Kind::Log, base);
        let io = |operation| {
            let path = path.clone();
            move |source| DataDirError::Io { path, operation, source }
        };
        let mut file = Directory::create(&path).map_err(io("create"))?;
        let head = frame::head(Kind::Log, base);
        file.write_all(&head).map_err(io("write"))?;
        file.sync_all().map_err(io("write"))?;
        directory.sync()?;
        Ok(Self::new(Box::new(file), head.len() as u64))
    }

    /// Opens an existing log to continue at `length`; the rest is truncated.
    pub(super) fn resume(directory: &Directory, base: u64, length: u64) -> Result<Self, DataDirError> {
        let path = directory.file(Kind::Log, base);
        let resumed = || -> io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            if file.metadata()?.len() != length {
                file.truncate(length)?;
                file.sync_all()?;
            }
            file.seek(SeekFrom::Start(length))?;
            Ok(file)
        };
        let file = resumed().map_err(|source| DataDirError::Io {
            path: path.clone(),
            operation: "continue",
            source,
        })?;
        Ok(Self::new(Box::new(file), length))
    }

    pub(super) fn new(file: Box<dyn LogFile>, length: u64) -> Self {
        Self { file, length, frame: Vec::new() }
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Appends writes until the frame is full, and syncs; returns the number of writes that are now on disk.
    pub(super) fn append(&mut self, writes: &[Pending]) -> Result<usize, WriteError> {
        frame::begin_frame(&mut self.frame);
        let mut taken = 0;
        for write in writes {
            codec::event(&mut self.frame, &write.resource, &write.event);
            taken += 1;
            if self.frame.len() >= FRAME_LIMIT {
                break;
            }
        }
        frame::finish_frame(&mut self.frame);
        if let Err(refused) = self.file.append(&self.frame) {
            // A part may have been written. It must be truncated before anything is appended.
            return Err(match self.file.truncate(self.length) {
                Ok(()) => WriteError::Refused(refused.to_string()),
                Err(error) => WriteError::Failed(format!("{refused}, and it could not be undone: {error}")),
            });
        }
        // After a failed sync the system may have dropped the pages; a second sync would succeed without
        // writing them.
        self.file.sync().map_err(|error| WriteError::Failed(error.to_string()))?;
        self.length += self.frame.len() as u64;
        if self.frame.capacity() > FRAME_LIMIT / 4 {
            self.frame = Vec::new();
        }
        Ok(taken)
    }
}
