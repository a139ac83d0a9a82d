//! Recoverable errors of caches.

use std::{fmt, sync::Arc};

use super::{index::IndexError, list_watch::ListWatchError, object::DecodeError};
use kubewright_core::ObjectKey;

/// An error that a cache recovered from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An object does not decode. It stays in the cache; only reading it fails. Reported once per version.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// An object cannot be cached: no metadata, no name, or another kind. It was skipped.
    #[error("skipped an object{}: {reason}", .key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default())]
    Unusable {
        /// The key, as far as known.
        key: Option<ObjectKey>,
        /// The reason.
        reason: String,
    },
    /// A list or a watch failed. The reflector retries it.
    #[error(transparent)]
    ListWatch(#[from] ListWatchError),
    /// An index function failed. The object is in the cache but not in that index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A handler panicked. It gets the next event all the same.
    #[error("an event handler panicked on {key}: {message}")]
    HandlerPanicked {
        /// The object of the event.
        key: ObjectKey,
        /// The message of the panic.
        message: String,
    },
}

/// Handler of faults; the default logs them.
#[derive(Clone)]
pub(crate) struct Faults(Arc<dyn Fn(&Fault) + Send + Sync>);

impl Faults {
    pub(crate) fn new(handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    pub(crate) fn report(&self, fault: &Fault) {
        (self.0)(fault);
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::new(|fault| tracing::warn!(target: "kubewright::cache", "{fault}"))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}
