//! Documents about the served types, encoded once for as long as the types are the same.

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::{
    super::{ApiBody, negotiate, respond},
    HandledRequest, no_such_page,
};
use crate::{openapi, registry::Types};

impl HandledRequest<'_> {
    /// Serves the `OpenAPI` v3 document of a group version.
    pub(super) fn openapi(&self, types: &Types, group: &str, version: &str) -> Response<ApiBody> {
        let name = format!("v3/{group}/{version}");
        let Some(hash) = hash(types, &name, || openapi::v3_hash(types, group, version)) else {
            return no_such_page();
        };
        // Under its hash a document never changes; a request for another hash is redirected.
        let asked = self.info.query.get("hash").unwrap_or_default();
        if !asked.is_empty() && asked != hash {
            return respond::moved(&format!("{}?hash={hash}", self.info.path));
        }
        let mut response = self.document(types, &name, &hash, || openapi::v3(types, group, version));
        if !asked.is_empty() {
            respond::keep_forever(&mut response);
        }
        response
    }

    /// Serves a document under its hash as the entity tag: 304 when the client has it.
    pub(super) fn document(
        &self,
        types: &Types,
        name: &str,
        hash: &str,
        make: impl FnOnce() -> Option<Value>,
    ) -> Response<ApiBody> {
        let tag = format!("\"{hash}\"");
        let known = self.headers.get("if-none-match").and_then(|v| v.to_str().ok()).unwrap_or_default();
        if known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag) {
            return respond::tagged(respond::raw(304, "application/json", Vec::new()), &tag);
        }
        let media = self.accept().map(negotiate::clauses).unwrap_or_default();
        let readable = |media: &str| matches!(media, "application/json" | "application/*" | "*/*");
        if !media.is_empty() && !media.iter().any(|clause| readable(clause.media)) {
            return respond::status(&negotiate::not_acceptable(), negotiate::Encoding::Json);
        }
        match types.document(name, || make().as_ref().map(encode)) {
            Some(document) => respond::tagged(respond::raw(200, JSON, document), &tag),
            None => no_such_page(),
        }
    }
}

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// Encodes a document.
pub(super) fn encode(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Serves a document about the types.
pub(super) fn json(types: &Types, name: &str, make: impl FnOnce() -> Option<Value>) -> Response<ApiBody> {
    match types.document(name, || make().as_ref().map(encode)) {
        Some(document) => respond::raw(200, JSON, document),
        None => no_such_page(),
    }
}

/// Returns the hash of a document, cached as long as the document.
pub(super) fn hash(types: &Types, name: &str, make: impl FnOnce() -> Option<String>) -> Option<String> {
    let hash = types.document(&format!("hash of {name}"), || make().map(Bytes::from))?;
    Some(String::from_utf8_lossy(&hash).into_owned())
}
