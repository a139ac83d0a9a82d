//! `ServiceAccount` tokens: JSON web tokens that this server issues and accepts.
//!
//! A token is valid while its account, and the pod or secret that it is bound to, exist under the same uid.

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::{User, jwt::SigningKey};
use crate::registry::ObjectReader;

/// The key of `ServiceAccount` tokens cannot be generated or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no key for ServiceAccount tokens: the random source failed, or the stored key is not an ES256 key")]
pub struct KeyError;

/// Issuer of tokens.
pub(crate) struct Issuer {
    key: SigningKey,
    name: String,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Issuer {
    /// Generates a key as PKCS #8. It must be kept secret.
    pub(crate) fn generate_pkcs8() -> Result<Vec<u8>, KeyError> {
        SigningKey::generate_pkcs8().ok_or(KeyError)
    }

    /// Creates an issuer with a stored key.
    pub(crate) fn from_pkcs8(name: &str, key: &[u8]) -> Result<Self, KeyError> {
        Ok(Self { key: SigningKey::from_pkcs8(key).ok_or(KeyError)?, name: name.to_owned() })
    }

    /// Returns `iss`, which is also the audience of requests that name none.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a signed token; `None` when the random source fails.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        self.key.sign(claims)
    }

    /// Returns the claims of a token that this issuer has signed; times and accounts are not checked.
    pub(crate) fn claims(&self, token: &str) -> Option<Value> {
        self.key.verify(token)
    }

    /// Returns the public keys, as `/openid/v1/jwks` shows them.
    pub(crate) fn jwks(&self) -> Value {
        self.key.key_set()
    }

    /// Returns the user of a token that is valid now and meant for one of the audiences, and the audiences it is meant for.
    pub(crate) fn user<'a>(
        &self,
        objects: &dyn ObjectReader,
        token: &str,
        audiences: &[&'a str],
    ) -> Option<(User, Vec<&'a str>)> {
        let claims = self.claims(token)?;
        let named: Vec<&str> = match &claims["aud"] {
            // Legacy tokens, in Secrets, name no audience: they are for the API server.
            Value::Null => vec![&self.name],
            Value::String(one) => vec![one],
            many => many.as_array()?.iter().filter_map(Value::as_str).collect(),
        };
        let meant: Vec<&'a str> = audiences.iter().copied().filter(|a| named.contains(a)).collect();
        if meant.is_empty() {
            return None;
        }
        let now = objects.now().as_second();
        if claims["iss"] != self.name.as_str()
            || claims["exp"].as_i64()? <= now
            || claims["nbf"].as_i64()? > now
        {
            return None;
        }
        let private = &claims["kubernetes.io"];
        let namespace = private["namespace"].as_str()?;
        let account = private["serviceaccount"]["name"].as_str()?;
        let uid = private["serviceaccount"]["uid"].as_str()?;
        let alive = |resource: &str, reference: &Value| -> bool {
            let key = ObjectKey::namespaced(namespace, reference["name"].as_str().unwrap_or_default());
            objects
                .get(resource, &key)
                .is_some_and(|o| Some(o.meta.uid.as_ref()) == reference["uid"].as_str())
        };
        if !alive("serviceaccounts", &private["serviceaccount"])
            || (private["pod"].is_object() && !alive("pods", &private["pod"]))
            || (private["secret"].is_object() && !alive("secrets", &private["secret"]))
        {
            return None;
        }
        let mut user = User {
            name: format!("system:serviceaccount:{namespace}:{account}"),
            uid: uid.to_owned(),
            groups: groups(namespace),
            ..User::default()
        };
        if let Some(id) = claims["jti"].as_str() {
            user.extra.insert("authentication.kubernetes.io/credential-id".into(), vec![format!("JTI={id}")]);
        }
        if let Some(pod) = private["pod"]["name"].as_str() {
            user.extra.insert("authentication.kubernetes.io/pod-name".into(), vec![pod.to_owned()]);
            let uid = private["pod"]["uid"].as_str().unwrap_or_default();
            user.extra.insert("authentication.kubernetes.io/pod-uid".into(), vec![uid.to_owned()]);
        }
        Some((user, meant))
    }
}

/// Returns the groups of all accounts of a namespace.
pub(crate) fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issuer() -> Issuer {
        Issuer::from_pkcs8("https://a", &Issuer::generate_pkcs8().unwrap()).unwrap()
    }

    #[test]
    fn a_token_is_valid_for_its_issuer_only() {
        let issuer = issuer();
        let token = issuer.sign(&json!({"sub": "x"})).unwrap();
        assert_eq!(issuer.claims(&token).unwrap(), json!({"sub": "x"}));
        assert!(self::issuer().claims(&token).is_none());
        for forged in ["", ".", "a.b.c", &token[..token.len() - 4]] {
            assert!(issuer.claims(forged).is_none());
        }
    }
}
