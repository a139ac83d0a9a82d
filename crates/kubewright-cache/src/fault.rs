//! What goes wrong while a cache follows the API server, and who is told.

use std::{fmt, sync::Arc};

use super::{index::IndexError, list_watch::ListWatchError, object::DecodeError};
use kubewright_core::ObjectKey;

/// Something that went wrong and that the cache carried on from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An object does not fit the Rust type. It stays in the cache; only reading it fails. Reported once per version.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// Something arrived that no cache can hold: no metadata, no name, or another kind. It was passed over.
    #[error("passed over an object{}: {reason}", .key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default())]
    Unusable {
        /// Which object, as far as it says.
        key: Option<ObjectKey>,
        /// What is wrong with it.
        reason: String,
    },
    /// A list or a watch failed. The reflector tries again by itself.
    #[error(transparent)]
    ListWatch(#[from] ListWatchError),
    /// An index function failed. The object is in the cache but not in that index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A handler panicked. It gets the next event all the same.
    #[error("an event handler panicked on {key}: {message}")]
    HandlerPanicked {
        /// The object whose event it was handling.
        key: ObjectKey,
        /// What the panic said.
        message: String,
    },
}

/// Tells whoever wants to know; by default, the log.
#[derive(Clone)]
pub(crate) struct Faults(Arc<dyn Fn(&Fault) + Send + Sync>);

impl Faults {
    pub(crate) fn to(handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    pub(crate) fn report(&self, fault: &Fault) {
        (self.0)(fault);
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::to(|fault| tracing::warn!(target: "kubewright::cache", "{fault}"))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}
