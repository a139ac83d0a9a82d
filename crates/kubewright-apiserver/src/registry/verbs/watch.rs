//! The verb watch: where the stream begins and what it shows. The stream itself is [`crate::watch`].

use std::sync::Arc;

use super::options::{ListOptions, Selection};
use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
        schematic,
    },
    status::Status,
    storage::{Cursor, Object},
};

/// A watch, before its stream is started.
#[derive(Debug)]
pub(crate) struct WatchAnswer {
    /// The version to show objects in.
    pub(crate) ty: Arc<Descriptor>,
    /// Initial objects, sent as ADDED.
    pub(crate) initial: Vec<Arc<Object>>,
    /// Whether a bookmark marks the end of the initial objects.
    pub(crate) marks_initial_end: bool,
    /// The changes after that, or the 410 of a revision whose history is gone.
    pub(crate) cursor: Result<Cursor, Status>,
    /// The selected objects.
    pub(crate) selection: Selection,
    /// The namespace; empty for all.
    pub(crate) namespace: String,
    /// Whether to send bookmarks.
    pub(crate) bookmarks: bool,
    /// How long the watch lasts.
    pub(crate) timeout: std::time::Duration,
    /// The object that bookmarks carry, without metadata.
    pub(crate) empty: crate::registry::descriptor::Json,
    /// Source of the present revision, for bookmarks.
    pub(crate) storage: Arc<crate::storage::Storage>,
}

/// Duration in seconds of a watch without `timeoutSeconds` (upstream: random between 30 and 60 minutes).
const DEFAULT_TIMEOUT: u64 = 45 * 60;

impl Registry {
    /// Watches a collection.
    pub(crate) fn watch(&self, call: &Call<'_>, options: &ListOptions) -> Result<Answer, Status> {
        let selection = options.selection(call.ty, call.name)?;
        let revision = super::options::revision(&options.resource_version).map_err(Status::internal)?;
        let history = self.storage.history(&call.ty.storage);
        let snapshot = self.storage.committed();
        let namespace = if call.ty.namespaced() { call.namespace } else { "" };
        let begins_with_state = options.initial_events.unwrap_or(revision == 0);
        let mut initial = Vec::new();
        let from = if begins_with_state {
            if revision > snapshot.revision {
                return Err(super::list::too_large(revision, snapshot.revision));
            }
            let collection = snapshot.collection(&call.ty.storage);
            let namespace = Some(namespace).filter(|ns| !ns.is_empty());
            initial.extend(
                collection
                    .range(namespace, None)
                    .filter(|(key, object)| selection.matches(key, object))
                    .map(|(_, object)| Arc::clone(object)),
            );
            self.check_shown(call.ty, &initial)?;
            snapshot.revision
        } else if revision == 0 {
            snapshot.revision
        } else {
            revision
        };
        let cursor = Cursor::after(history, from).map_err(|expired| Status::expired(expired.to_string()));
        Ok(Answer::Watch(WatchAnswer {
            ty: Arc::clone(call.ty),
            initial,
            marks_initial_end: options.initial_events == Some(true) && options.bookmarks,
            cursor,
            selection,
            namespace: namespace.to_owned(),
            bookmarks: options.bookmarks,
            timeout: std::time::Duration::from_secs(
                options.timeout.filter(|t| *t > 0).unwrap_or(DEFAULT_TIMEOUT),
            ),
            empty: if options.bookmarks {
                schematic::empty(call.ty)
            } else {
                crate::registry::descriptor::Json::new()
            },
            storage: Arc::clone(&self.storage),
        }))
    }
}
