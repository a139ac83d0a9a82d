//! The operator in a cluster with three nodes: its schedule, and interference by users and faults.

mod by_hand;
mod by_the_clock;
mod support;
