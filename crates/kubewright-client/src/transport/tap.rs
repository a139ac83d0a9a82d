//! What the small layers have in common: something to do with a request, and perhaps with its answer.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// What came back: status and headers, or the failure to send.
pub type Answer<'a> = Result<(StatusCode, &'a HeaderMap), &'a BoxError>;

/// Sees every request before it is sent and every answer when its head is there.
pub trait Tap: Clone {
    /// What is remembered from the request until its answer.
    type Note: Send + 'static;

    /// Changes the request, or refuses to send it.
    fn request(&self, request: &mut Request<Body>) -> Result<Self::Note, BoxError>;

    /// Looks at the answer.
    fn answer(&self, note: Self::Note, answer: Answer<'_>) {
        let _ = (note, answer);
    }
}

/// A [`tower::Layer`] of one tap.
#[derive(Debug, Clone)]
pub struct TapLayer<T>(T);

impl<T> TapLayer<T> {
    /// A layer that does this with every request.
    pub fn new(tap: T) -> Self {
        Self(tap)
    }
}

impl<S, T: Clone> Layer<S> for TapLayer<T> {
    type Service = TapService<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        TapService { inner, tap: self.0.clone() }
    }
}

/// The service of a [`TapLayer`].
#[derive(Debug, Clone)]
pub struct TapService<S, T> {
    inner: S,
    tap: T,
}

impl<S, T> TapService<S, T> {
    pub(super) fn new(inner: S, tap: T) -> Self {
        Self { inner, tap }
    }
}

impl<S, T, B> Service<Request<Body>> for TapService<S, T>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    T: Tap + Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let note = match self.tap.request(&mut request) {
            Ok(note) => note,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let answer = self.inner.call(request);
        let tap = self.tap.clone();
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            tap.answer(note, answer.as_ref().map(|response| (response.status(), response.headers())));
            answer
        })
    }
}

/// Puts a header on a request that has none of this name.
pub(super) fn put_if_absent(request: &mut Request<Body>, name: HeaderName, value: &HeaderValue) {
    request.headers_mut().entry(name).or_insert_with(|| value.clone());
}
