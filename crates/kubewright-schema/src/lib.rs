#![doc = include_str!("../README.md")]
//!
//! What a type looks like, and everything that needs only that.
//!
//! One model, [`Node`], describes a built-in type ([`Schemas::builtin`]) and a custom resource
//! ([`TypeRef::from_structural`]), so server-side apply, pruning, defaulting and field validation have one engine
//! for both.
//!
//! | you have | you want | use |
//! |---|---|---|
//! | a request body | a value, its repeated keys and unknown fields | [`body::decode`] |
//! | an object of a built-in type | the form in which Go writes it | [`canonical::canonicalise`] |
//! | a custom resource | unknown fields removed | [`prune::prune`] |
//! | a custom resource | defaults filled in | [`default::apply_defaults`] |
//! | a custom resource | the errors of its schema | [`validate::Validator`], [`lists::validate`] |
//!
//! Pitfall: a structural schema says two different things about unknown fields. Pruning keeps them only below a
//! node that itself sets `x-kubernetes-preserve-unknown-fields`; apply inherits that permission downwards. [`Node`]
//! keeps both answers.

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
    Child, Field, Kind, List, ListType, Node, Object, PatchStrategy, Presence, Rest, Scalar, TypeRef, Wire,
    WireForm,
};
pub use structural::SchemaError;
