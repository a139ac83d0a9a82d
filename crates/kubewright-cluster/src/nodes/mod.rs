//! Simulated nodes.

pub(crate) mod placement;
