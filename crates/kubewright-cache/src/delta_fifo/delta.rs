//! Deltas of objects.

use kubewright_core::ObjectKey;

/// One change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta<T> {
    /// The object was added.
    Added(T),
    /// The object was updated.
    Updated(T),
    /// The object is in a new list; it may be unchanged.
    Replaced(T),
    /// The object is resynced, without a change.
    Sync(T),
    /// The object was deleted.
    Deleted {
        /// The last known state.
        object: T,
        /// The watch missed the deletion, so the last known state may be stale: a tombstone, client-go's
        /// `DeletedFinalStateUnknown`.
        final_state_unknown: bool,
    },
}

impl<T> Delta<T> {
    /// Returns the object.
    pub fn object(&self) -> &T {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                object
            }
            Self::Deleted { object, .. } => object,
        }
    }

    /// Returns the type of the delta, as client-go prints it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added(_) => "Added",
            Self::Updated(_) => "Updated",
            Self::Replaced(_) => "Replaced",
            Self::Sync(_) => "Sync",
            Self::Deleted { .. } => "Deleted",
        }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Delta<U> {
        match self {
            Self::Added(object) => Delta::Added(change(object)),
            Self::Updated(object) => Delta::Updated(change(object)),
            Self::Replaced(object) => Delta::Replaced(change(object)),
            Self::Sync(object) => Delta::Sync(change(object)),
            Self::Deleted { object, final_state_unknown } => {
                Delta::Deleted { object: change(object), final_state_unknown }
            }
        }
    }

    pub(super) fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

/// All deltas of one object, oldest first, as popped from the queue.
#[derive(Debug, Clone)]
pub struct Deltas<T> {
    /// The key of the object.
    pub key: ObjectKey,
    /// The deltas, oldest first; never empty.
    pub deltas: Vec<Delta<T>>,
    /// Whether the object was part of the first list.
    pub is_in_initial_list: bool,
}
