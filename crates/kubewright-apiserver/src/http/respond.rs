//! Responses, in the form that the client accepts.

use http::{HeaderValue, Response, StatusCode, header};
use kubewright_core::Clock;
use serde_json::Value;

use super::{
    ApiBody,
    negotiate::{Accept, Encoding, Shape},
};
use crate::{
    protobuf,
    registry::{call::Answer, descriptor::Descriptor},
    status::Status,
    storage::Object,
    table,
    watch::Frames,
};

/// Returns the response of a `Status`.
pub(super) fn status(status: &Status, encoding: Encoding) -> Response<ApiBody> {
    let mut response = value(status.code, encoding, &status.to_value());
    if let Some(seconds) = status.details.as_ref().and_then(|d| d.get("retryAfterSeconds")) {
        set(&mut response, header::RETRY_AFTER, &seconds.to_string());
    }
    response
}

/// Returns a JSON response.
pub(super) fn json(code: u16, value: &Value) -> Response<ApiBody> {
    raw(code, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// Returns a plain text response.
pub(super) fn text(code: u16, text: &str) -> Response<ApiBody> {
    raw(code, "text/plain; charset=utf-8", text.as_bytes().to_vec())
}

/// Returns a response of a media type.
pub(super) fn raw(code: u16, media: &str, bytes: impl Into<bytes::Bytes>) -> Response<ApiBody> {
    with_body(code, media, ApiBody::whole(bytes))
}

/// Adds an entity tag.
pub(super) fn tagged(mut response: Response<ApiBody>, tag: &str) -> Response<ApiBody> {
    set(&mut response, header::ETAG, tag);
    set(&mut response, header::VARY, "Accept-Encoding, Accept");
    response
}

/// Marks a response as immutable.
pub(super) fn keep_forever(response: &mut Response<ApiBody>) {
    set(response, header::CACHE_CONTROL, "public, immutable, max-age=31536000");
}

/// Returns a permanent redirect.
pub(super) fn moved(to: &str) -> Response<ApiBody> {
    let mut response = text(301, "");
    set(&mut response, header::LOCATION, to);
    response
}

fn with_body(code: u16, media: &str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, header::CONTENT_TYPE, media);
    response
}

fn set(response: &mut Response<ApiBody>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Adds `Warning` headers.
pub(super) fn warn(response: &mut Response<ApiBody>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Returns the response of an answer in the form that the client accepts.
pub(super) fn answer(
    answer: Answer,
    accept: &Accept,
    clock: &Clock,
    options: table::Options,
) -> Response<ApiBody> {
    match transform(answer, accept, clock, options) {
        Ok(response) => response,
        Err(refusal) => status(&refusal, accept.encoding),
    }
}

fn not_acceptable(message: String) -> Status {
    Status::plain(406, "NotAcceptable", message)
}

fn value(code: u16, encoding: Encoding, value: &Value) -> Response<ApiBody> {
    match encoding {
        Encoding::Json => json(code, value),
        // Values without a protobuf form are sent as JSON.
        Encoding::Protobuf => match protobuf::encode(value) {
            Some(bytes) => raw(code, protobuf::MEDIA_TYPE, bytes),
            None => json(code, value),
        },
        Encoding::Yaml => {
            let text = serde_saphyr::to_string(value).unwrap_or_default();
            raw(code, "application/yaml", text.into_bytes())
        }
    }
}

fn transform(
    answer: Answer,
    accept: &Accept,
    clock: &Clock,
    options: table::Options,
) -> Result<Response<ApiBody>, Status> {
    match answer {
        Answer::Value { code: 204, .. } => Ok(with_body(204, "text/plain", ApiBody::whole(Vec::new()))),
        Answer::Value { code, value: object } => {
            let shown = match &accept.shape {
                Shape::Table(version) if object["kind"] == "Scale" => {
                    table::of_scale(&object, version, clock.now())
                }
                _ => object,
            };
            Ok(value(code, accept.encoding, &shown))
        }
        Answer::Stored { code, ty, object } => one(code, &ty, &object, accept, clock, options),
        Answer::List(list) => {
            let shown = match &accept.shape {
                Shape::Object
                    if accept.encoding == Encoding::Json
                        && list.items.iter().all(|object| list.ty.shows_as_stored(object)) =>
                {
                    return Ok(with_body(200, "application/json", ApiBody::list(list)));
                }
                Shape::Object => {
                    let items: Vec<Value> = list
                        .items
                        .iter()
                        .map(|o| {
                            let mut item = list.ty.decode(o);
                            if !list.ty.typed_items {
                                item.remove("kind");
                                item.remove("apiVersion");
                            }
                            Value::Object(item)
                        })
                        .collect();
                    serde_json::json!({
                        "kind": list.ty.list_kind, "apiVersion": list.ty.api_version(),
                        "metadata": list.own_metadata(), "items": items,
                    })
                }
                Shape::Table(version) => {
                    let objects: Vec<_> = list.items.iter().map(|o| list.ty.decode(o)).collect();
                    table::of(&list.ty, &objects, &list.metadata(), version, options, clock.now())
                }
                Shape::PartialList(version) => {
                    let items: Vec<Value> =
                        list.items.iter().map(|o| table::partial(&list.ty.decode(o), version)).collect();
                    serde_json::json!({
                        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"),
                        "metadata": list.metadata(), "items": items,
                    })
                }
                Shape::Partial(_) => {
                    return Err(not_acceptable(format!(
                        "you requested PartialObjectMetadata, but the requested object is a list (*core.{})",
                        list.ty.list_kind
                    )));
                }
            };
            Ok(value(200, accept.encoding, &shown))
        }
        Answer::Watch(watch) => {
            let render = render_for(&accept.shape, clock, options)?;
            let (media, frames) = match accept.encoding {
                Encoding::Protobuf => ("application/vnd.kubernetes.protobuf;stream=watch", Frames::Protobuf),
                _ => ("application/json", Frames::Json),
            };
            Ok(with_body(200, media, ApiBody::stream(crate::watch::stream(watch, frames, render))))
        }
    }
}

fn render_for(
    shape: &Shape,
    clock: &Clock,
    options: table::Options,
) -> Result<Option<crate::watch::Render>, Status> {
    Ok(match shape {
        Shape::Object => None,
        Shape::Partial(version) => {
            let version = version.clone();
            Some(Box::new(move |ty: &Descriptor, object: &Object| {
                table::partial(&ty.decode(object), &version)
            }))
        }
        Shape::Table(version) => {
            let (version, clock, options) = (version.clone(), clock.clone(), options);
            let first = std::sync::atomic::AtomicBool::new(true);
            Some(Box::new(move |ty: &Descriptor, object: &Object| {
                let decoded = [ty.decode(object)];
                let mut metadata = serde_json::Map::new();
                metadata.insert("resourceVersion".into(), object.revision.to_string().into());
                let mut value = table::of(ty, &decoded, &metadata, &version, options, clock.now());
                // Only the first event has column definitions.
                if !first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                    value["columnDefinitions"] = Value::Null;
                }
                value
            }))
        }
        Shape::PartialList(_) => {
            return Err(not_acceptable(
                "you requested PartialObjectMetadataList, but the requested object is a watch".into(),
            ));
        }
    })
}

fn one(
    code: u16,
    ty: &Descriptor,
    object: &Object,
    accept: &Accept,
    clock: &Clock,
    options: table::Options,
) -> Result<Response<ApiBody>, Status> {
    let shown = match &accept.shape {
        Shape::Object if accept.encoding == Encoding::Json => {
            return Ok(raw(code, "application/json", ty.encode_single(object)));
        }
        Shape::Object => Value::Object(ty.decode(object)),
        Shape::Table(version) => {
            let decoded = [ty.decode(object)];
            let mut metadata = serde_json::Map::new();
            metadata.insert("resourceVersion".into(), object.revision.to_string().into());
            table::of(ty, &decoded, &metadata, version, options, clock.now())
        }
        Shape::Partial(version) => table::partial(&ty.decode(object), version),
        Shape::PartialList(_) => {
            return Err(not_acceptable(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*core.{})",
                ty.kind
            )));
        }
    };
    Ok(value(code, accept.encoding, &shown))
}
