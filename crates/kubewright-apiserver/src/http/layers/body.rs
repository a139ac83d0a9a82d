//! Reads request bodies, up to a limit.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use tower::{Layer, Service};

use super::{
    super::{decode, negotiate::Encoding, respond},
    Answered, ApiBody,
};

/// Layer of [`ReadBody`].
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct BodyLayer {
    /// The largest body in bytes.
    limit: usize,
}

impl BodyLayer {
    pub(in crate::http) fn new(limit: usize) -> Self {
        Self { limit }
    }
}

impl<S> Layer<S> for BodyLayer {
    type Service = ReadBody<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadBody { inner, limit: self.limit }
    }
}

/// Replaces the body of a request by its bytes, or answers 413.
#[derive(Debug, Clone)]
pub(in crate::http) struct ReadBody<S> {
    inner: S,
    limit: usize,
}

impl<S, B> Service<Request<B>> for ReadBody<S>
where
    S: Service<Request<Bytes>, Response = Response<ApiBody>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Answered>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready is the one to call; the clone takes its place.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let limit = self.limit;
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match Limited::new(body, limit).collect().await {
                Ok(body) => inner.call(Request::from_parts(parts, body.to_bytes())).await,
                Err(_) => Ok(respond::status(&decode::too_large(), Encoding::Json)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tower::ServiceExt as _;

    use super::{super::testing::Inner, *};

    async fn read(limit: usize, body: &'static str) -> u16 {
        let inner = Inner(move |request: Request<Bytes>| assert_eq!(request.body(), body));
        let request = Request::post("/").body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
        BodyLayer::new(limit).layer(inner).oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit() {
        assert_eq!(read(4, "").await, 200);
        assert_eq!(read(4, "1234").await, 200);
        assert_eq!(read(4, "12345").await, 413);
    }
}
