//! What a type looks like, and everything that needs only that.
//!
//! One model, [`Node`], describes a built-in type ([`Schemas::builtin`]) and a custom resource
//! ([`TypeRef::from_structural`]), so server-side apply, pruning, defaulting and field validation have one engine
//! for both.
//!
//! Pitfall: a structural schema says two different things about unknown fields. Pruning keeps them only below a
//! node that itself sets `x-kubernetes-preserve-unknown-fields`; apply inherits that permission downwards. [`Node`]
//! keeps both answers.

pub mod body;
mod builtin;
pub mod canonical;
pub(crate) mod go;
pub(crate) mod node;
mod structural;
mod table;

pub use builtin::{Definition, Gvk, Prose, Schemas};
pub use node::{
    Child, Field, Kind, List, ListType, Node, Object, PatchStrategy, Presence, Rest, Scalar, TypeRef,
};
pub use structural::SchemaError;
