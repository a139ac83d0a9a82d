//! `ServiceAccount` tokens: JSON web tokens that this server signs (ES256) and believes.
//!
//! A token is good while its account, and the pod or secret that it is bound to, exist under the same uid.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kubewright_core::ObjectKey;
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey},
};
use serde_json::{Value, json};

use super::User;
use crate::registry::Registry;

/// Why there is no key to sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no key for ServiceAccount tokens: the random source failed, or the key that was kept is none"
)]
pub struct KeyError;

const ALGORITHM: &signature::EcdsaSigningAlgorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;

/// The signer of tokens.
pub struct Issuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    /// `iss`, and the audience when a request names none.
    pub name: String,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Issuer {
    /// An issuer with a fresh key.
    pub fn generate(name: &str) -> Result<Self, KeyError> {
        Self::from_pkcs8(name, &Self::generate_pkcs8()?)
    }

    /// A fresh key, to be kept and shown to nobody.
    pub fn generate_pkcs8() -> Result<Vec<u8>, KeyError> {
        EcdsaKeyPair::generate_pkcs8(ALGORITHM, &SystemRandom::new())
            .map(|document| document.as_ref().to_vec())
            .map_err(|_| KeyError)
    }

    /// An issuer with the key of an earlier run.
    pub fn from_pkcs8(name: &str, key: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(ALGORITHM, key, &random).map_err(|_| KeyError)?;
        Ok(Self { key, random, name: name.to_owned() })
    }

    /// A signed token; `None` when the random source fails.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.key_id(), "typ": "JWT"});
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.key.sign(&self.random, token.as_bytes()).ok()?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature.as_ref()));
        Some(token)
    }

    /// The claims of a token that this issuer has signed; times and accounts are not yet looked at.
    pub fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    fn key_id(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.key.public_key().as_ref());
        URL_SAFE_NO_PAD.encode(digest.as_ref())
    }

    /// The public keys, as `/openid/v1/jwks` shows them.
    pub fn jwks(&self) -> Value {
        // An uncompressed point: one byte of form, then x and y.
        let point = self.key.public_key().as_ref();
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.key_id(), "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..65]),
        }]})
    }

    /// Who a token belongs to, when it is good now and meant for one of the audiences, and for which it is.
    pub fn user<'a>(
        &self,
        registry: &Registry,
        token: &str,
        audiences: &[&'a str],
    ) -> Option<(User, Vec<&'a str>)> {
        let claims = self.claims(token)?;
        let named: Vec<&str> = match &claims["aud"] {
            // Tokens of the old kind, in Secrets, name nobody: they are for the API server.
            Value::Null => vec![&self.name],
            Value::String(one) => vec![one],
            many => many.as_array()?.iter().filter_map(Value::as_str).collect(),
        };
        let meant: Vec<&'a str> = audiences.iter().copied().filter(|a| named.contains(a)).collect();
        if meant.is_empty() {
            return None;
        }
        let now = registry.clock.now().as_second();
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
            registry
                .storage
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

/// The groups of every account of a namespace.
pub fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_by_its_issuer_only() {
        let issuer = Issuer::generate("https://a").unwrap();
        let token = issuer.sign(&json!({"sub": "x"})).unwrap();
        assert_eq!(issuer.claims(&token).unwrap(), json!({"sub": "x"}));
        assert!(Issuer::generate("https://a").unwrap().claims(&token).is_none());
        for forged in ["", ".", "a.b.c", &token[..token.len() - 4]] {
            assert!(issuer.claims(forged).is_none());
        }
    }
}
