//! Who asks.
//!
//! Authenticators are tried in turn: a client certificate, a bearer token (static file, then `ServiceAccount`), and at
//! last nobody in particular, `system:anonymous`. A credential that is there and wrong is a 401; one that is not there
//! is not.

pub mod service_account;
pub mod token_file;
pub mod x509;

use std::collections::BTreeMap;

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

/// Everything that can tell who asks.
#[derive(Debug, Default)]
pub struct Authenticator {
    /// Users by static token.
    pub tokens: token_file::TokenFile,
    /// Whether somebody without credentials is let in as `system:anonymous`.
    pub refuse_anonymous: bool,
}

impl Authenticator {
    /// Who a bearer token belongs to.
    pub fn token(&self, registry: &crate::registry::Registry, token: &str) -> Option<User> {
        let mut user = self.tokens.user(token).or_else(|| registry.tokens.user(registry, token))?;
        if !user.is_in(AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.into());
        }
        Some(user)
    }

    /// Who asks: by certificate, else by token, else nobody in particular.
    pub fn authenticate(
        &self,
        registry: &crate::registry::Registry,
        certificate: Option<&User>,
        authorization: Option<&str>,
    ) -> Result<User, crate::status::Status> {
        if let Some(user) = certificate {
            let mut user = user.clone();
            user.groups.push(AUTHENTICATED.into());
            return Ok(user);
        }
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
