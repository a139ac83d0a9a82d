//! The service itself: bytes in, bytes out.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Limited};

use super::{ApiBody, decode, dispatch::Incoming, respond, route::Query};
use crate::{authn::User, registry::Registry};

/// The API server as a `tower::Service`, for any kind of request body. Clones share everything.
#[derive(Clone, Debug)]
pub struct ApiService {
    registry: Arc<Registry>,
    /// Who the connection belongs to: the TLS layer knows, or the process that made an in-process client.
    peer: Option<Arc<User>>,
}

impl ApiService {
    /// A service on a registry.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, peer: None }
    }

    /// The same service for somebody who has been authenticated already.
    #[must_use]
    pub fn for_peer(&self, user: User) -> Self {
        Self { registry: Arc::clone(&self.registry), peer: Some(Arc::new(user)) }
    }

    /// What it serves.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    async fn answer<B>(self, request: Request<B>) -> Response<ApiBody>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, decode::MAX_BODY).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(_) => return respond::status(&decode::too_large()),
        };
        let text = |name: header::HeaderName| parts.headers.get(name).and_then(|v| v.to_str().ok());
        let incoming = Incoming {
            method: &parts.method,
            path: parts.uri.path(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: text(header::ACCEPT),
            content_type: text(header::CONTENT_TYPE),
            user_agent: text(header::USER_AGENT).unwrap_or_default(),
            host: text(header::HOST).unwrap_or_default(),
            headers: &parts.headers,
            body,
        };
        let peer = self.peer.as_deref();
        if matches!(parts.method, http::Method::GET | http::Method::HEAD) {
            incoming.handle(&self.registry, peer).await
        } else {
            incoming.handle_write(&self.registry, peer).await
        }
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
