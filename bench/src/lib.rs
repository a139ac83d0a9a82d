//! Shared pieces of the benchmarks.
//!
//! A *contestant* is a program, ours or a peer's, that does the workloads named on its command line and prints a JSON
//! [`Line`] for each. Ours are the binaries of this crate and print with [`measure`]; the peers live in `peers/`, outside
//! of the workspace. The `compare` binary runs contestants in turns and prints a table with ratios, see [`compare`]. A new
//! benchmark is a new pair of programs and three lines in the Makefile.

pub mod compare;
mod line;

pub use line::{Line, measure};
