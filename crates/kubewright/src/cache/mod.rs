//! Stores of objects by key.

mod expiration_cache;
mod fifo;
mod heap;
mod undelta_store;

pub use expiration_cache::ExpirationCache;
pub use fifo::{Fifo, Popped};
pub use heap::{Heap, HeapError};
pub use undelta_store::UndeltaStore;
