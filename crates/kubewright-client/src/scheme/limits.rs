//! How much one document may ask of the reader.

/// Bounds for one document, so that no input can make the reader use memory or stack without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of one document, and bytes that its aliases may add to it.
    pub(super) bytes: usize,
    /// Levels of mappings and sequences inside each other.
    pub(super) depth: usize,
}

impl Limits {
    /// Deeper than this, the recursion of the types' own deserializers could meet the end of a small stack.
    pub(super) const MAX_DEPTH: usize = 128;
}

impl Default for Limits {
    /// The API server refuses requests above 3 MiB, and every object is smaller than that; 16 MiB leave room for
    /// `kind: List` documents. No built-in type nests deeper than about 40 levels, CRD schemas reach 60.
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, depth: Self::MAX_DEPTH }
    }
}
