//! The handler behind all layers: finds the type and the verb of a request and answers it.
//!
//! Paths that are not resources are in [`nonresource`], with their documents in [`documents`]. A request on a resource
//! goes from [`resource`] (type, scope, content negotiation) to [`verb`], which decodes the body ([`object`]) and the
//! parameters ([`options`]) and calls the verb of the registry. Writes take the server's admission along, which the verb
//! runs before it stores. An aggregator would take the requests on groups of an `APIService` here, before [`resource`].

mod documents;
mod nonresource;
mod object;
mod options;
mod resource;
mod verb;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, header};
use tower::Service;

use super::{
    ApiBody, RequestInfo,
    layers::{Answered, refusal_response, request_info, user},
    respond,
};
use crate::{authn::User, components::Components, registry::builtin, status::Status};

/// The service behind all layers.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    components: Arc<Components>,
}

impl Handler {
    pub(super) fn new(components: Arc<Components>) -> Self {
        Self { components }
    }

    async fn answer(&self, request: &Request<Bytes>) -> Response<ApiBody> {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return self.serve(request).await;
        }
        // A write is acknowledged, and a refusal sent, once everything that they are based on is committed.
        let storage = self.components.registry.storage();
        let response = match storage.accepts_writes() {
            Ok(()) => self.serve(request).await,
            Err(error) => return failure(request, error),
        };
        match storage.flush().await {
            Ok(()) => response,
            Err(error) => failure(request, error),
        }
    }

    async fn serve(&self, request: &Request<Bytes>) -> Response<ApiBody> {
        let response = match HandledRequest::new(&self.components, request) {
            Ok(request) if request.info.is_resource_request => request.serve_resource().await,
            Ok(request) => request.serve_path(),
            Err(refusal) => Err(refusal),
        };
        response.unwrap_or_else(|refusal| refusal_response(request.headers(), &refusal))
    }
}

fn failure(request: &Request<Bytes>, error: impl std::fmt::Display) -> Response<ApiBody> {
    refusal_response(request.headers(), &Status::internal(error.to_string()))
}

impl Service<Request<Bytes>> for Handler {
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Answered>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let handler = self.clone();
        Box::pin(async move { Ok(handler.answer(&request).await) })
    }
}

/// A request that has passed all layers.
#[derive(Debug, Clone, Copy)]
struct HandledRequest<'a> {
    components: &'a Components,
    info: &'a RequestInfo,
    user: &'a User,
    method: &'a Method,
    headers: &'a HeaderMap,
    body: &'a Bytes,
}

impl<'a> HandledRequest<'a> {
    fn new(components: &'a Components, request: &'a Request<Bytes>) -> Result<Self, Status> {
        Ok(Self {
            components,
            info: request_info(request)?,
            user: user(request)?,
            method: request.method(),
            headers: request.headers(),
            body: request.body(),
        })
    }

    fn header(&self, name: header::HeaderName) -> Option<&'a str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn accept(&self) -> Option<&'a str> {
        self.header(header::ACCEPT)
    }

    fn content_type(&self) -> Option<&'a str> {
        self.header(header::CONTENT_TYPE)
    }
}

/// Returns whether a group is served without a definition.
fn is_builtin_group(group: &str) -> bool {
    group.is_empty() || builtin::GROUPS.iter().any(|rank| rank.group == group)
}

/// Answers a path without a handler.
fn no_such_page() -> Response<ApiBody> {
    respond::text(404, "404 page not found\n")
}
