//! What can happen to an object.

use kubewright_core::ObjectKey;

/// One thing that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta<T> {
    /// It appeared.
    Added(T),
    /// It changed.
    Updated(T),
    /// A new list has it; whether it changed is not known.
    Replaced(T),
    /// Nothing happened; it is time to look again.
    Sync(T),
    /// It is gone.
    Deleted {
        /// The last state that was seen.
        object: T,
        /// The watch missed the deletion, so the object may have changed once more before it went. This is what
        /// client-go calls `DeletedFinalStateUnknown`.
        final_state_unknown: bool,
    },
}

impl<T> Delta<T> {
    /// The object, as of this delta.
    pub fn object(&self) -> &T {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                object
            }
            Self::Deleted { object, .. } => object,
        }
    }

    /// The name of the kind of delta, as client-go prints it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added(_) => "Added",
            Self::Updated(_) => "Updated",
            Self::Replaced(_) => "Replaced",
            Self::Sync(_) => "Sync",
            Self::Deleted { .. } => "Deleted",
        }
    }

    pub(super) fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

/// All deltas of one object, oldest first, as they leave the queue.
#[derive(Debug, Clone)]
pub struct Deltas<T> {
    /// Which object.
    pub key: ObjectKey,
    /// What happened to it, oldest first; never empty.
    pub deltas: Vec<Delta<T>>,
    /// Whether the object was part of the first list.
    pub is_in_initial_list: bool,
}
