//! One page of a list, decoded while it arrives.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use kube::client::Body;

use super::{
    fault::Fault,
    object::{Lazy, Untyped},
    request::{ListWatchError, ListWatchErrorKind, Target},
    wire::{
        alike::BaseTracker,
        codec::Codec,
        pattern::Mismatch,
        scan::Spans,
        split::{Items, ListMeta, ListSplitter},
    },
};
use kubewright_core::ObjectKey;

/// A page in progress. Objects are returned per body frame, so no page is ever held as a whole.
pub(crate) struct ListPage {
    target: Target,
    codec: Arc<Codec>,
    body: Body,
    splitter: Option<ListSplitter>,
    scratch: Vec<u8>,
    meta: ListMeta,
    frame_bytes: usize,
}

impl ListPage {
    pub(crate) fn new(target: Target, codec: Arc<Codec>, body: Body) -> Self {
        Self {
            target,
            codec,
            body,
            splitter: Some(ListSplitter::new()),
            scratch: Vec::new(),
            meta: ListMeta::default(),
            frame_bytes: 0,
        }
    }

    /// Returns the next objects of the page; `None` when it is complete.
    ///
    /// Objects that `known` holds in the same version are returned as the known handle.
    pub(crate) async fn next(
        &mut self,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>> + Send + Sync),
    ) -> Result<Option<Vec<Lazy<Untyped>>>, ListWatchError> {
        let Some(splitter) = &mut self.splitter else { return Ok(None) };
        let Some(frame) = self.body.frame().await else {
            let splitter = self.splitter.take().unwrap_or_else(ListSplitter::new);
            self.meta = splitter.finish().map_err(|error| self.target.split_failed("list", &error))?;
            return Ok(None);
        };
        let frame = frame
            .map_err(|error| self.target.failed("list", ListWatchErrorKind::Transport(Arc::new(error))))?;
        let mut objects = Vec::new();
        if let Some(data) = frame.data_ref() {
            self.frame_bytes = data.len();
            let tracker = self.codec.take_tracker();
            let mut sink =
                ItemSink { codec: &self.codec, scratch: &mut self.scratch, tracker, known, objects };
            let fed = splitter.feed(data, &mut sink);
            self.codec.put_tracker(sink.tracker);
            objects = sink.objects;
            fed.map_err(|error| self.target.split_failed("list", &error))?;
        }
        Ok(Some(objects))
    }

    /// Returns the size of the last frame in bytes.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Returns the metadata of the page, once it is complete.
    pub(crate) fn into_meta(self) -> ListMeta {
        self.meta
    }
}

/// Sink that encodes the items of a page for the cache.
struct ItemSink<'a> {
    codec: &'a Codec,
    scratch: &'a mut Vec<u8>,
    tracker: BaseTracker,
    known: &'a (dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>> + Send + Sync),
    objects: Vec<Lazy<Untyped>>,
}

impl Items for ItemSink<'_> {
    fn match_item(&mut self, text: &[u8]) -> Result<usize, Mismatch> {
        let (end, object) = self.codec.admit_match(text, &mut self.tracker, self.known)?;
        self.objects.push(object);
        Ok(end)
    }

    fn item(&mut self, text: &[u8], spans: Spans) {
        match self.codec.admit(text, &spans, self.scratch, self.known) {
            Ok(object) => {
                self.codec.update_base(text, &spans, self.scratch, &mut self.tracker);
                self.objects.push(object);
            }
            Err(unusable) => {
                let (key, reason) = (unusable.key, unusable.reason);
                self.codec.faults().report(&Fault::Unusable { key, reason });
            }
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
