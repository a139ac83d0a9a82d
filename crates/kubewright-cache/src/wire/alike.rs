//! Which object those that come are compared with.

use std::sync::Arc;

use super::pattern::Pattern;

/// How many objects in a row may be unlike the pattern before one of them takes its place. Each time it takes twice as many, so
/// that a cache of objects that are all different has few patterns, and looks for others ever more rarely.
const MISSES: u32 = 8;

/// What a codec knows of the form of its objects.
pub(crate) struct Alike {
    pub(crate) pattern: Option<Arc<Pattern>>,
    /// How many in a row it did not fit.
    misses: u32,
    /// How many it takes for another one.
    patience: u32,
    /// Where scripts are written, one after the other.
    pub(crate) script: Vec<u8>,
    /// Where keys are.
    pub(crate) key: Vec<u8>,
}

impl Default for Alike {
    fn default() -> Self {
        Self { pattern: None, misses: 0, patience: MISSES, script: Vec::new(), key: Vec::new() }
    }
}

impl Alike {
    /// The pattern fitted.
    pub(crate) fn hit(&mut self) {
        self.misses = 0;
    }

    /// There was an object that none fitted. Says whether it should be the next one.
    pub(crate) fn miss(&mut self) -> bool {
        self.misses += 1;
        self.pattern.is_none() || self.misses >= self.patience
    }

    /// From now on this one.
    pub(crate) fn adopt(&mut self, pattern: Pattern) {
        if self.pattern.replace(Arc::new(pattern)).is_some() {
            self.patience = self.patience.saturating_mul(2);
        }
        self.misses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_pattern_is_wanted_at_once_and_another_after_many_that_it_did_not_fit() {
        let mut alike = Alike::default();
        assert!(alike.miss());
        alike.pattern = Some(Arc::new(crate::wire::pattern::tests::any()));
        alike.misses = 0;
        assert_eq!((1..100).find(|_| alike.miss()), Some(MISSES));
        alike.adopt(crate::wire::pattern::tests::any());
        assert_eq!((1..100).find(|_| alike.miss()), Some(2 * MISSES));
        alike.hit();
        assert_eq!((1..100).find(|_| alike.miss()), Some(2 * MISSES));
    }
}
