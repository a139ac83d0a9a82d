//! Who asks.
//!
//! Authenticators are tried in turn: a client certificate, a bearer token (static file, then `ServiceAccount`), and at
//! last nobody in particular, `system:anonymous`. A credential that is there and wrong is a 401; one that is not there
//! is not. Whoever knows another way to tell who asks implements [`RequestAuthenticator`].

pub mod service_account;
pub mod token_file;
pub mod x509;

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::HeaderMap;

/// The group of everybody who showed a credential.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who showed none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// Somebody who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody without credentials.
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// The server itself.
    pub fn system() -> Self {
        Self { name: "system:apiserver".into(), groups: vec![MASTERS.into()], ..Self::default() }
    }

    /// Whether a group is among the user's.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// Another way to tell who asks: a proxy in front, tokens of an identity provider.
///
/// ```
/// use http::HeaderMap;
/// use kubewright_apiserver::{ApiServer, authn::{RequestAuthenticator, User}, registry::Registry, status::Status};
///
/// /// Believes a proxy that says who asks.
/// #[derive(Debug)]
/// struct Proxy;
///
/// impl RequestAuthenticator for Proxy {
///     fn authenticate(&self, _: &Registry, headers: &HeaderMap) -> Result<Option<User>, Status> {
///         let name = headers.get("x-remote-user").and_then(|value| value.to_str().ok());
///         Ok(name.map(|name| User { name: name.to_owned(), ..User::default() }))
///     }
/// }
///
/// let server = ApiServer::builder().authenticator(Proxy).in_process()?;
/// # Ok::<(), kubewright_apiserver::StartError>(())
/// ```
pub trait RequestAuthenticator: fmt::Debug + Send + Sync + 'static {
    /// Who sent a request with these headers; `None` when there is nothing in them that this authenticator knows, an
    /// error (401) when there is and it is wrong.
    fn authenticate(
        &self,
        registry: &crate::registry::Registry,
        headers: &HeaderMap,
    ) -> Result<Option<User>, crate::status::Status> {
        let _ = (registry, headers);
        Ok(None)
    }

    /// Who a bearer token belongs to that nobody else knows; also asked by token reviews.
    fn token(&self, registry: &crate::registry::Registry, token: &str) -> Option<User> {
        let _ = (registry, token);
        None
    }
}

/// Everything that can tell who asks.
#[derive(Debug, Clone, Default)]
pub struct Authenticator {
    /// Other ways, tried in turn.
    pub others: Vec<Arc<dyn RequestAuthenticator>>,
    /// Users by static token.
    pub tokens: token_file::TokenFile,
    /// Whether somebody without credentials is let in as `system:anonymous`.
    pub refuse_anonymous: bool,
}

impl Authenticator {
    /// Who a bearer token belongs to, if it is meant for this server.
    pub fn token(&self, registry: &crate::registry::Registry, token: &str) -> Option<User> {
        self.token_for(registry, token, &[registry.tokens.name.as_str()]).map(|(user, _)| user)
    }

    /// Who a bearer token belongs to, if it is meant for one of these audiences, and for which it is. Tokens that name
    /// no audience are meant for whoever asks.
    pub fn token_for<'a>(
        &self,
        registry: &crate::registry::Registry,
        token: &str,
        audiences: &[&'a str],
    ) -> Option<(User, Vec<&'a str>)> {
        if let Some((user, meant)) = registry.tokens.user(registry, token, audiences) {
            return Some((authenticated(user), meant));
        }
        let known = self.tokens.user(token);
        let user = known.or_else(|| self.others.iter().find_map(|other| other.token(registry, token)))?;
        Some((authenticated(user), audiences.to_vec()))
    }

    /// Who asks: by certificate, else in another way, else by token, else nobody in particular.
    pub fn authenticate(
        &self,
        registry: &crate::registry::Registry,
        certificate: Option<&User>,
        headers: &HeaderMap,
    ) -> Result<User, crate::status::Status> {
        if let Some(user) = certificate {
            return Ok(authenticated(user.clone()));
        }
        for other in &self.others {
            if let Some(user) = other.authenticate(registry, headers)? {
                return Ok(authenticated(user));
            }
        }
        let authorization = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = authorization.and_then(|value| {
            let (scheme, token) = value.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        if let Some(token) = token.filter(|t| !t.is_empty()) {
            return self.token(registry, token).ok_or_else(crate::status::Status::unauthorized);
        }
        if self.refuse_anonymous {
            return Err(crate::status::Status::unauthorized());
        }
        Ok(User::anonymous())
    }
}

/// Somebody who showed a credential.
fn authenticated(mut user: User) -> User {
    if !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}
