//! Parses what a request is about, once for all later layers.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower::{Layer, Service};

use super::{super::RequestInfo, ApiBody};

/// Layer of [`ParseRequestInfo`].
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct RequestInfoLayer;

impl<S> Layer<S> for RequestInfoLayer {
    type Service = ParseRequestInfo<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ParseRequestInfo { inner }
    }
}

/// Adds the [`RequestInfo`] to the request's extensions.
#[derive(Debug, Clone)]
pub(in crate::http) struct ParseRequestInfo<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for ParseRequestInfo<S>
where
    S: Service<Request<B>, Response = Response<ApiBody>, Error = Infallible>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let info = RequestInfo::parse(request.method(), request.uri());
        request.extensions_mut().insert(info);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::{
        super::{request_info, testing::Inner},
        *,
    };

    #[tokio::test]
    async fn later_layers_find_the_request_info() {
        let inner = Inner(|request: Request<()>| {
            let info = request_info(&request).unwrap();
            assert_eq!((&*info.verb, &*info.resource, &*info.name), ("get", "pods", "a"));
        });
        let request = Request::get("/api/v1/namespaces/x/pods/a").body(()).unwrap();
        assert_eq!(RequestInfoLayer.layer(inner).oneshot(request).await.unwrap().status(), 200);
    }
}
