//! Limits for one document.

/// Limits for one document, so that no input can exhaust memory or stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum bytes of one document, and maximum bytes that its aliases may add.
    pub(super) bytes: usize,
    /// Maximum nesting of mappings and sequences.
    pub(super) depth: usize,
}

impl Limits {
    /// Deeper nesting could overflow a small stack in the recursion of the types' deserializers.
    pub(super) const MAX_DEPTH: usize = 128;
}

impl Default for Limits {
    /// The API server rejects requests above 3 MiB, so every object is smaller; 16 MiB leave room for `kind:
    /// List` documents. No built-in type nests deeper than about 40 levels, CRD schemas reach 60.
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, depth: Self::MAX_DEPTH }
    }
}
