//! The garbage collector: objects go when their owners have gone.
//!
//! - [`graph`]: who owns whom, over every kind that the server serves.
//! - [`judge`]: what is to be done with an object whose owners' state is known.

pub mod graph;
pub mod judge;
