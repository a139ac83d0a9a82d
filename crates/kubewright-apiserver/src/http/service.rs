//! The layers of the server, put together.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{Service, ServiceBuilder};

use super::{
    ApiBody, decode,
    handler::Handler,
    layers::{
        Answered,
        authentication::{Authenticate, AuthenticationLayer, Peer},
        authorization::{AuthorizationLayer, Authorize},
        body::{BodyLayer, ReadBody},
        impersonation::{Impersonate, ImpersonationLayer},
        panic::{CatchPanic, CatchPanicLayer},
        request_info::{ParseRequestInfo, RequestInfoLayer},
    },
};
use crate::{authn::User, components::Components};

type Stack = CatchPanic<ParseRequestInfo<Authenticate<Impersonate<Authorize<ReadBody<Handler>>>>>>;

/// Returns the layers of the server in kube-apiserver's order, a request passes them from the first to the last.
fn stack(components: &Arc<Components>) -> Stack {
    let authorizer = || Arc::clone(&components.authorizer);
    ServiceBuilder::new()
        .layer(CatchPanicLayer)
        .layer(RequestInfoLayer)
        .layer(AuthenticationLayer::new(Arc::clone(&components.authenticator)))
        // An audit layer belongs here: it sees the authenticated user, and the impersonated one in the response.
        .layer(ImpersonationLayer::new(authorizer()))
        // A priority and fairness layer belongs here: requests queue before their rights and bodies cost anything.
        .layer(AuthorizationLayer::new(authorizer()))
        .layer(BodyLayer::new(decode::MAX_BODY))
        .service(Handler::new(Arc::clone(components)))
}

/// The API server as a [`tower::Service`], for any type of request body. Clones share everything.
#[derive(Clone)]
pub struct ApiService {
    stack: Stack,
    peer: Option<Arc<User>>,
}

impl fmt::Debug for ApiService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiService").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl ApiService {
    pub(crate) fn new(components: &Arc<Components>) -> Self {
        Self { stack: stack(components), peer: None }
    }

    /// Returns the service of a connection whose user is authenticated already: by its client certificate, or because it
    /// is in process.
    #[must_use]
    pub fn for_peer(&self, user: User) -> Self {
        Self { stack: self.stack.clone(), peer: Some(Arc::new(user)) }
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Answered>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(user) = &self.peer {
            request.extensions_mut().insert(Peer(Arc::clone(user)));
        }
        Box::pin(self.stack.call(request))
    }
}
