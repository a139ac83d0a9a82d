//! The layers that a request passes before the handler, each a [`tower::Layer`] of its own.
//!
//! A layer either answers a request itself or hands it to the next one. What it finds out travels in the request's
//! extensions: [`RequestInfo`] from the request info layer, [`User`](crate::authn::User) from authentication, replaced by
//! impersonation. The body stays unread until the [`body`] layer, behind authorization.

pub(super) mod authentication;
pub(super) mod authorization;
pub(super) mod body;
pub(super) mod impersonation;
pub(super) mod panic;
pub(super) mod request_info;

use std::convert::Infallible;

use futures::future::{Either, Ready, ready};
use http::{HeaderMap, Request, Response, header};

use super::{ApiBody, RequestInfo, negotiate, respond};
use crate::{authn::User, status::Status};

/// The result of a service in the stack.
pub(super) type Answered = Result<Response<ApiBody>, Infallible>;

/// The future of a layer that answers at once or passes the request on.
pub(super) type Guarded<F> = Either<Ready<Answered>, F>;

/// Answers a request with a refusal, in the encoding that the client accepts.
fn refuse<F>(headers: &HeaderMap, refusal: &Status) -> Guarded<F> {
    Either::Left(ready(Ok(refusal_response(headers, refusal))))
}

/// Returns the response of a refusal, in the encoding that the client accepts.
pub(super) fn refusal_response(headers: &HeaderMap, refusal: &Status) -> Response<ApiBody> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    respond::status(refusal, negotiate::of_refusal(accept))
}

/// Returns what the request info layer has found out.
pub(super) fn request_info<B>(request: &Request<B>) -> Result<&RequestInfo, Status> {
    request.extensions().get().ok_or_else(|| Status::internal_error("no RequestInfo found in the context"))
}

/// Returns the user that authentication or impersonation has found out.
pub(super) fn user<B>(request: &Request<B>) -> Result<&User, Status> {
    request.extensions().get().ok_or_else(|| Status::internal_error("no User found in the context"))
}

#[cfg(test)]
mod testing {
    //! The inner service of the layers' tests.

    use std::{
        convert::Infallible,
        task::{Context, Poll},
    };

    use futures::future::{Ready, ready};
    use http::{Request, Response};
    use tower::Service;

    use super::{Answered, ApiBody};

    /// Answers every request with 200 and hands it to a function first.
    #[derive(Debug, Clone)]
    pub(super) struct Inner<F>(pub(super) F);

    impl<B, F: FnMut(Request<B>)> Service<Request<B>> for Inner<F> {
        type Response = Response<ApiBody>;
        type Error = Infallible;
        type Future = Ready<Answered>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<B>) -> Self::Future {
            (self.0)(request);
            ready(Ok(Response::new(ApiBody::whole("ok"))))
        }
    }
}
