//! Events for handlers.

use std::fmt;

use super::object::Lazy;
use kubewright_core::ObjectKey;

/// A change in a cache.
pub enum Event<K> {
    /// An object was added.
    Added {
        /// The object.
        object: Lazy<K>,
        /// Whether it was in the cache when the handler was registered, or in the first list.
        is_in_initial_list: bool,
    },
    /// An object was updated or resynced.
    Updated {
        /// The last state that the handler got.
        old: Lazy<K>,
        /// The new state.
        new: Lazy<K>,
    },
    /// An object was deleted.
    Deleted {
        /// The last known state.
        object: Lazy<K>,
        /// The watch missed the deletion, so the last known state may be stale: client-go's
        /// `DeletedFinalStateUnknown`.
        final_state_unknown: bool,
    },
}

impl<K> Event<K> {
    /// Returns the same event for handlers of another type.
    pub(super) fn cast<L>(self) -> Event<L> {
        match self {
            Self::Added { object, is_in_initial_list } => {
                Event::Added { object: object.cast(), is_in_initial_list }
            }
            Self::Updated { old, new } => Event::Updated { old: old.cast(), new: new.cast() },
            Self::Deleted { object, final_state_unknown } => {
                Event::Deleted { object: object.cast(), final_state_unknown }
            }
        }
    }

    /// The newest state of the object.
    pub fn object(&self) -> &Lazy<K> {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// Returns the type of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added { .. } => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
        }
    }

    /// Returns the key of the object, for a work queue.
    pub fn key(&self) -> ObjectKey {
        self.object().key().clone()
    }

    /// Returns whether nothing changed: a resync, or a relist that found the same version.
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.same_version(new))
    }
}

// Manual, because the derive would require the same of `K`.
impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, is_in_initial_list } => {
                Self::Added { object: object.clone(), is_in_initial_list: *is_in_initial_list }
            }
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted { object, final_state_unknown } => {
                Self::Deleted { object: object.clone(), final_state_unknown: *final_state_unknown }
            }
        }
    }
}

impl<K> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { object, .. } => write!(f, "Added({object:?})"),
            Self::Updated { old, new } => write!(f, "Updated({old:?} → {new:?})"),
            Self::Deleted { object, .. } => write!(f, "Deleted({object:?})"),
        }
    }
}
