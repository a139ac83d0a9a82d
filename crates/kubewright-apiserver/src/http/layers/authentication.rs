//! Authenticates requests.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::Either;
use http::{Request, Response};
use tower::{Layer, Service};

use super::{ApiBody, Guarded, refuse};
use crate::authn::{Authenticator, User};

/// The user of the connection, in the request's extensions: of its client certificate, or of an in-process client.
#[derive(Debug, Clone)]
pub(in crate::http) struct Peer(pub(in crate::http) Arc<User>);

/// Layer of [`Authenticate`].
#[derive(Debug, Clone)]
pub(in crate::http) struct AuthenticationLayer {
    authenticator: Arc<Authenticator>,
}

impl AuthenticationLayer {
    pub(in crate::http) fn new(authenticator: Arc<Authenticator>) -> Self {
        Self { authenticator }
    }
}

impl<S> Layer<S> for AuthenticationLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authenticate { inner, authenticator: Arc::clone(&self.authenticator) }
    }
}

/// Adds the [`User`] to the request's extensions, or answers 401.
#[derive(Debug, Clone)]
pub(in crate::http) struct Authenticate<S> {
    inner: S,
    authenticator: Arc<Authenticator>,
}

impl<S, B> Service<Request<B>> for Authenticate<S>
where
    S: Service<Request<B>, Response = Response<ApiBody>, Error = Infallible>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().map(|peer| &*peer.0);
        match self.authenticator.authenticate(peer, request.headers()) {
            Ok(user) => {
                request.extensions_mut().insert(user);
                Either::Right(self.inner.call(request))
            }
            Err(refusal) => refuse(request.headers(), &refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::{
        super::{testing::Inner, user},
        *,
    };
    use crate::{ApiServer, authn::TokenFile};

    fn layer() -> AuthenticationLayer {
        let tokens = TokenFile::parse("secret,alice,1").unwrap();
        let server = ApiServer::builder().tokens(tokens).in_process().unwrap();
        AuthenticationLayer::new(Arc::clone(&server.components().authenticator))
    }

    async fn authenticate(name: &'static str, request: http::request::Builder) -> u16 {
        let inner = Inner(move |request: Request<()>| assert_eq!(user(&request).unwrap().name, name));
        layer().layer(inner).oneshot(request.body(()).unwrap()).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn later_layers_find_the_user() {
        let token = Request::get("/").header("authorization", "Bearer secret");
        assert_eq!(authenticate("alice", token).await, 200);
        let peer = User { name: "bob".into(), ..User::default() };
        assert_eq!(authenticate("bob", Request::get("/").extension(Peer(peer.into()))).await, 200);
        assert_eq!(authenticate("system:anonymous", Request::get("/")).await, 200);
    }

    #[tokio::test]
    async fn a_wrong_token_is_a_401() {
        let request = Request::get("/").header("authorization", "Bearer wrong");
        assert_eq!(authenticate("nobody", request).await, 401);
    }
}
