//! Requests and responses of the fake server.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::channel::mpsc;
use http::{Method, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

use super::{
    Change, FrameResult, State, Watch, covers,
    script::{self, PlannedFault},
    selects,
};

pub(super) type Answer = UnsyncBoxBody<Bytes, std::io::Error>;

type Query = BTreeMap<String, String>;

pub(super) fn answer(
    state: &mut State,
    parts: &Parts,
    body: &[u8],
) -> Result<Response<Answer>, std::io::Error> {
    let path = parts.uri.path().to_owned();
    let query = query(parts.uri.query().unwrap_or_default());
    state.requests.push(format!("{} {}", parts.method, parts.uri));
    if state.is_down {
        return Err(std::io::ErrorKind::ConnectionRefused.into());
    }
    if let Some((_, code, reason)) = state.rejected.as_ref().filter(|(text, ..)| path.contains(text)) {
        return Ok(status_error(*code, reason, None));
    }
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let metadata_only = accept.contains("as=PartialObjectMetadata");
    if let Some(fixed) = state.objects.get("fixed").and_then(|fixed| fixed.get(&path)) {
        return Ok(json_answer(200, &fixed["body"]));
    }
    if query.get("watch").is_some_and(|watch| watch == "true" || watch == "1") {
        return watch(state, path, &query, metadata_only);
    }
    if parts.method != Method::GET
        && let Some(PlannedFault::RejectWrite { code, reason }) =
            state.script.take(|planned| matches!(planned, PlannedFault::RejectWrite { .. }))
    {
        return Ok(status_error(code, reason, None));
    }
    Ok(match (&parts.method, state.locate(&path)) {
        (&Method::GET, Place::Object(collection, name)) => {
            match state.objects.get(&collection).and_then(|held| held.get(&name)) {
                Some(object) => json_answer(200, object),
                None => status_error(404, "NotFound", None),
            }
        }
        (&Method::GET, Place::Collection) => return list(state, &path, &query, metadata_only),
        (&Method::POST, _) => {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if state.objects.get(&path).is_some_and(|held| held.contains_key(name)) {
                return Ok(status_error(409, "AlreadyExists", None));
            }
            json_answer(201, &state.put(&path, object))
        }
        (&Method::PUT, Place::Object(collection, name)) => {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            replace(state, &collection, &name, object)
        }
        (&Method::PATCH, Place::Object(collection, name)) => {
            let patch: Value = serde_json::from_slice(body).unwrap_or_default();
            let Some(held) = state.objects.get(&collection).and_then(|held| held.get(&name)) else {
                return Ok(status_error(404, "NotFound", None));
            };
            let mut object = held.clone();
            if patch["metadata"]["resourceVersion"].is_null() {
                object["metadata"]["resourceVersion"] = Value::Null;
            }
            merge(&mut object, &patch);
            replace(state, &collection, &name, object)
        }
        (&Method::DELETE, Place::Object(collection, name)) => match state.delete(&collection, &name) {
            Some(object) => json_answer(200, &object),
            None => status_error(404, "NotFound", None),
        },
        _ => status_error(405, "MethodNotAllowed", None),
    })
}

/// Replaces an object; a conflict if it has another version than the request.
fn replace(state: &mut State, collection: &str, name: &str, object: Value) -> Response<Answer> {
    let Some(held) = state.objects.get(collection).and_then(|held| held.get(name)) else {
        return status_error(404, "NotFound", None);
    };
    for field in ["resourceVersion", "uid"] {
        let asked = &object["metadata"][field];
        if !asked.is_null() && *asked != held["metadata"][field] {
            return status_error(409, "Conflict", None);
        }
    }
    let finalizers = |object: &Value| object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
    if !object["metadata"]["deletionTimestamp"].is_null() && finalizers(&object) == 0 {
        state.delete(collection, name);
        return json_answer(200, &object);
    }
    json_answer(200, &state.put(collection, object))
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, change) in patch {
        if change.is_null() {
            target.as_object_mut().expect("made one above").remove(key);
        } else {
            merge(&mut target[key], change);
        }
    }
}

enum Place {
    Collection,
    Object(String, String),
}

impl State {
    /// Locates a path. It is an object when the part before its last slash is a known collection, or looks
    /// like one. A subresource is the object.
    fn locate(&self, path: &str) -> Place {
        let path = path.strip_suffix("/status").unwrap_or(path);
        match path.rsplit_once('/') {
            Some((collection, name))
                if self.objects.contains_key(collection)
                    || collection.split_once("/namespaces/").is_some_and(|(_, rest)| rest.contains('/')) =>
            {
                Place::Object(collection.to_owned(), name.to_owned())
            }
            _ => Place::Collection,
        }
    }
}

fn list(
    state: &mut State,
    path: &str,
    query: &Query,
    metadata_only: bool,
) -> Result<Response<Answer>, std::io::Error> {
    let continued = query.get("continue");
    let planned = state.script.take(|planned| match planned {
        PlannedFault::RejectNextPage { .. } => continued.is_some(),
        PlannedFault::RejectList { .. } | PlannedFault::RefuseListConnection | PlannedFault::CutList => true,
        _ => false,
    });
    match planned {
        Some(PlannedFault::RejectList { code, reason, retry_after }) => {
            return Ok(status_error(code, reason, retry_after));
        }
        Some(PlannedFault::RejectNextPage { code, reason }) => return Ok(status_error(code, reason, None)),
        Some(PlannedFault::RefuseListConnection) => return Err(std::io::ErrorKind::ConnectionRefused.into()),
        _ => {}
    }
    let version = query.get("resourceVersion").map_or("", String::as_str);
    if version.parse::<u64>().is_ok_and(|version| version > state.revision) {
        return Ok(too_large());
    }
    let from: usize = continued.and_then(|token| token.parse().ok()).unwrap_or(0);
    // As in kube-apiserver: a list at version 0 is served from the watch cache, ignoring the limit.
    let limit = match query.get("limit").and_then(|limit| limit.parse().ok()) {
        Some(limit) if version != "0" || state.pages_at_zero => limit,
        _ => usize::MAX,
    };
    let selector = query.get("labelSelector").map(String::as_str);
    let all: Vec<Value> = state
        .under(path)
        .map(|(_, object)| object)
        .filter(|object| selects(selector, object))
        .map(|object| item(&projected(object, metadata_only), metadata_only))
        .collect();
    let items: Vec<Value> = all.iter().skip(from).take(limit).cloned().collect();
    let mut meta = json!({"resourceVersion": state.revision.to_string()});
    if from.saturating_add(limit) < all.len() {
        meta["continue"] = json!((from + limit).to_string());
        meta["remainingItemCount"] = json!(all.len() - from - limit);
    }
    let text = json!({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items}).to_string();
    if matches!(planned, Some(PlannedFault::CutList)) {
        return Ok(text_answer(200, text[..text.len() / 2].to_owned()));
    }
    Ok(text_answer(200, text))
}

/// Removes the kind of items of typed lists; those of metadata lists keep it.
fn item(object: &Value, metadata_only: bool) -> Value {
    let mut item = object.clone();
    if let (Some(members), false) = (item.as_object_mut(), metadata_only) {
        members.remove("kind");
        members.remove("apiVersion");
    }
    item
}

pub(super) fn projected(object: &Value, metadata_only: bool) -> Value {
    if !metadata_only {
        return object.clone();
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn watch(
    state: &mut State,
    path: String,
    query: &Query,
    metadata_only: bool,
) -> Result<Response<Answer>, std::io::Error> {
    let streaming = query.get("sendInitialEvents").is_some_and(|value| value == "true");
    let planned = state.script.take(|planned| match planned {
        PlannedFault::RejectStream { .. } => streaming,
        PlannedFault::RejectWatch { .. }
        | PlannedFault::RefuseWatchConnection
        | PlannedFault::EndWatch(_)
        | PlannedFault::SilentWatch => true,
        _ => false,
    });
    match &planned {
        Some(PlannedFault::RejectWatch { code, reason, retry_after }) => {
            return Ok(status_error(*code, reason, *retry_after));
        }
        Some(PlannedFault::RejectStream { code, reason }) => return Ok(status_error(*code, reason, None)),
        Some(PlannedFault::RefuseWatchConnection) => return Err(std::io::ErrorKind::ConnectionRefused.into()),
        _ => {}
    }
    if streaming && !state.supports_streaming {
        return Ok(status_error(422, "Invalid", None));
    }
    let version = query.get("resourceVersion").and_then(|version| version.parse::<u64>().ok());
    if version.is_some_and(|version| version > state.revision) {
        return Ok(too_large());
    }
    let (sender, receiver) = mpsc::unbounded();
    let opened = Watch { path, selector: query.get("labelSelector").cloned(), metadata_only, sender };
    match planned {
        Some(PlannedFault::EndWatch(ending)) => ending.apply(&opened.sender),
        Some(PlannedFault::SilentWatch) => {
            state.watches.push(Watch { path: "nothing".to_owned(), ..opened });
        }
        _ => {
            if !streaming && version.is_some_and(|version| version < state.compacted) {
                let gone = json!({"type": "ERROR", "object": script::status(410, "Expired", None)});
                // The receiver is still alive.
                let _ = opened.sender.unbounded_send(Ok(script::line(&gone)));
            } else {
                replay(state, &opened, version, streaming);
                state.watches.push(opened);
            }
        }
    }
    Ok(Response::new(StreamBody::new(receiver).boxed_unsync()))
}

/// Sends the events that a watch starts with.
fn replay(state: &State, watch: &Watch, version: Option<u64>, streaming: bool) {
    if streaming {
        for (collection, held) in
            state.objects.iter().filter(|(collection, _)| covers(&watch.path, collection))
        {
            for object in held.values() {
                let collection = collection.clone();
                let change = Change { revision: 0, collection, kind: "ADDED", object: object.clone() };
                // The receiver is still alive.
                let _ = watch.send(&change);
            }
        }
        let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {
            "resourceVersion": state.revision.to_string(),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }}});
        let _ = watch.sender.unbounded_send(Ok(script::line(&bookmark)));
        return;
    }
    let from = version.unwrap_or(state.revision);
    for change in state.history.iter().filter(|change| change.revision > from) {
        let _ = watch.send(change);
    }
}

fn query(text: &str) -> Query {
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digits = [*high, *low];
                let text = std::str::from_utf8(&digits).unwrap_or("00");
                bytes.push(u8::from_str_radix(text, 16).unwrap_or(0));
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn too_large() -> Response<Answer> {
    let mut status = script::status(504, "Timeout", Some(1));
    status["message"] = json!("Too large resource version");
    status["details"]["causes"] =
        json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
    json_answer(504, &status)
}

fn status_error(code: u16, reason: &str, retry_after: Option<u32>) -> Response<Answer> {
    let mut response = json_answer(code, &script::status(code, reason, None));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn json_answer(code: u16, value: &Value) -> Response<Answer> {
    text_answer(code, value.to_string())
}

fn text_answer(code: u16, text: String) -> Response<Answer> {
    // In small frames, so that no test relies on a body in one frame.
    let frames: Vec<FrameResult> =
        text.as_bytes().chunks(1000).map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))).collect();
    let body = if frames.len() == 1 {
        Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
    } else {
        StreamBody::new(futures::stream::iter(frames)).boxed_unsync()
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
