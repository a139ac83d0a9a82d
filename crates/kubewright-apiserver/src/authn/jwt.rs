//! JSON web tokens signed with ES256.
//!
//! `jsonwebtoken` reads and writes the parts of a token, `ring` signs and verifies. The library could do all of it, but
//! its cryptography is either a second stack beside ring or a provider for the whole process, which is not for an
//! embedded server to choose; and it takes the time from the system, where ours comes from the server's clock.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, Header, dangerous};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey},
};
use serde_json::{Value, json};

const SIGNING: &signature::EcdsaSigningAlgorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;

/// A P-256 key pair that signs and verifies tokens.
pub(super) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// `kid` in the header of tokens and in the key set.
    id: String,
}

impl SigningKey {
    /// Generates a key as PKCS #8; `None` when the random source fails.
    pub(super) fn generate_pkcs8() -> Option<Vec<u8>> {
        let document = EcdsaKeyPair::generate_pkcs8(SIGNING, &SystemRandom::new()).ok()?;
        Some(document.as_ref().to_vec())
    }

    /// Reads a PKCS #8 key; `None` when it is not one for ES256.
    pub(super) fn from_pkcs8(key: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(SIGNING, key, &random).ok()?;
        let digest = ring::digest::digest(&ring::digest::SHA256, pair.public_key().as_ref());
        Some(Self { id: URL_SAFE_NO_PAD.encode(digest.as_ref()), pair, random })
    }

    /// Returns a signed token; `None` when the random source fails.
    pub(super) fn sign(&self, claims: &Value) -> Option<String> {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::ES256) };
        let header = serde_json::to_vec(&header).ok()?;
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the claims of a token that this key has signed. Times and audiences are not checked.
    pub(super) fn verify(&self, token: &str) -> Option<Value> {
        let header = jsonwebtoken::decode_header(token).ok()?;
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        key.verify(signed.as_bytes(), &signature).ok().filter(|()| header.alg == Algorithm::ES256)?;
        // Not dangerous here: the signature was verified above.
        dangerous::insecure_decode_claims(token).ok()
    }

    /// Returns the JSON web key set with the public key.
    pub(super) fn key_set(&self) -> Value {
        // An uncompressed point: one byte of form, then x and y.
        let point = self.pair.public_key().as_ref();
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..65]),
        }]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_pkcs8(&SigningKey::generate_pkcs8().unwrap()).unwrap()
    }

    #[test]
    fn a_signed_token_is_verified_by_the_same_key_only() {
        let signer = key();
        let token = signer.sign(&json!({"sub": "x"})).unwrap();
        assert_eq!(signer.verify(&token), Some(json!({"sub": "x"})));
        assert_eq!(key().verify(&token), None);
    }

    #[test]
    fn a_token_that_names_another_algorithm_is_refused() {
        let signer = key();
        for alg in ["none", "HS256", "ES384"] {
            let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "typ": "JWT"}).to_string());
            let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode("{}"));
            let signature = signer.pair.sign(&signer.random, signed.as_bytes()).unwrap();
            let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
            assert_eq!(signer.verify(&token), None, "{alg}");
        }
    }
}
