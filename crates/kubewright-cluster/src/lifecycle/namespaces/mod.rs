//! The end of a namespace: everything in it is deleted, then the namespace.
//!
//! Pods go first, so that nothing they run on disappears under them; the rest follows in any order. What remains and
//! what holds it is written into the namespace's conditions, and the namespace's own finalizer is released when nothing
//! does.

pub mod conditions;
