//! What handlers are told.

use std::fmt;

use super::object::Lazy;
use kubewright_core::ObjectKey;

/// A change in a cache.
pub enum Event<K> {
    /// An object is there that was not before.
    Added {
        /// The object.
        object: Lazy<K>,
        /// Whether it was there when the handler began, rather than created since.
        is_in_initial_list: bool,
    },
    /// An object changed, or it is time to look at it again.
    Updated {
        /// What the handler was last told of.
        old: Lazy<K>,
        /// What it is now.
        new: Lazy<K>,
    },
    /// An object is gone.
    Deleted {
        /// The last state that was seen.
        object: Lazy<K>,
        /// The deletion itself was missed, so the object may have changed once more before it went.
        final_state_unknown: bool,
    },
}

impl<K> Event<K> {
    /// The newest state of the object that the event is about.
    pub fn object(&self) -> &Lazy<K> {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// What happened, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added { .. } => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
        }
    }

    /// The key of the object: what goes into a work queue.
    pub fn key(&self) -> ObjectKey {
        self.object().key().clone()
    }

    /// Whether nothing changed: the periodic look, or a list that found the object as it was.
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.same_version(new))
    }
}

// By hand, because deriving would ask the same of `K`.
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
