//! WATCH: where a stream of changes begins and what it shows. The stream itself is [`crate::watch`].

use std::sync::Arc;

use super::options::{ListOptions, Selection};
use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
    },
    status::Status,
    storage::{Cursor, Object},
};

/// A watch that is about to begin.
#[derive(Debug)]
pub struct WatchAnswer {
    /// The version to show objects in.
    pub ty: Arc<Descriptor>,
    /// Objects to begin with, as ADDED.
    pub initial: Vec<Arc<Object>>,
    /// Tell the client when the initial objects are over.
    pub marks_initial_end: bool,
    /// The changes after that; `None` when the history is already gone.
    pub cursor: Result<Cursor, Status>,
    /// Which objects.
    pub selection: Selection,
    /// Which namespace; empty for all.
    pub namespace: String,
    /// Send bookmarks.
    pub bookmarks: bool,
    /// When to end.
    pub timeout: std::time::Duration,
    /// What bookmarks carry besides metadata.
    pub empty: crate::registry::descriptor::Json,
    /// For bookmarks: the present revision.
    pub storage: Arc<crate::storage::Storage>,
}

/// How long a watch lasts when the client does not say (upstream: at random between 30 and 60 minutes).
const DEFAULT_TIMEOUT: u64 = 45 * 60;

impl Registry {
    /// WATCH.
    pub fn watch(&self, call: &Call<'_>, options: &ListOptions) -> Result<Answer, Status> {
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
                self.semantics.empty(call.ty)
            } else {
                crate::registry::descriptor::Json::new()
            },
            storage: Arc::clone(&self.storage),
        }))
    }
}
