//! Interceptors: layers that act on the request, and on the head of the response.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// Status and headers of the response, or the transport error.
pub type ResponseHead<'a> = Result<(StatusCode, &'a HeaderMap), &'a BoxError>;

/// Hook that sees every request before it is sent and every response when its head has arrived.
pub trait Interceptor: Clone {
    /// State kept from the request to its response.
    type State: Send + 'static;

    /// Changes the request, or rejects it.
    fn request(&self, request: &mut Request<Body>) -> Result<Self::State, BoxError>;

    /// Observes the response.
    fn response(&self, state: Self::State, response: ResponseHead<'_>) {
        let _ = (state, response);
    }
}

/// [`tower::Layer`] of an [`Interceptor`].
#[derive(Debug, Clone)]
pub struct InterceptorLayer<T>(T);

impl<T> InterceptorLayer<T> {
    /// Creates a layer.
    pub fn new(interceptor: T) -> Self {
        Self(interceptor)
    }
}

impl<S, T: Clone> Layer<S> for InterceptorLayer<T> {
    type Service = InterceptorService<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        InterceptorService { inner, interceptor: self.0.clone() }
    }
}

/// The service of an [`InterceptorLayer`].
#[derive(Debug, Clone)]
pub struct InterceptorService<S, T> {
    inner: S,
    interceptor: T,
}

impl<S, T> InterceptorService<S, T> {
    pub(super) fn new(inner: S, interceptor: T) -> Self {
        Self { inner, interceptor }
    }
}

impl<S, T, B> Service<Request<Body>> for InterceptorService<S, T>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    T: Interceptor + Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let state = match self.interceptor.request(&mut request) {
            Ok(state) => state,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let response = self.inner.call(request);
        let interceptor = self.interceptor.clone();
        Box::pin(async move {
            let response = response.await.map_err(Into::into);
            interceptor
                .response(state, response.as_ref().map(|response| (response.status(), response.headers())));
            response
        })
    }
}

/// Sets a header unless the request has it.
pub(super) fn insert_if_absent(request: &mut Request<Body>, name: HeaderName, value: &HeaderValue) {
    request.headers_mut().entry(name).or_insert_with(|| value.clone());
}
