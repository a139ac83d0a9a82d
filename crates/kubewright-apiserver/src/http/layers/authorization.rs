//! Authorizes requests.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::Either;
use http::{Request, Response};
use tower::{Layer, Service};

use super::{ApiBody, Guarded, refuse, request_info, user};
use crate::{
    authz::{Access, Authorizer},
    status::Status,
};

/// Layer of [`Authorize`].
#[derive(Debug, Clone)]
pub(in crate::http) struct AuthorizationLayer {
    authorizer: Arc<Authorizer>,
}

impl AuthorizationLayer {
    pub(in crate::http) fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }
}

impl<S> Layer<S> for AuthorizationLayer {
    type Service = Authorize<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authorize { inner, authorizer: Arc::clone(&self.authorizer) }
    }
}

/// Passes on what the user may do, and answers 403 otherwise.
#[derive(Debug, Clone)]
pub(in crate::http) struct Authorize<S> {
    inner: S,
    authorizer: Arc<Authorizer>,
}

impl<S> Authorize<S> {
    fn check<B>(&self, request: &Request<B>) -> Result<(), Status> {
        let (info, user) = (request_info(request)?, user(request)?);
        let access = info.access();
        if self.authorizer.decide(user, &access).allowed {
            return Ok(());
        }
        // Access to `namespaces/x` is decided in that namespace, but the refusal names the cluster scope.
        let named = if access.resource == "namespaces" { Access { namespace: "", ..access } } else { access };
        Err(named.refusal(user))
    }
}

impl<S, B> Service<Request<B>> for Authorize<S>
where
    S: Service<Request<B>, Response = Response<ApiBody>, Error = Infallible>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.check(&request) {
            Ok(()) => Either::Right(self.inner.call(request)),
            Err(refusal) => refuse(request.headers(), &refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tower::ServiceExt as _;

    use super::{
        super::{super::RequestInfo, testing::Inner},
        *,
    };
    use crate::{
        ApiServer,
        authn::{MASTERS, User},
    };

    async fn authorize(groups: &[&str], path: &'static str) -> u16 {
        let server = ApiServer::builder().in_process().unwrap();
        let layer = AuthorizationLayer::new(Arc::clone(&server.components().authorizer));
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let request = Request::get(path)
            .extension(RequestInfo::parse(&Method::GET, &path.parse().unwrap()))
            .extension(User { name: "alice".into(), groups, ..User::default() })
            .body(())
            .unwrap();
        layer.layer(Inner(|_: Request<()>| ())).oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_user_passes_as_far_as_its_roles_allow() {
        assert_eq!(authorize(&[MASTERS], "/api/v1/secrets").await, 200);
        assert_eq!(authorize(&[], "/api/v1/secrets").await, 403);
        assert_eq!(authorize(&["system:authenticated"], "/version").await, 200);
        assert_eq!(authorize(&[], "/metrics").await, 403);
    }

    #[tokio::test]
    async fn a_request_without_a_user_does_not_pass() {
        let server = ApiServer::builder().in_process().unwrap();
        let layer = AuthorizationLayer::new(Arc::clone(&server.components().authorizer));
        let request = Request::get("/version")
            .extension(RequestInfo::parse(&Method::GET, &"/version".parse().unwrap()))
            .body(())
            .unwrap();
        let response = layer.layer(Inner(|_: Request<()>| ())).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 500);
    }
}
