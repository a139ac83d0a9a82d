//! The demonstration: a cluster with three nodes and five operators, in one process, to look at.
//!
//! - [`operators`]: who runs, with which definitions and samples;
//! - [`run`](mod@run): from nothing to everything ready, until Ctrl-C;
//! - [`log`]: what happened;
//! - [`view`]: what a person sees;
//! - [`picture`]: the same as an SVG, for the README.
//!
//! It is a program of its own and not a command of `kubewright`: the command should not carry five operators around, and
//! a reader finds here how operators and a cluster are put into one program.

pub mod log;
pub mod operators;
pub mod options;
pub mod picture;
pub mod run;
pub mod view;

pub use options::Options;
pub use run::{DemoError, run};
