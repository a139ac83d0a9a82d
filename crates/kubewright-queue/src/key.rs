//! What can be a key.

use std::hash::Hash;

/// What a work queue can hold: small values that name work, such as [`ObjectKey`](kubewright_core::ObjectKey).
///
/// Implemented for everything that fits; there is nothing to implement by hand.
pub trait WorkKey: Clone + Eq + Hash + Send + 'static {}

impl<T: Clone + Eq + Hash + Send + 'static> WorkKey for T {}
