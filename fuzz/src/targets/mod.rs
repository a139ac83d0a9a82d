//! Fuzz targets, one module each, with a function `run` that takes arbitrary bytes.

#![expect(clippy::missing_panics_doc, reason = "a target panics when it has found something")]

pub mod body;
pub mod cache_wire;
pub mod cel;
pub mod custom_resources;
pub mod patches;
pub mod protobuf_decode;
pub mod requests;
pub mod scheme_decode;
pub mod selectors;

/// A target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: [Target; 9] = [
    ("body", body::run),
    ("cache_wire", cache_wire::run),
    ("cel", cel::run),
    ("custom_resources", custom_resources::run),
    ("patches", patches::run),
    ("protobuf_decode", protobuf_decode::run),
    ("requests", requests::run),
    ("scheme_decode", scheme_decode::run),
    ("selectors", selectors::run),
];
