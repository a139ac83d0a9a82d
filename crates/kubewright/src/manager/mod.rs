//! What runs around the controllers: leader election, health, metrics.

pub mod election;
