//! One page of a list, object by object while it arrives.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use kube::{Resource, client::Body};
use serde::de::DeserializeOwned;

use super::{
    fault::Fault,
    object::Lazy,
    request::{Failure, ListWatchError, Target},
    wire::{
        alike::Alike,
        codec::Codec,
        pattern::Unread,
        scan::Spans,
        split::{Items, ListMeta, ListSplitter},
    },
};
use kubewright_core::ObjectKey;

/// A page on its way. Objects come in the pieces in which the body does, so no page is ever whole in memory.
pub(crate) struct ListPage<K> {
    target: Target,
    codec: Arc<Codec<K>>,
    body: Body,
    splitter: Option<ListSplitter>,
    scratch: Vec<u8>,
    meta: ListMeta,
    taken: usize,
}

impl<K: Resource + DeserializeOwned> ListPage<K> {
    pub(crate) fn new(target: Target, codec: Arc<Codec<K>>, body: Body) -> Self {
        Self {
            target,
            codec,
            body,
            splitter: Some(ListSplitter::new()),
            scratch: Vec::new(),
            meta: ListMeta::default(),
            taken: 0,
        }
    }

    /// The next objects of the page; None when it has ended as a page should.
    ///
    /// Objects that `known` holds in the same version come back as that very handle.
    pub(crate) async fn next(
        &mut self,
        known: &(dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync),
    ) -> Result<Option<Vec<Lazy<K>>>, ListWatchError> {
        let Some(splitter) = &mut self.splitter else { return Ok(None) };
        let Some(frame) = self.body.frame().await else {
            let splitter = self.splitter.take().unwrap_or_else(ListSplitter::new);
            self.meta = splitter.finish().map_err(|error| self.target.split_failed("list", &error))?;
            return Ok(None);
        };
        let frame = frame.map_err(|error| self.target.failed("list", Failure::Transport(Arc::new(error))))?;
        let mut objects = Vec::new();
        if let Some(data) = frame.data_ref() {
            self.taken = data.len();
            let alike = self.codec.take_alike();
            let mut admitting =
                Admitting { codec: &self.codec, scratch: &mut self.scratch, alike, known, objects };
            let fed = splitter.feed(data, &mut admitting);
            self.codec.give_back(admitting.alike);
            objects = admitting.objects;
            fed.map_err(|error| self.target.split_failed("list", &error))?;
        }
        Ok(Some(objects))
    }

    /// How many bytes the last objects took.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// What the page said of itself, once it has ended.
    pub(crate) fn into_meta(self) -> ListMeta {
        self.meta
    }
}

/// Objects on their way into the cache.
struct Admitting<'a, K> {
    codec: &'a Codec<K>,
    scratch: &'a mut Vec<u8>,
    alike: Alike,
    known: &'a (dyn Fn(&ObjectKey) -> Option<Lazy<K>> + Send + Sync),
    objects: Vec<Lazy<K>>,
}

impl<K: Resource + DeserializeOwned> Items for Admitting<'_, K> {
    fn like_before(&mut self, text: &[u8]) -> Result<usize, Unread> {
        let (end, object) = self.codec.admit_alike(text, &mut self.alike, self.known)?;
        self.objects.push(object);
        Ok(end)
    }

    fn item(&mut self, text: &[u8], spans: Spans) {
        match self.codec.admit(text, &spans, self.scratch, self.known) {
            Ok(object) => {
                self.codec.learn(text, &spans, self.scratch, &mut self.alike);
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
