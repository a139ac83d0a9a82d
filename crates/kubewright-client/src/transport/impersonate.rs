//! Acting as somebody else.
//!
//! A client may impersonate for all its requests (`kubectl --as`), and a single request may impersonate by
//! itself: put an [`Impersonation`] into the request's extensions, or use
//! [`RestRequest::impersonate`](crate::RestRequest::impersonate) or
//! [`Clients::impersonate`](crate::Clients::impersonate), which do.
//!
//! Who wins, from strongest to weakest: the request's extension; `Impersonate-*` headers that the request
//! already has; the client's impersonation. They never mix: a user from one and groups from another would be
//! a person who does not exist and has rights that nobody granted.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, Request};
use kube::{client::Body, config::AuthInfo};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tower::{BoxError, Layer};

use super::tap::{Tap, TapService};

const PREFIX: &str = "impersonate-";
const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// The bytes that client-go escapes in the keys of extras: all that no header name may have, and `%` itself.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Why an [`Impersonation`] cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImpersonationError {
    /// The API server refuses groups, a uid or extras without a user.
    #[error("impersonation needs a user: the API server refuses groups, a uid or extras alone")]
    NoUser,
    /// A value has a control character, or a key is too long.
    #[error("the impersonated {what} cannot be written into an HTTP header")]
    Unprintable {
        /// Which part it is: user, uid, group, or the key of the extra.
        what: String,
    },
}

/// Somebody to act as.
///
/// ```
/// use kubewright::client::Impersonation;
///
/// let who = Impersonation::user("system:serviceaccount:shop:cart")
///     .group("system:serviceaccounts")
///     .extra("scopes.example.com/level", "read");
/// assert_eq!(who.user_name(), "system:serviceaccount:shop:cart");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// Act as this user.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), uid: None, groups: Vec::new(), extra: BTreeMap::new() }
    }

    /// With this uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// As a member of this group too.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// With one more value under this key of the user's extra information.
    #[must_use]
    pub fn extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra.entry(key.into()).or_default().push(value.into());
        self
    }

    /// The user.
    pub fn user_name(&self) -> &str {
        &self.user
    }

    /// What a kubeconfig user says under `as`, `as-uid`, `as-groups` and `as-user-extra`. Taken out of it,
    /// because kube's own layer would add these to whatever a request impersonates.
    pub(crate) fn take_from(auth: &mut AuthInfo) -> Option<Self> {
        let user = auth.impersonate.take();
        let uid = auth.impersonate_uid.take();
        let groups = auth.impersonate_groups.take().unwrap_or_default();
        let extra: BTreeMap<_, _> =
            auth.impersonate_user_extra.take().unwrap_or_default().into_iter().collect();
        if user.is_none() && uid.is_none() && groups.is_empty() && extra.is_empty() {
            return None;
        }
        Some(Self { user: user.unwrap_or_default(), uid, groups, extra })
    }

    /// Makes a request act as this user, whatever stands below it: as headers for a client without our
    /// layers, and as an extension, which our layer prefers to its own client's.
    pub(crate) fn put_on(&self, request: &mut Request<Body>) -> Result<(), ImpersonationError> {
        replace_headers(request, self.headers()?);
        request.extensions_mut().insert(self.clone());
        Ok(())
    }

    /// The headers to send, or why there are none.
    pub(crate) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ImpersonationError> {
        if self.user.is_empty() {
            return Err(ImpersonationError::NoUser);
        }
        let unprintable = |what: &str| ImpersonationError::Unprintable { what: what.to_owned() };
        // Bytes, not ASCII text: Go sends names in UTF-8 as they are and so do we.
        let value =
            |text: &str, what: &str| HeaderValue::from_bytes(text.as_bytes()).map_err(|_| unprintable(what));
        let mut headers = vec![(USER, value(&self.user, "user")?)];
        if let Some(uid) = &self.uid {
            headers.push((UID, value(uid, "uid")?));
        }
        for group in &self.groups {
            headers.push((GROUP, value(group, "group")?));
        }
        for (key, values) in &self.extra {
            let name = format!("impersonate-extra-{}", percent_encode(key.as_bytes(), &ESCAPED));
            let name = HeaderName::try_from(name).map_err(|_| unprintable(key))?;
            for text in values {
                headers.push((name.clone(), value(text, key)?));
            }
        }
        Ok(headers)
    }
}

/// Removes all impersonation from a request and puts another in its place.
fn replace_headers(request: &mut Request<Body>, headers: Vec<(HeaderName, HeaderValue)>) {
    let names = request.headers().keys().filter(|name| name.as_str().starts_with(PREFIX));
    let others: Vec<HeaderName> = names.cloned().collect();
    for name in others {
        request.headers_mut().remove(name);
    }
    request.headers_mut().extend(headers);
}

/// Adds `Impersonate-*` headers: the request's own, or else the client's.
#[derive(Debug, Clone)]
pub struct ImpersonationLayer {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ImpersonationLayer {
    /// A layer that impersonates `who` unless a request says otherwise; without `who`, only requests that say
    /// so impersonate.
    pub fn new(who: Option<&Impersonation>) -> Result<Self, ImpersonationError> {
        let headers = who.map(Impersonation::headers).transpose()?.unwrap_or_default();
        Ok(Self { headers })
    }
}

impl<S> Layer<S> for ImpersonationLayer {
    type Service = TapService<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        TapService::new(inner, self.clone())
    }
}

impl Tap for ImpersonationLayer {
    type Note = ();

    fn request(&self, request: &mut Request<Body>) -> Result<(), BoxError> {
        if let Some(who) = request.extensions().get::<Impersonation>().cloned() {
            replace_headers(request, who.headers()?);
        } else if !request.headers().keys().any(|name| name.as_str().starts_with(PREFIX)) {
            request.headers_mut().extend(self.headers.iter().cloned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tower::ServiceExt as _;

    use super::*;

    /// The impersonation headers that reach the server.
    async fn sent(client: Option<Impersonation>, request: Request<Body>) -> Vec<(String, String)> {
        let server = tower::service_fn(|request: Request<Body>| async move {
            let seen = request.headers().iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
            let seen: Vec<_> = seen
                .map(|(name, value)| {
                    (name.to_string(), String::from_utf8(value.as_bytes().to_vec()).unwrap())
                })
                .collect();
            Ok::<_, BoxError>(Response::new(seen))
        });
        let layer = ImpersonationLayer::new(client.as_ref()).unwrap();
        layer.layer(server).oneshot(request).await.unwrap().into_body()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn bare() -> Request<Body> {
        Request::get("/").body(Body::empty()).unwrap()
    }

    #[tokio::test]
    async fn the_client_impersonates_on_every_request() {
        let who = Impersonation::user("alice").uid("42").group("dev").group("ops").extra("scope", "read");
        let expected = pairs(&[
            ("impersonate-user", "alice"),
            ("impersonate-uid", "42"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "ops"),
            ("impersonate-extra-scope", "read"),
        ]);
        assert_eq!(sent(Some(who), bare()).await, expected);
    }

    #[tokio::test]
    async fn a_request_replaces_the_whole_impersonation_of_its_client() {
        let mut request = bare();
        request.extensions_mut().insert(Impersonation::user("bob"));
        request.headers_mut().insert(GROUP, HeaderValue::from_static("left over"));
        let client = Impersonation::user("alice").group("system:masters");
        assert_eq!(sent(Some(client), request).await, pairs(&[("impersonate-user", "bob")]));
    }

    #[tokio::test]
    async fn headers_that_a_request_brings_keep_the_client_out() {
        let mut request = bare();
        request.headers_mut().insert(USER, HeaderValue::from_static("carol"));
        let client = Impersonation::user("alice").group("system:masters");
        assert_eq!(sent(Some(client), request).await, pairs(&[("impersonate-user", "carol")]));
    }

    #[tokio::test]
    async fn without_any_impersonation_there_are_no_headers() {
        assert!(sent(None, bare()).await.is_empty());
    }

    #[tokio::test]
    async fn a_request_without_a_user_is_refused_and_not_sent_as_ourselves() {
        let server = tower::service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(())) });
        let mut request = bare();
        request.extensions_mut().insert(Impersonation::user("").group("system:masters"));
        let error = ImpersonationLayer::new(None).unwrap().layer(server).oneshot(request).await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&ImpersonationError::NoUser));
    }

    #[test]
    fn keys_of_extras_are_escaped_as_client_go_escapes_them() {
        let name = |key: &str| {
            let who = Impersonation::user("x").extra(key, "v");
            who.headers().unwrap()[1].0.as_str().strip_prefix("impersonate-extra-").unwrap().to_owned()
        };
        // Header names are case-insensitive and the server lowers them, so lower-case hex is the same.
        assert_eq!(name("example.com/scopes"), "example.com%2fscopes");
        assert_eq!(name("100%"), "100%25");
        assert_eq!(name("a b:c"), "a%20b%3ac");
        assert_eq!(name("!#$&'*+-.^_`|~"), "!#$&'*+-.^_`|~");
        assert_eq!(name("\u{e9}"), "%c3%a9");
    }

    #[test]
    fn names_in_other_scripts_are_sent_as_they_are() {
        let headers = Impersonation::user("小明").headers().unwrap();
        assert_eq!(headers[0].1.as_bytes(), "小明".as_bytes());
    }

    #[test]
    fn a_name_with_a_line_break_is_refused() {
        let error = Impersonation::user("a\r\nimpersonate-group: system:masters").headers().unwrap_err();
        assert_eq!(error, ImpersonationError::Unprintable { what: "user".into() });
    }
}
