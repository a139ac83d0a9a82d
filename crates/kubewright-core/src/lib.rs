#![doc = include_str!("../README.md")]
//!
//! Vocabulary that all crates of kubewright share: keys, clocks, randomness, back-off, and how errors print. No I/O.
//!
//! Operators use these through the `kubewright` façade, which re-exports them at its root.

mod backoff;
mod clock;
pub mod error;
mod key;
pub mod object;
mod quantity;
mod random;
pub mod reference;
pub mod series;

pub use backoff::Backoff;
pub use clock::Clock;
pub use error::panic_message;
pub use key::{KeyError, ObjectKey};
pub use object::Object;
pub use quantity::{Notation, Quantity, QuantityError};
pub use random::Random;
