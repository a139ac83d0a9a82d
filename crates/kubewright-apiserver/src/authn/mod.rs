//! Authentication: the user of a request.
//!
//! Authenticators are tried in order: the client certificate of the connection, custom authenticators, a bearer token
//! (`ServiceAccount`, then the static token file). A request without credentials belongs to `system:anonymous`; one with
//! wrong credentials is a 401. Custom authenticators implement [`RequestAuthenticator`].

mod jwt;
pub(crate) mod service_account;
mod token_file;
pub(crate) mod x509;

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::HeaderMap;

pub use self::{
    service_account::KeyError,
    token_file::{TokenFile, TokenFileError},
};
use crate::{registry::ObjectReader, status::Status};

/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of `system:anonymous`.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// An authenticated user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes that the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns the user of requests without credentials.
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Returns the user of the server itself.
    pub fn system() -> Self {
        Self { name: "system:apiserver".into(), groups: vec![MASTERS.into()], ..Self::default() }
    }

    /// Returns whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// A custom authenticator: headers of an authenticating proxy, tokens of an identity provider.
///
/// ```
/// use http::HeaderMap;
/// use kubewright_apiserver::{
///     ApiServer,
///     authn::{RequestAuthenticator, User},
///     registry::ObjectReader,
///     status::Status,
/// };
///
/// /// Trusts a proxy that sets the user name.
/// #[derive(Debug)]
/// struct Proxy;
///
/// impl RequestAuthenticator for Proxy {
///     fn authenticate(&self, _: &dyn ObjectReader, headers: &HeaderMap) -> Result<Option<User>, Status> {
///         let name = headers.get("x-remote-user").and_then(|value| value.to_str().ok());
///         Ok(name.map(|name| User { name: name.to_owned(), ..User::default() }))
///     }
/// }
///
/// let server = ApiServer::builder().authenticator(Proxy).in_process()?;
/// # Ok::<(), kubewright_apiserver::StartError>(())
/// ```
pub trait RequestAuthenticator: fmt::Debug + Send + Sync + 'static {
    /// Returns the user of a request with these headers; `None` without credentials that this authenticator knows, an
    /// error (401) if they are wrong.
    fn authenticate(&self, objects: &dyn ObjectReader, headers: &HeaderMap) -> Result<Option<User>, Status> {
        let _ = (objects, headers);
        Ok(None)
    }

    /// Returns the user of a bearer token that no other authenticator knows; also called for token reviews.
    fn token(&self, objects: &dyn ObjectReader, token: &str) -> Option<User> {
        let _ = (objects, token);
        None
    }
}

/// The authenticators of a server.
#[derive(Clone)]
pub struct Authenticator {
    objects: Arc<dyn ObjectReader>,
    issuer: Arc<service_account::Issuer>,
    custom: Vec<Arc<dyn RequestAuthenticator>>,
    tokens: TokenFile,
    anonymous: bool,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("custom", &self.custom)
            .field("tokens", &self.tokens)
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Creates an authenticator that knows the `ServiceAccount` tokens of an issuer and serves requests without
    /// credentials as `system:anonymous`.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>, issuer: Arc<service_account::Issuer>) -> Self {
        Self { objects, issuer, custom: Vec::new(), tokens: TokenFile::default(), anonymous: true }
    }

    /// Adds custom authenticators.
    pub(crate) fn with_custom(mut self, custom: Vec<Arc<dyn RequestAuthenticator>>) -> Self {
        self.custom = custom;
        self
    }

    /// Adds the users of a token file.
    pub(crate) fn with_tokens(mut self, tokens: TokenFile) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets whether requests without credentials are served as `system:anonymous` (`--anonymous-auth`); otherwise they
    /// are a 401.
    pub(crate) fn with_anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// Creates the same authenticators for another server.
    pub(crate) fn fork(&self, objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects, ..self.clone() }
    }

    /// Returns the issuer of `ServiceAccount` tokens.
    pub(crate) fn issuer(&self) -> &service_account::Issuer {
        &self.issuer
    }

    /// Returns the user of a bearer token that is meant for this server.
    pub fn token(&self, token: &str) -> Option<User> {
        self.token_for(token, &[self.issuer.name()]).map(|(user, _)| user)
    }

    /// Returns the user of a bearer token that is meant for one of the audiences, and the audiences that it is meant for.
    /// Tokens that name no audience are meant for all.
    pub fn token_for<'a>(&self, token: &str, audiences: &[&'a str]) -> Option<(User, Vec<&'a str>)> {
        if let Some((user, meant)) = self.issuer.user(&*self.objects, token, audiences) {
            return Some((authenticated(user), meant));
        }
        let custom = || self.custom.iter().find_map(|custom| custom.token(&*self.objects, token));
        let user = self.tokens.user(token).or_else(custom)?;
        Some((authenticated(user), audiences.to_vec()))
    }

    /// Returns the user of a request. `peer` is the user of the connection's client certificate.
    pub fn authenticate(&self, peer: Option<&User>, headers: &HeaderMap) -> Result<User, Status> {
        if let Some(user) = peer {
            return Ok(authenticated(user.clone()));
        }
        for custom in &self.custom {
            if let Some(user) = custom.authenticate(&*self.objects, headers)? {
                return Ok(authenticated(user));
            }
        }
        let authorization = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = authorization.and_then(|value| {
            let (scheme, token) = value.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        if let Some(token) = token.filter(|t| !t.is_empty()) {
            return self.token(token).ok_or_else(Status::unauthorized);
        }
        if self.anonymous { Ok(User::anonymous()) } else { Err(Status::unauthorized()) }
    }
}

/// Adds the group of all authenticated users.
fn authenticated(mut user: User) -> User {
    if !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}
