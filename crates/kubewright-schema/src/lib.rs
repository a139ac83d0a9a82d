#![doc = include_str!("../README.md")]
//!
//! Type schemas and the operations that need nothing else: decoding, canonical form, pruning, defaulting,
//! validation.
//!
//! One model, [`Node`], describes built-in types ([`Schemas::builtin`]) and custom resources
//! ([`TypeRef::from_structural`]), so server-side apply, pruning, defaulting and field validation have one
//! engine for both.
//!
//! | you have | you want | use |
//! |---|---|---|
//! | a request body | a value, its repeated keys and unknown fields | [`body::decode`] |
//! | an object of a built-in type | the form in which Go writes it | [`canonical::canonicalise`] |
//! | a custom resource | unknown fields removed | [`prune::prune`] |
//! | a custom resource | defaults set | [`default::apply_defaults`] |
//! | a custom resource | the errors of its schema | [`validate::Validator`], [`lists::validate`] |
//!
//! Pitfall: a structural schema has two rules for unknown fields. Pruning keeps them only below a node that
//! itself sets `x-kubernetes-preserve-unknown-fields`; apply inherits that permission downwards. [`Node`]
//! stores both.

pub mod apply;
pub mod body;
mod builtin;
pub mod canonical;
pub mod default;
pub mod dns;
pub mod field;
pub mod field_path;
mod fields;
pub mod go;
pub mod lists;
pub mod names;
mod node;
pub mod patch;
pub mod props;
pub mod protobuf;
pub mod prune;
pub mod quantity;
mod structural;
mod table;
pub mod time;
pub mod validate;

pub use builtin::{Definition, Gvk, Schemas};
pub use fields::Fields;
pub use node::{
    AdditionalProperties, Child, Field, Kind, List, ListType, Node, Object, PatchStrategy, Presence, Scalar,
    TypeRef, Wire, WireForm,
};
pub use structural::SchemaError;
