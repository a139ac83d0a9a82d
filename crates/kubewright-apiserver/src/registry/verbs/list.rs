//! LIST: a consistent snapshot, whole or in pages.
//!
//! A page's continue token holds the revision and the last key, so the next page reads the same state by undoing the
//! changes since; when the history is gone, the client is told to start again (410).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kubewright_core::ObjectKey;
use serde_json::{Map, Value, json};

use super::options::{ListOptions, Match, Selection};
use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Descriptor,
    },
    status::Status,
    storage::{Collection, Object},
};

/// The objects of a list, still as stored.
#[derive(Debug)]
pub struct ListAnswer {
    /// The version to show them in.
    pub ty: Arc<Descriptor>,
    /// The state that was read.
    pub revision: u64,
    /// The items, in order of their keys.
    pub items: Vec<Arc<Object>>,
    /// The token of the next page.
    pub continues: Option<String>,
    /// How many items follow, where it can be known.
    pub remaining: Option<usize>,
}

impl ListAnswer {
    /// `metadata` of the list.
    pub fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), self.revision.to_string().into());
        if let Some(token) = &self.continues {
            metadata.insert("continue".into(), token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".into(), remaining.into());
        }
        metadata
    }

    /// `metadata` of the list in its own form. Lists of custom resources have no Go type that would leave out an empty
    /// token.
    pub fn own_metadata(&self) -> Map<String, Value> {
        let mut metadata = self.metadata();
        if self.ty.custom.is_some() {
            metadata.entry("continue").or_insert_with(|| "".into());
        }
        metadata
    }
}

/// 504: the version is in the future.
pub(super) fn too_large(asked: u64, current: u64) -> Status {
    Status::plain(504, "Timeout", format!("Too large resource version: {asked}, current: {current}"))
        .causes(vec![json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"})])
        .retry_after(1)
}

/// Where a paged list goes on.
#[derive(Debug, PartialEq, Eq)]
struct Continue {
    revision: u64,
    after: String,
}

impl Continue {
    fn encode(&self) -> String {
        // The trailing zero byte is upstream's way to say "after this key".
        let token =
            json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": format!("{}\u{0}", self.after)});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self, Status> {
        let refused = |why: &str| Status::bad_request(format!("continue key is not valid: {why}"));
        let bytes = URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|_| refused("illegal base64 data"))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| refused("not JSON"))?;
        if value["v"] != "meta.k8s.io/v1" {
            return Err(refused("server does not recognize this encoded version"));
        }
        let revision = value["rv"].as_u64().filter(|rv| *rv > 0);
        let revision = revision.ok_or_else(|| refused("incorrect encoded start resourceVersion"))?;
        let start = value["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(refused("encoded start key empty"));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(refused(start));
        }
        Ok(Self { revision, after: start.strip_suffix('\0').unwrap_or(start).to_owned() })
    }
}

impl Registry {
    /// LIST.
    pub fn list(&self, call: &Call<'_>, options: &ListOptions) -> Result<Answer, Status> {
        let selection = options.selection(call.ty, call.name)?;
        let revision = super::options::revision(&options.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        let current = self.storage.committed();
        let (collection, revision, after, limit) = if !options.continues.is_empty() {
            if revision > 0 {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let place = Continue::decode(&options.continues)?;
            let collection = self.collection_at(call, place.revision)?;
            (collection, place.revision, Some(ObjectKey::cluster(&place.after)), options.limit)
        } else if revision > current.revision {
            return Err(too_large(revision, current.revision));
        } else {
            let exact = match options.version_match {
                Some(Match::Exact) => true,
                Some(Match::NotOlderThan) => false,
                // A page at a version is a page of exactly that version.
                None => revision > 0 && options.limit > 0,
            };
            // Lists at version "0" come whole, as from upstream's cache.
            let limit = if options.resource_version == "0" { 0 } else { options.limit };
            if exact {
                (self.collection_at(call, revision)?, revision, None, limit)
            } else {
                (current.collection(&call.ty.storage), current.revision, None, limit)
            }
        };
        let page = page(call, &collection, revision, after.as_ref(), limit, &selection);
        self.check_shown(call.ty, &page.items)?;
        Ok(Answer::List(page))
    }

    fn collection_at(&self, call: &Call<'_>, revision: u64) -> Result<Collection, Status> {
        self.storage.collection_at(&call.ty.storage, revision).map_err(|_| {
            Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start \
                 a new list without the continue parameter.",
            )
        })
    }
}

fn page(
    call: &Call<'_>,
    collection: &Collection,
    revision: u64,
    after: Option<&ObjectKey>,
    limit: usize,
    selection: &Selection,
) -> ListAnswer {
    let namespace = Some(call.namespace).filter(|ns| !ns.is_empty() && call.ty.namespaced());
    let mut found = collection.range(namespace, after).filter(|(key, object)| selection.matches(key, object));
    let mut answer =
        ListAnswer { ty: Arc::clone(call.ty), revision, items: Vec::new(), continues: None, remaining: None };
    if limit == 0 {
        answer.items = found.map(|(_, object)| Arc::clone(object)).collect();
        return answer;
    }
    let mut last = None;
    for (key, object) in found.by_ref().take(limit) {
        answer.items.push(Arc::clone(object));
        last = Some(key);
    }
    let rest = found.count();
    if let (Some(last), true) = (last, rest > 0) {
        answer.continues = Some(Continue { revision, after: last.as_str().to_owned() }.encode());
        // With a selector nobody counts what would match.
        answer.remaining = selection.is_empty().then_some(rest);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place_and_garbage_is_refused() {
        let place = Continue { revision: 7, after: "ns/a".into() };
        assert_eq!(Continue::decode(&place.encode()).unwrap(), place);
        for garbage in ["", "!!", "e30", "bm90IGpzb24"] {
            assert_eq!(Continue::decode(garbage).unwrap_err().code, 400, "{garbage}");
        }
    }
}
