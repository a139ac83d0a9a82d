//! User name and password.
//!
//! kube-apiserver has not taken passwords since 1.19; authenticating proxies in front of it still do. A
//! request that has an `Authorization` header already keeps it.

use std::{
    fmt,
    task::{Context, Poll},
};

use base64::Engine as _;
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::client::Body;
use secrecy::{ExposeSecret, SecretString};
use tower::{Layer, Service};

/// A user name and a password. Prints without the password.
#[derive(Clone)]
pub struct BasicAuth {
    user: String,
    password: SecretString,
}

impl BasicAuth {
    /// Credentials from their two halves.
    pub fn new(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    fn header(&self) -> HeaderValue {
        let pair = format!("{}:{}", self.user, self.password.expose_secret());
        let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        let mut value =
            HeaderValue::try_from(text).expect("base64 has only characters that a header may have");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Puts [`BasicAuth`] on every request that has no `Authorization`.
#[derive(Debug, Clone)]
pub struct BasicAuthLayer(BasicAuth);

impl BasicAuthLayer {
    /// A layer that sends these credentials.
    pub fn new(credentials: BasicAuth) -> Self {
        Self(credentials)
    }
}

impl<S> Layer<S> for BasicAuthLayer {
    type Service = BasicAuthService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        BasicAuthService { inner, header: self.0.header() }
    }
}

/// The service of [`BasicAuthLayer`].
#[derive(Debug, Clone)]
pub struct BasicAuthService<S> {
    inner: S,
    header: HeaderValue,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for BasicAuthService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| self.header.clone());
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_does_not_print() {
        let credentials = BasicAuth::new("alice", "hunter2");
        let text = format!(
            "{credentials:?} {:?} {:?}",
            credentials.header(),
            BasicAuthLayer::new(credentials.clone())
        );
        assert!(text.contains("alice"));
        assert!(!text.contains("hunter2") && !text.contains("YWxpY2U6aHVudGVyMg"), "{text}");
    }

    #[test]
    fn the_header_is_what_rfc_7617_says() {
        assert_eq!(BasicAuth::new("Aladdin", "open sesame").header(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
