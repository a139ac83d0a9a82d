#![doc = include_str!("../README.md")]
//!
//! Caches that follow the API server: informers and the boxes they are made of.
//!
//! ```text
//!  ListWatch ──▶ Reflector ──deltas──▶ DeltaFifo ──pop──▶ Store with indexes ──events──▶ handlers
//! ```
//!
//! **Which one do I want?**
//! - [`Caches`]: what a manager and its controllers read from; made by kind when first asked for.
//! - [`InformerFactory`]: several kinds in one program without a manager. Start here.
//! - [`SharedInformer`]: one kind, any number of handlers and indexes.
//! - [`Informer`], [`Controller`]: one kind, one handler on the same task; for those who want the parts.
//! - [`Reflector`] with a [`Store`] or a [`DeltaFifo`]: a mirror, with a loop of your own behind it.
//! - [`ListWatch`]: one list, one watch; what happens when they end is your business.
//!
//! Other stores, for programs that feed them themselves: [`ThreadSafeStore`] (keys from outside), [`Fifo`] (latest object
//! only), [`Heap`] (by priority), [`ExpirationCache`] (with an end), [`UndeltaStore`] (every change pushes the whole
//! state).
//!
//! What is in a cache is a [`Lazy`] object: its metadata is at hand, the rest is decoded when it is read. Objects are
//! kept [packed](Form::Packed) unless [decoded](Form::Decoded) ones are asked for, and without `managedFields` unless
//! [they are wanted](ListWatch::keep_managed_fields).
//!
//! **Pitfalls**
//! - A cache is a little behind the server. After a write, read with [`SharedInformer::get_at_least`].
//! - A handle to an object does not change with the cache; get it again for the present state.
//! - Handlers must be quick or hand their work to a work queue. A slow one gets merged events.
//! - Reading a packed object is many small allocations. In a large cache glibc's allocator doubles the time of each; give
//!   the program another one (docs/performance.md has the numbers for mimalloc; with its features `no_thp`, `override`
//!   and `v2` a program with 10,000 Pods takes 24 MB instead of 62).
//! - What cannot be decoded stays in the cache; reading it gives an error and reports a [`Fault`] once.

mod buffer;
mod caches;
mod controller;
mod delta_fifo;
mod event;
mod expiration_cache;
mod factory;
mod fault;
mod field_index;
mod fifo;
mod heap;
mod index;
mod kind_cache;
mod list;
mod list_watch;
mod lister;
mod object;
mod processor;
mod reference;
mod reflector;
mod reflector_store;
mod request;
mod running;
mod shared_informer;
mod store;
mod thread_safe_store;
mod together;
mod turns;
mod undelta_store;
mod watch;
mod wire;

pub use caches::{CacheOptions, Caches, TooLate};
pub use controller::{Controller, Informer};
pub use delta_fifo::{Delta, DeltaFifo, Deltas};
pub use event::Event;
pub use expiration_cache::ExpirationCache;
pub use factory::{FactoryError, InformerFactory};
pub use fault::Fault;
pub use field_index::{FieldIndex, IndexRef};
pub use fifo::{Fifo, Popped};
pub use heap::{Heap, HeapError};
pub use index::{IndexError, IndexFn, IndexValues, IntoIndexValues, NAMESPACE_INDEX};
pub use kind_cache::Gone;
pub use kind_cache::KindCache;
pub use list_watch::{Failure, ListWatch, ListWatchError, WatchEvent, WatchStream};
pub use lister::{Lister, NamespaceLister};
pub use lister::{matches, matching};
pub use object::{DecodeError, Lazy, Owner};
pub use processor::{Registration, Subscription};
pub use reflector::{Position, Reflector};
pub use reflector_store::{ReflectorStore, Replacement};
pub use running::Running;
pub use shared_informer::{ReadError, SharedInformer};
pub use store::{Indexer, KeyFn, Store};
pub use thread_safe_store::{StoreError, ThreadSafeStore};
pub use undelta_store::UndeltaStore;
pub use wire::codec::Form;
pub use wire::scan::without_managed_fields;
