//! From the bytes of a response to cached objects: splitting, cutting, packing.

pub(crate) mod alike;
pub(crate) mod codec;
pub(crate) mod common;
pub(crate) mod hot;
pub(crate) mod meta;
pub(crate) mod pack;
pub(crate) mod pattern;
mod roles;
pub(crate) mod scan;
pub(crate) mod split;
