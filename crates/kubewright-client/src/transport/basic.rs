//! User name and password.
//!
//! kube-apiserver has not taken passwords since 1.19; authenticating proxies in front of it still do. A
//! request that has an `Authorization` header already keeps it.

use std::fmt;

use base64::Engine as _;
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::client::Body;
use secrecy::{ExposeSecret, SecretString};
use tower::BoxError;

use super::tap::{Tap, TapLayer, put_if_absent};

/// A user name and a password. Prints without the password.
#[derive(Clone)]
pub struct BasicAuth {
    user: String,
    header: HeaderValue,
}

impl BasicAuth {
    /// Credentials from their two halves.
    pub fn new(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        let user = user.into();
        let header = header(&user, &password.into());
        Self { user, header }
    }
}

fn header(user: &str, password: &SecretString) -> HeaderValue {
    let pair = SecretString::from(format!("{user}:{}", password.expose_secret()));
    let text = base64::engine::general_purpose::STANDARD.encode(pair.expose_secret());
    let mut header = HeaderValue::try_from(format!("Basic {text}"))
        .expect("base64 has only characters that a header may have");
    header.set_sensitive(true);
    header
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Tap for BasicAuth {
    type Note = ();

    fn request(&self, request: &mut Request<Body>) -> Result<(), BoxError> {
        put_if_absent(request, AUTHORIZATION, &self.header);
        Ok(())
    }
}

/// Puts [`BasicAuth`] on every request that has no `Authorization`.
pub type BasicAuthLayer = TapLayer<BasicAuth>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_does_not_print() {
        let credentials = BasicAuth::new("alice", "hunter2");
        let text = format!(
            "{credentials:?} {:?} {:?}",
            credentials.header,
            BasicAuthLayer::new(credentials.clone())
        );
        assert!(text.contains("alice"));
        assert!(!text.contains("hunter2") && !text.contains("YWxpY2U6aHVudGVyMg"), "{text}");
    }

    #[test]
    fn the_header_is_what_rfc_7617_says() {
        assert_eq!(BasicAuth::new("Aladdin", "open sesame").header, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
