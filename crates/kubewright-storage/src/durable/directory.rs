//! Data directory: its lock and file names.
//!
//! | name | content |
//! |---|---|
//! | `lock` | held while a server runs |
//! | `log-N` | writes after revision N |
//! | `snapshot-N` | all objects at revision N |
//! | `identity.json` | keys and certificates |
//! | `*.new` | unfinished file, removed on start |

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{error::DataDirError, frame::Kind};

/// Data directory, locked by this process.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The lock is released when the file is closed or the process ends.
    _lock: File,
}

/// Returns options to open a file that only its owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Syncs the entries of a directory.
fn sync(path: &Path) -> io::Result<()> {
    // On other systems directories cannot be opened, and renames are durable by themselves.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Replaces a file atomically: after a crash it has the old or the new content.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync)
}

impl Directory {
    /// Creates the directory if necessary, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, DataDirError> {
        let io = |operation| {
            let path = path.to_owned();
            move |source| DataDirError::Io { path, operation, source }
        };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt;
            builder.mode(0o700);
        }
        builder.create(path).map_err(io("create"))?;
        let lock =
            private().write(true).create(true).truncate(false).open(path.join("lock")).map_err(io("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::Locked { path: path.join("lock") }),
            Err(TryLockError::Error(source)) => Err(io("lock")(source)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file. Numbers are zero-padded so that `ls` sorts them.
    pub(super) fn file(&self, kind: Kind, base: u64) -> PathBuf {
        let kind = match kind {
            Kind::Log => "log",
            Kind::Snapshot => "snapshot",
        };
        self.path.join(format!("{kind}-{base:020}"))
    }

    /// Returns the base revisions of the files of a kind, in order.
    pub(super) fn base_revisions(&self, kind: Kind) -> Result<Vec<u64>, DataDirError> {
        let io = |source| DataDirError::Io { path: self.path.clone(), operation: "list", source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number = name.to_str().and_then(|n| n.rsplit_once('-')).and_then(|(_, n)| n.parse().ok());
            // Ignore files whose name is not exactly the one of this number.
            found.extend(number.filter(|n| self.file(kind, *n).file_name() == Some(&name)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Creates or truncates a private file.
    pub(super) fn create(path: &Path) -> io::Result<File> {
        private().write(true).create(true).truncate(true).open(path)
    }

    /// Syncs the directory entries.
    pub(super) fn sync(&self) -> Result<(), DataDirError> {
        sync(&self.path).map_err(|source| DataDirError::Io {
            path: self.path.clone(),
            operation: "sync",
            source,
        })
    }

    /// Removes files that a snapshot made obsolete. Files that cannot be removed now are removed after the
    /// next one.
    pub(super) fn remove_before(&self, base: u64) -> Result<(), DataDirError> {
        for kind in [Kind::Log, Kind::Snapshot] {
            for old in self.base_revisions(kind)?.into_iter().filter(|b| *b < base) {
                let path = self.file(kind, old);
                fs::remove_file(&path).map_err(|source| DataDirError::Io {
                    path,
                    operation: "remove",
                    source,
                })?;
            }
        }
        Ok(())
    }
}
