//! Demo: a cluster with three nodes and five operators in one process.
//!
//! - [`operators`]: the operators with their definitions and samples;
//! - [`run`](mod@run): starts everything and shows it until Ctrl-C;
//! - [`log`]: the log;
//! - [`view`]: the screen;
//! - [`picture`]: the screen as an SVG, for the README.
//!
//! It is a program of its own and not a command of `kubewright`, which should not contain five operators. It
//! also shows how to combine operators and a cluster in one program.

pub mod log;
pub mod operators;
pub mod options;
pub mod picture;
pub mod run;
pub mod view;

pub use options::Options;
pub use run::{DemoError, run};
