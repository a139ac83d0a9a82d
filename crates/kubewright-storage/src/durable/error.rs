//! Data directory and write errors.

use std::{io, path::PathBuf};

/// Error opening or using a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// An I/O operation failed.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another server uses the directory.
    #[error("{path} is held by another server; stop it, or choose another --data-dir")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The file has the format of another release.
    #[error("{path} has format {found}, this release reads format {known}; use the release that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u16,
        /// The supported format.
        known: u16,
    },
    /// The file is damaged in a way that a crash cannot cause.
    #[error(
        "{path} is damaged at byte {offset}: {what}; nothing was changed: restore the directory from a copy, or start with \
         an empty one"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The offset of the damage.
        offset: u64,
        /// The kind of damage.
        what: String,
    },
    /// A log file is missing.
    #[error(
        "{path} holds no log that begins at revision {revision}, and a later one exists; restore the directory from a copy"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
        /// The revision at which the missing log would begin.
        revision: u64,
    },
}

/// Error storing a write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The disk refused the write; it is retried with the next one.
    #[error("the data directory cannot be written: {0}; nothing was acknowledged, try again when it can")]
    Refused(String),
    /// A sync failed, so the disk may have lost data; this process writes nothing more to it.
    #[error("the data directory has failed: {0}; restart the server to go on from what was acknowledged")]
    Failed(String),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
}
