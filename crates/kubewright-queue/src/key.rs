//! Bounds of keys.

use std::hash::Hash;

/// Key of a work queue: a small value that identifies work, such as [`ObjectKey`](kubewright_core::ObjectKey).
///
/// Implemented for every type that meets the bounds.
pub trait WorkKey: Clone + Eq + Hash + Send + 'static {}

impl<T: Clone + Eq + Hash + Send + 'static> WorkKey for T {}
