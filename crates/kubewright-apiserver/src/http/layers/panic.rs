//! Turns a panic in a later layer into a 500, so that the connection and its other requests go on.

use std::{
    any::Any,
    convert::Infallible,
    panic::AssertUnwindSafe,
    task::{Context, Poll},
};

use futures::{
    FutureExt,
    future::{CatchUnwind, Map},
};
use http::{Request, Response};
use tower::{Layer, Service, util::Oneshot};

use super::{super::respond, Answered, ApiBody};

/// Layer of [`CatchPanic`].
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct CatchPanicLayer;

impl<S> Layer<S> for CatchPanicLayer {
    type Service = CatchPanic<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CatchPanic { inner }
    }
}

/// Answers 500 when the inner service panics.
///
/// The inner service is called when the response is first polled, so that a queue in front of this service does not run
/// the layers behind it.
#[derive(Debug, Clone)]
pub(in crate::http) struct CatchPanic<S> {
    inner: S,
}

type Caught = Result<Answered, Box<dyn Any + Send>>;

impl<S, B> Service<Request<B>> for CatchPanic<S>
where
    S: Service<Request<B>, Response = Response<ApiBody>, Error = Infallible> + Clone,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Map<CatchUnwind<AssertUnwindSafe<Oneshot<S, Request<B>>>>, fn(Caught) -> Answered>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // A request shares nothing with others but what locks protect, and parking_lot's locks have no poisoned state.
        AssertUnwindSafe(Oneshot::new(self.inner.clone(), request)).catch_unwind().map(answer)
    }
}

fn answer(caught: Caught) -> Answered {
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(panic = text.unwrap_or("no message"), "a request caused a panic");
        let message = "This request caused apiserver to panic. Look in the logs for details.\n";
        Ok(respond::text(500, message))
    })
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::{super::testing::Inner, *};

    #[tokio::test]
    async fn a_panic_becomes_a_500_and_the_service_goes_on() {
        let inner = |request: Request<()>| assert_eq!(request.uri(), "/good", "a test panics");
        let service = CatchPanicLayer.layer(Inner(inner));
        for (path, code) in [("/bad", 500), ("/good", 200)] {
            let request = Request::get(path).body(()).unwrap();
            assert_eq!(service.clone().oneshot(request).await.unwrap().status(), code);
        }
    }
}
