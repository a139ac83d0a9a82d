#![doc = include_str!("../README.md")]
//!
//! Caches of API objects: informers and their components.
//!
//! ```text
//!  ListWatch ──▶ Reflector ──deltas──▶ DeltaFifo ──pop──▶ Store with indexes ──events──▶ handlers
//! ```
//!
//! **Which one to use**
//! - [`Caches`]: the caches of a manager and its controllers, by kind, created on first use.
//! - [`InformerFactory`]: several kinds in a program without a manager. Start here.
//! - [`SharedInformer`]: one kind, any number of handlers and indexes.
//! - [`Informer`], [`Controller`]: one kind, one handler on the same task; building blocks.
//! - [`Reflector`] with a [`Store`] or a [`DeltaFifo`]: a mirror, with a loop of your own behind it.
//! - [`ListWatch`]: single lists and watches, without any retry.
//!
//! Other stores, for programs that fill them themselves: [`ThreadSafeStore`] (explicit keys), [`Fifo`]
//! (latest object only), [`Heap`] (by priority), [`ExpirationCache`] (with a TTL), [`UndeltaStore`] (every
//! change pushes the whole state).
//!
//! Cached objects are [`Lazy`]: metadata is available at once, the rest is decoded on read. Objects are
//! stored [packed](Form::Packed) unless [decoded](Form::Decoded) is set, and without `managedFields` unless
//! [they are kept](ListWatch::keep_managed_fields).
//!
//! **Pitfalls**
//! - A cache is slightly behind the server. After a write, read with [`SharedInformer::get_at_least`].
//! - A handle to an object does not change with the cache; get it again for the current state.
//! - Handlers must be fast or use a work queue. Events of a slow handler are coalesced.
//! - Decoding a packed object makes many small allocations. In a large cache glibc's allocator doubles the
//!   time of each; use another one (docs/performance.md has the numbers for mimalloc; with its features
//!   `no_thp`, `override` and `v2` a program with 10,000 Pods takes 24 MB instead of 62).
//! - An object that does not decode stays in the cache; reading it is an error and reports a [`Fault`] once.

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

pub use caches::{CacheInUseError, CacheOptions, Caches};
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
pub use kind_cache::KindCache;
/// Used by the cached client of `kubewright-runtime`.
#[doc(hidden)]
pub use kind_cache::RecordedDeletion;
pub use list_watch::{ListWatch, ListWatchError, ListWatchErrorKind, WatchEvent, WatchStream};
pub use lister::{Lister, NamespaceLister};
/// Used by the cached client and the predicates of `kubewright-runtime`.
#[doc(hidden)]
pub use lister::{filter_by_labels, matches_expression};
pub use object::{DecodeError, Lazy, ObjectError, Owner};
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
