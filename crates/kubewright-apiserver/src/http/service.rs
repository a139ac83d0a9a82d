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

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        sync::atomic::{AtomicBool, Ordering},
    };

    use http_body::Frame;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{ApiServer, authn::MASTERS};

    /// A body that records whether it was read.
    #[derive(Debug, Clone, Default)]
    struct Recorded(Arc<AtomicBool>);

    impl Recorded {
        fn was_read(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl http_body::Body for Recorded {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let first = !self.0.swap(true, Ordering::SeqCst);
            Poll::Ready(first.then(|| Ok(Frame::data(Bytes::from_static(b"{}")))))
        }
    }

    async fn post(server: &ApiServer, credentials: &str, user: Option<User>) -> (u16, bool) {
        let body = Recorded::default();
        let mut request = Request::post("/api/v1/namespaces").header("content-type", "application/json");
        if !credentials.is_empty() {
            request = request.header("authorization", credentials);
        }
        let service = user.map_or(server.service(), |user| server.service().for_peer(user));
        let response = service.oneshot(request.body(body.clone()).unwrap()).await.unwrap();
        (response.status().as_u16(), body.was_read())
    }

    #[tokio::test]
    async fn a_body_is_not_read_before_its_user_is_authenticated_and_authorized() {
        let server = ApiServer::builder().in_process().unwrap();
        let strict = ApiServer::builder().anonymous_auth(false).in_process().unwrap();
        let admin = User { name: "admin".into(), groups: vec![MASTERS.into()], ..User::default() };
        assert_eq!(post(&server, "Bearer wrong", None).await, (401, false));
        assert_eq!(post(&strict, "", None).await, (401, false), "no credentials");
        assert_eq!(post(&server, "", None).await, (403, false), "system:anonymous");
        assert_eq!(post(&server, "", Some(admin)).await, (422, true), "a namespace without a name");
    }
}
