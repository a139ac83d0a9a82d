//! The directory: its lock and the names in it.
//!
//! | name | what |
//! |---|---|
//! | `lock` | held while a server runs |
//! | `log-N` | writes after revision N |
//! | `snapshot-N` | everything at revision N |
//! | `identity.json` | keys and certificates |
//! | `*.new` | something that was never finished |

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{error::DataDirError, frame::Kind};

/// A directory that this process alone uses.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The lock lives as long as the file is open, and no longer than the process.
    _lock: File,
}

/// Opens a file that only its owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Makes the names in a directory durable.
fn sync(path: &Path) -> io::Result<()> {
    // Elsewhere directories cannot be opened, and renames are durable by themselves.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Puts a file in place as a whole: after a crash it is the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync)
}

impl Directory {
    /// Makes the directory when it is not there, and takes it for this process.
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

    /// The name of a file. Numbers have leading zeros, so that `ls` shows them in order.
    pub(super) fn file(&self, kind: Kind, base: u64) -> PathBuf {
        let kind = match kind {
            Kind::Log => "log",
            Kind::Snapshot => "snapshot",
        };
        self.path.join(format!("{kind}-{base:020}"))
    }

    /// The base revisions of the files of a kind, in order.
    pub(super) fn bases(&self, kind: Kind) -> Result<Vec<u64>, DataDirError> {
        let io = |source| DataDirError::Io { path: self.path.clone(), operation: "list", source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number = name.to_str().and_then(|n| n.rsplit_once('-')).and_then(|(_, n)| n.parse().ok());
            // The name must be the one that the number has here, or it is nobody's file.
            found.extend(number.filter(|n| self.file(kind, *n).file_name() == Some(&name)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// A new, private file; one that is there already is emptied.
    pub(super) fn create(path: &Path) -> io::Result<File> {
        private().write(true).create(true).truncate(true).open(path)
    }

    /// Makes the names in the directory durable.
    pub(super) fn sync(&self) -> Result<(), DataDirError> {
        sync(&self.path).map_err(|source| DataDirError::Io {
            path: self.path.clone(),
            operation: "sync",
            source,
        })
    }

    /// Removes files that a snapshot has made superfluous. What cannot be removed now is removed after the next one.
    pub(super) fn forget_before(&self, base: u64) -> Result<(), DataDirError> {
        for kind in [Kind::Log, Kind::Snapshot] {
            for old in self.bases(kind)?.into_iter().filter(|b| *b < base) {
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
