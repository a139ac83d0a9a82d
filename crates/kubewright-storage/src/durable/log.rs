//! The file that grows: one frame per group of writes.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
};

use super::{
    Pending, codec,
    directory::Directory,
    error::{DataDirError, NotStored},
    frame::{self, Kind},
};

/// A frame is closed when it has grown to this: memory stays bounded, and a reader's buffer small.
const FRAME_LIMIT: usize = 8 << 20;

/// What a log is written to. Tests put a failing one in its place.
pub(super) trait Medium: Send {
    /// Appends bytes, all or an unknown part of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything appended is on disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Forgets everything behind a place.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// A log that is written to.
pub(super) struct Log {
    medium: Box<dyn Medium>,
    length: u64,
    frame: Vec<u8>,
}

impl Log {
    /// A new log of the writes after a revision.
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
        Ok(Self::on(Box::new(file), head.len() as u64))
    }

    /// An existing log, to be continued at a place; what is behind it goes.
    pub(super) fn resume(directory: &Directory, base: u64, length: u64) -> Result<Self, DataDirError> {
        let path = directory.file(Kind::Log, base);
        let resumed = || -> io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            if file.metadata()?.len() != length {
                file.cut(length)?;
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
        Ok(Self::on(Box::new(file), length))
    }

    pub(super) fn on(medium: Box<dyn Medium>, length: u64) -> Self {
        Self { medium, length, frame: Vec::new() }
    }

    /// How long it is.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Appends writes until the frame is full and syncs; how many are on disk now.
    pub(super) fn append(&mut self, writes: &[Pending]) -> Result<usize, NotStored> {
        frame::begin(&mut self.frame);
        let mut taken = 0;
        for write in writes {
            codec::event(&mut self.frame, &write.resource, &write.event);
            taken += 1;
            if self.frame.len() >= FRAME_LIMIT {
                break;
            }
        }
        frame::seal(&mut self.frame);
        if let Err(refused) = self.medium.append(&self.frame) {
            // A part may have been written. It must go before anything is written behind it.
            return Err(match self.medium.cut(self.length) {
                Ok(()) => NotStored::Refused(refused.to_string()),
                Err(error) => NotStored::Failed(format!("{refused}, and it could not be undone: {error}")),
            });
        }
        // After a failed sync the system may have dropped the pages: another sync would succeed and mean nothing.
        self.medium.sync().map_err(|error| NotStored::Failed(error.to_string()))?;
        self.length += self.frame.len() as u64;
        if self.frame.capacity() > FRAME_LIMIT / 4 {
            self.frame = Vec::new();
        }
        Ok(taken)
    }
}
