//! What can be wrong with a data directory.

use std::{io, path::PathBuf};

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The system refuses something.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Another server uses the directory.
    #[error("{path} is held by another server; stop it, or choose another --data-dir")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The file is of another release.
    #[error("{path} has format {found}, this release reads format {known}; use the release that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that it says it has.
        found: u16,
        /// The format that is understood.
        known: u16,
    },
    /// The file is damaged in a way that no crash explains.
    #[error(
        "{path} is damaged at byte {offset}: {what}; nothing was changed: restore the directory from a copy, or start with \
         an empty one"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file between two others is not there.
    #[error(
        "{path} holds no log that begins at revision {revision}, and a later one exists; restore the directory from a copy"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
        /// Where the missing log would begin.
        revision: u64,
    },
}

/// Why a write was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// The disk refused it; it is tried again with the next write.
    #[error("the data directory cannot be written: {0}; nothing was acknowledged, try again when it can")]
    Refused(String),
    /// The disk has lost data that it had taken; nothing more is entrusted to it by this process.
    #[error("the data directory has failed: {0}; restart the server to go on from what was acknowledged")]
    Failed(String),
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}
