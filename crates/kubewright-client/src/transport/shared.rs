//! The layers of a transport, for whoever asks, without a queue before them.
//!
//! kube's client sends every request through a queue to a task that owns the layers, and gets back a future to wait for. The task
//! does nothing but to call them. On several threads that is what wakes most of them: who sends usually has woken somebody
//! else before, a writer of events say, and two that are ready are more than one thread takes at once. So our own clients
//! call the layers themselves, under a lock that is held for the call and not for the answer.
//!
//! The queue stays for kube's client, and for layers that are not always ready, such as a limit on requests: one that had to be
//! waited for once is left to the queue from then on, because it remembers only one who waits.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures::future::{BoxFuture, Either};
use http::{Request, Response};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use kube::client::{Body, DynBody};
use parking_lot::Mutex;
use tower::{BoxError, Layer, Service};

use super::{TransportService, erase};

/// The body of an answer, with the errors that kube's has.
pub type AnswerBody = UnsyncBoxBody<Bytes, kube::Error>;

/// An answer that is waited for.
pub(super) type Calling = BoxFuture<'static, Result<Response<Box<DynBody>>, BoxError>>;

/// Layers that several share. A clone is a handle to the same.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<State>>);

struct State {
    layers: TransportService,
    /// The queue has been told that they are ready, and is about to call.
    promised: bool,
    /// They are not always ready.
    queued: bool,
}

impl Shared {
    /// Calls them, or gives the request back for the queue.
    pub(super) fn call_now(&self, request: Request<Body>) -> Either<Calling, Request<Body>> {
        let mut state = self.0.lock();
        if state.promised || state.queued {
            return Either::Right(request);
        }
        match state.layers.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Either::Left(state.layers.call(request)),
            // The queue waits, or is told why that is in vain.
            Poll::Ready(Err(_)) | Poll::Pending => {
                state.queued = true;
                Either::Right(request)
            }
        }
    }
}

/// For the queue.
impl Service<Request<Body>> for Shared {
    type Response = Response<Box<DynBody>>;
    type Error = BoxError;
    type Future = Calling;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let mut state = self.0.lock();
        let ready = state.layers.poll_ready(cx);
        match ready {
            Poll::Ready(Ok(())) => state.promised = true,
            Poll::Ready(Err(_)) | Poll::Pending => state.queued = true,
        }
        ready
    }

    fn call(&mut self, request: Request<Body>) -> Calling {
        let mut state = self.0.lock();
        state.promised = false;
        state.layers.call(request)
    }
}

/// Shares what is below, and tells how.
#[derive(Default)]
pub(super) struct SharedLayer(Mutex<Option<Shared>>);

impl SharedLayer {
    pub(super) fn into_shared(self) -> Option<Shared> {
        self.0.into_inner()
    }
}

impl<S, B> Layer<S> for SharedLayer
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Service = Shared;

    fn layer(&self, inner: S) -> Shared {
        let state = State { layers: erase(inner), promised: false, queued: false };
        let shared = Shared(Arc::new(Mutex::new(state)));
        *self.0.lock() = Some(shared.clone());
        shared
    }
}

/// What kube's client makes of an answer of the layers.
pub(super) async fn as_kubes(answer: Calling) -> kube::Result<Response<AnswerBody>> {
    let answer = answer.await.map_err(as_kube_tells)?;
    Ok(answer.map(|body| body.map_err(kube::Error::Service).boxed_unsync()))
}

fn as_kube_tells(error: BoxError) -> kube::Error {
    let error = match error.downcast::<kube::Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<hyper::Error>() {
        Ok(error) => kube::Error::HyperError(*error),
        Err(error) => kube::Error::Service(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::Pin, task::ready, time::Duration};

    use futures::{FutureExt as _, future::join_all};
    use tokio::time::{Instant, Sleep, sleep};

    use super::*;
    use crate::Transport;

    /// Answers with the path.
    async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        Ok(Response::new(Body::from(request.uri().path().as_bytes().to_vec())))
    }

    /// Takes a request every second, and must not be called otherwise. Remembers one who waits.
    struct Limited {
        next: Pin<Box<Sleep>>,
        ready: bool,
    }

    impl Service<Request<Body>> for Limited {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            if !self.ready {
                ready!(self.next.as_mut().poll(cx));
                self.ready = true;
            }
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            assert!(self.ready, "it was not asked");
            self.ready = false;
            self.next.as_mut().reset(Instant::now() + Duration::from_secs(1));
            echo(request).boxed()
        }
    }

    fn get(path: &str) -> Request<Body> {
        Request::get(path).body(Body::empty()).unwrap()
    }

    async fn text(answer: Response<AnswerBody>) -> Bytes {
        answer.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_request_is_sent_by_the_task_that_asks() {
        let transport = Transport::over(tower::service_fn(echo), "default").build().unwrap();
        // Nobody else gets a turn.
        let answer = transport.send(get("/here")).now_or_never().expect("there is no queue").unwrap();
        assert_eq!(text(answer).await, "/here");
        assert!(transport.client().send(get("/here")).now_or_never().is_none(), "and here is one");
    }

    #[tokio::test]
    async fn a_client_of_somebody_else_keeps_its_queue() {
        let transport = Transport::from(kube::Client::new(tower::service_fn(echo), "default"));
        assert_eq!(text(transport.send(get("/there")).await.unwrap()).await, "/there");
    }

    #[tokio::test(start_paused = true)]
    async fn layers_that_have_to_be_waited_for_are_left_to_the_queue() {
        let limited = Limited { next: Box::pin(sleep(Duration::ZERO)), ready: true };
        let transport = Transport::over(limited, "default").build().unwrap();
        let began = Instant::now();
        let kube = transport.client();
        join_all((0..6).map(async |turn| {
            if turn % 2 == 0 {
                assert_eq!(text(transport.send(get("/ours")).await.unwrap()).await, "/ours");
            } else {
                kube.send(get("/kube")).await.unwrap();
            }
        }))
        .await;
        assert_eq!(began.elapsed().as_secs(), 5, "all of them were served, one a second");
    }

    #[tokio::test]
    async fn what_the_queue_was_promised_nobody_else_takes() {
        let layer = SharedLayer::default();
        let mut queue = layer.layer(Limited { next: Box::pin(sleep(Duration::ZERO)), ready: true });
        let shared = layer.into_shared().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(queue.poll_ready(&mut cx).is_ready());
        assert!(matches!(shared.call_now(get("/ours")), Either::Right(_)));
        queue.call(get("/kube")).await.unwrap();
    }

    #[tokio::test]
    async fn errors_are_those_of_kubes_client() {
        let refusing = tower::service_fn(|_: Request<Body>| async {
            Err::<Response<Body>, BoxError>(kube::Error::LinesCodecMaxLineLengthExceeded.into())
        });
        let transport = Transport::over(refusing, "default").build().unwrap();
        let ours = transport.send(get("/")).await.unwrap_err();
        let kubes = transport.client().send(get("/")).await.unwrap_err();
        assert!(matches!(ours, kube::Error::LinesCodecMaxLineLengthExceeded));
        assert_eq!(ours.to_string(), kubes.to_string());
    }
}
