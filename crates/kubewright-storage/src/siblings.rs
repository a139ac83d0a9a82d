//! Delta encoding of objects with the same owner: the pods of a replica set differ in names, addresses and
//! times.
//!
//! The first object of an owner is stored whole as the base, the others as a [`difference`] from it.
//!
//! A base lives as long as a delta refers to it, even after the object itself was changed or deleted. An
//! object that differs too much is stored whole and becomes the base of the following ones.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use kubewright_difference as difference;
use parking_lot::Mutex;

use super::object::Draft;

/// Minimum size of delta-encoded objects.
const MIN_DELTA_SIZE: usize = 1024;
/// Minimum number of new bases between two sweeps of dead ones.
const MIN_SWEEP: usize = 1024;

/// Text that deltas refer to.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) text: Bytes,
    /// Built when there is a second object: most owners have only one.
    index: OnceLock<difference::Index>,
}

impl Base {
    pub(super) fn new(text: Bytes) -> Self {
        Self { text, index: OnceLock::new() }
    }
}

/// Text stored as the difference from a base.
#[derive(Debug, Clone)]
pub(super) struct Delta {
    base: Arc<Base>,
    script: Arc<[u8]>,
}

impl Delta {
    pub(super) fn for_each_chunk(&self, chunk: impl FnMut(&[u8])) {
        difference::pieces(&self.base.text, &self.script, chunk);
    }
}

/// Encoding of a stored object.
pub(super) enum Encoding {
    /// Stored whole.
    Whole,
    /// Stored whole as the new base of its siblings, by this key.
    NewBase(String),
    /// Delta against the base of its siblings.
    Delta(Delta),
}

/// Bases of all owners.
#[derive(Debug, Default)]
pub(super) struct Bases {
    by_owner: Mutex<BasesByOwner>,
}

#[derive(Debug, Default)]
struct BasesByOwner {
    bases: HashMap<String, Weak<Base>>,
    /// Number of entries at which dead ones are swept.
    sweep_at: usize,
}

impl Bases {
    /// Chooses the encoding of an object.
    pub(super) fn encoding(&self, resource: &str, draft: &Draft) -> Encoding {
        let text = draft.text();
        let Some(owner) = draft.owner() else { return Encoding::Whole };
        if !(MIN_DELTA_SIZE..difference::LONGEST).contains(&text.len()) {
            return Encoding::Whole;
        }
        let owner = format!("{resource}/{owner}");
        let base = self.by_owner.lock().bases.get(&owner).and_then(Weak::upgrade);
        let Some(base) = base else { return Encoding::NewBase(owner) };
        let index = base.index.get_or_init(|| difference::Index::of(&base.text));
        let most = text.len() / 2;
        let mut script = Vec::with_capacity(most.min(2048));
        if difference::script(&base.text, index, text, most, &mut script) {
            Encoding::Delta(Delta { script: script.into(), base })
        } else {
            Encoding::NewBase(owner)
        }
    }

    /// Makes an object the base of its siblings.
    pub(super) fn set_base(&self, owner: String, base: &Arc<Base>) {
        let mut by_owner = self.by_owner.lock();
        if by_owner.bases.len() >= by_owner.sweep_at {
            by_owner.bases.retain(|_, base| base.strong_count() > 0);
            by_owner.sweep_at = 2 * by_owner.bases.len() + MIN_SWEEP;
        }
        by_owner.bases.insert(owner, Arc::downgrade(base));
    }
}
