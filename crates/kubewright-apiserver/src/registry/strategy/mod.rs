//! What differs between types in behaviour: small functions, chosen by group and kind.
//!
//! A [`Strategy`] is plain functions on JSON objects. Everything else about a type is data in its descriptor.

pub mod service;

use super::{
    descriptor::Json,
    validation::{Errors, names::NameRule},
};

/// What a strategy may know of the request while an object is prepared.
#[derive(Debug)]
pub struct Preparing<'a> {
    /// The moment, as `metadata` writes it.
    pub now: &'a str,
    /// Who asks.
    pub user: &'a crate::authn::User,
}

/// The functions of a type. The default ones do nothing.
#[derive(Debug)]
pub struct Strategy {
    /// The rule for names.
    pub names: NameRule,
    /// Fills in what the client left out.
    pub default: fn(&mut Json),
    /// Sets and drops what the client may not decide when creating.
    pub prepare_create: fn(&mut Json, &Preparing<'_>),
    /// The same when replacing: the new object, the old one.
    pub prepare_update: fn(&mut Json, &Json),
    /// The same for `/status`, where everything but the status comes from the old object already.
    pub prepare_status: fn(&mut Json, &Json),
    /// Checks a new object.
    pub validate: fn(&Json, &mut Errors),
    /// Checks a change: the new object, the old one.
    pub validate_update: fn(&Json, &Json, &mut Errors),
    /// Checks a change of `/status`.
    pub validate_status: fn(&Json, &Json, &mut Errors),
    /// Warnings for the client about a new or changed object.
    pub warnings: fn(&Json, &mut Vec<String>),
}

fn nothing(_: &mut Json) {}
fn nothing_created(_: &mut Json, _: &Preparing<'_>) {}
fn nothing_updated(_: &mut Json, _: &Json) {}
fn no_checks(_: &Json, _: &mut Errors) {}
fn no_update_checks(_: &Json, _: &Json, _: &mut Errors) {}
fn no_warnings(_: &Json, _: &mut Vec<String>) {}

/// What types do that have nothing of their own.
pub const PLAIN: Strategy = Strategy {
    names: NameRule::Subdomain,
    default: nothing,
    prepare_create: nothing_created,
    prepare_update: nothing_updated,
    prepare_status: nothing_updated,
    validate: no_checks,
    validate_update: no_update_checks,
    validate_status: no_update_checks,
    warnings: no_warnings,
};

/// The strategy of a built-in type.
pub fn of(group: &str, kind: &str) -> &'static Strategy {
    static PLAIN_TYPE: Strategy = PLAIN;
    let _ = (group, kind);
    &PLAIN_TYPE
}
