//! Server-side apply and field management.
//!
//! Every write of an object goes through a [`FieldManager`]: [`FieldManager::apply`] merges a configuration
//! into the live object, [`FieldManager::update`] tracks the changes of a create, an update or any other
//! patch. Both are pure: the time is a parameter, and the result is a new object with
//! `metadata.managedFields`.
//!
//! ```
//! use kubewright_schema::{Gvk, Schemas, apply::{ApplyError, FieldManager}};
//! use serde_json::json;
//!
//! let gvk = Gvk::new("", "v1", "ConfigMap");
//! let schema = Schemas::builtin().lookup(&gvk).unwrap();
//! let fields = FieldManager::new(&schema, &gvk, "2026-01-01T00:00:00Z");
//!
//! let config = |value| json!({
//!     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": value},
//! });
//! let mut live = fields.apply(None, &config("1"), "a", false)?;
//! live["metadata"]["uid"] = "8cb1".into();
//!
//! let refused = fields.apply(Some(&live), &config("2"), "b", false).unwrap_err();
//! assert_eq!(refused.to_string(), r#"Apply failed with 1 conflict: conflict with "a": .data.k"#);
//!
//! let forced = fields.apply(Some(&live), &config("2"), "b", true)?;
//! assert_eq!(forced["metadata"]["managedFields"][0]["manager"], "b");
//! # Ok::<(), ApplyError>(())
//! ```
//!
//! Pitfalls:
//! - Objects of built-in types must be in their canonical form ([`canonical`](crate::canonical)) before
//!   `update` compares them, or empty fields get owners that Kubernetes would not record.
//! - `apply` leaves `null` where everything below a field was removed. Canonicalise and default the result.
//! - A no-op apply keeps the old times; a write whose only change is a time is made a no-op by
//!   [`keep_times_if_unchanged`].

mod error;
mod last_applied;
mod managed;
mod manager;
mod path;
pub mod scale;
mod set;
mod typed;
mod updater;

pub use error::{ApplyError, Conflict, Conflicts};
pub use managed::{ManagedFields, ManagedFieldsError, ManagerId, Operation, OwnedFields};
pub use manager::{FieldManager, keep_times_if_unchanged};
pub use path::{ElementError, PathElement, Scalar};
pub use set::FieldSet;
pub use updater::{Converter, SingleVersion};
