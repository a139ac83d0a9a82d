//! Vocabulary that all crates of kubewright share: keys, clocks, randomness, back-off, and how errors print.
//! No I/O.
//!
//! ```
//! use kubewright_core::ObjectKey;
//!
//! let key: ObjectKey = "kube-system/coredns".parse()?;
//! assert_eq!((key.namespace(), key.name()), (Some("kube-system"), "coredns"));
//! # Ok::<(), kubewright_core::KeyError>(())
//! ```
//!
//! Operators use these through the `kubewright` façade, which re-exports them at its root.

mod backoff;
mod clock;
pub mod error;
mod key;
pub mod object;
mod random;
pub mod reference;
pub mod series;

pub use backoff::Backoff;
pub use clock::Clock;
pub use error::panic_message;
pub use key::{KeyError, ObjectKey};
pub use object::Object;
pub use random::Random;
