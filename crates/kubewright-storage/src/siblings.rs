//! Objects that one owner has made resemble each other: the pods of a replica set differ in names, addresses and times.
//! The first of them is kept as it is, and the others as what [`difference`] there is.
//!
//! The first one stays for as long as one that is told by it, even when it is changed or deleted. One that differs too
//! much is kept as it is, and those that come after it are compared with it.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use kubewright_difference as difference;
use parking_lot::Mutex;

use super::object::Draft;

/// Smaller objects are not worth the words about them.
const SMALLEST: usize = 1024;

/// A text that others can be told by.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) text: Bytes,
    /// Made when there is a second object: most owners have only one.
    index: OnceLock<difference::Index>,
}

impl Base {
    pub(super) fn new(text: Bytes) -> Self {
        Self { text, index: OnceLock::new() }
    }
}

/// A text that is told by another.
#[derive(Debug, Clone)]
pub(super) struct Told {
    base: Arc<Base>,
    script: Arc<[u8]>,
}

impl Told {
    pub(super) fn pieces(&self, piece: impl FnMut(&[u8])) {
        difference::pieces(&self.base.text, &self.script, piece);
    }
}

/// How an object is to be kept.
pub(super) enum Form {
    /// As it is.
    Whole,
    /// As it is, and others by it: those of this family.
    First(String),
    /// By another one.
    Told(Told),
}

/// The first objects of all owners.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    families: Mutex<Families>,
}

#[derive(Debug, Default)]
struct Families {
    first: HashMap<String, Weak<Base>>,
    /// When to look for those that are gone.
    tidy_at: usize,
}

impl Siblings {
    /// How to keep an object.
    pub(super) fn form(&self, resource: &str, draft: &Draft) -> Form {
        let text = draft.text();
        let Some(owner) = draft.owner() else { return Form::Whole };
        if !(SMALLEST..difference::LONGEST).contains(&text.len()) {
            return Form::Whole;
        }
        let family = format!("{resource}/{owner}");
        let base = self.families.lock().first.get(&family).and_then(Weak::upgrade);
        let Some(base) = base else { return Form::First(family) };
        let index = base.index.get_or_init(|| difference::Index::of(&base.text));
        let most = text.len() / 2;
        let mut script = Vec::with_capacity(most.min(2048));
        if difference::script(&base.text, index, text, most, &mut script) {
            Form::Told(Told { script: script.into(), base })
        } else {
            Form::First(family)
        }
    }

    /// From now on the objects of a family are told by this one.
    pub(super) fn lead(&self, family: String, base: &Arc<Base>) {
        let mut families = self.families.lock();
        if families.first.len() >= families.tidy_at {
            families.first.retain(|_, base| base.strong_count() > 0);
            families.tidy_at = 2 * families.first.len() + SMALLEST;
        }
        families.first.insert(family, Arc::downgrade(base));
    }
}
