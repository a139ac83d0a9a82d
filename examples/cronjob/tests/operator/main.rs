//! The operator in a cluster with three nodes: what it does by the clock, and what people and accidents do to it.

mod by_hand;
mod by_the_clock;
mod support;
