//! Authorization of scrapes by the API server.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use kubewright_client::error::plain_text;

/// Time-out of a review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the outcome of a review is cached, as in controller-runtime.
const IDENTITY_TTL: Duration = Duration::from_mins(1);
const ALLOWED_TTL: Duration = Duration::from_mins(5);
const DENIED_TTL: Duration = Duration::from_secs(30);
/// Maximum number of cached outcomes of each kind.
const CACHE_SIZE: usize = 1024;

/// Authenticates bearer tokens (`TokenReview`) and authorizes requests (`SubjectAccessReview`) by the API
/// server, as controller-runtime's filter does. Outcomes are cached for a short time. Clones share the cache.
///
/// The operator needs `create` on `tokenreviews` (authentication.k8s.io) and `subjectaccessreviews`
/// (authorization.k8s.io); the scraper needs `get` on the non-resource URL `/metrics`.
#[derive(Clone)]
pub struct AccessReview {
    client: Client,
    cache: Arc<Mutex<Cache>>,
}

/// SHA-256 of a token, so that the cache does not hold the token itself.
type Fingerprint = [u8; 32];

#[derive(Default)]
struct Cache {
    users: BTreeMap<Fingerprint, (Instant, Option<UserInfo>)>,
    rights: BTreeMap<(Fingerprint, String, String), (Instant, bool)>,
}

impl AccessReview {
    /// Creates reviews with this client.
    pub fn new(client: Client) -> Self {
        Self { client, cache: Arc::default() }
    }

    /// Authorizes a request; the error is the response to a denied one.
    pub(super) async fn check(
        &self,
        headers: &HeaderMap,
        verb: &str,
        path: &str,
    ) -> Result<(), (StatusCode, String)> {
        let unauthorized = || (StatusCode::UNAUTHORIZED, "Unauthorized\n".to_owned());
        let token = bearer(headers).ok_or_else(unauthorized)?;
        let fingerprint = fingerprint(token);
        let user = self.user(fingerprint, token).await.map_err(|what| {
            tracing::error!(what, "authentication of a scrape failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n".to_owned())
        })?;
        let user = user.ok_or_else(unauthorized)?;
        let name = user.username.clone().unwrap_or_default();
        let allowed = self.is_allowed(fingerprint, user, verb, path).await.map_err(|what| {
            tracing::error!(user = name, what, "authorization of a scrape failed");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("Authorization for user {name} failed\n"))
        })?;
        if allowed {
            Ok(())
        } else {
            Err((StatusCode::FORBIDDEN, format!("Authorization denied for user {name}\n")))
        }
    }

    async fn user(&self, fingerprint: Fingerprint, token: &str) -> Result<Option<UserInfo>, String> {
        let now = Instant::now();
        if let Some((until, user)) = self.cache.lock().users.get(&fingerprint)
            && now < *until
        {
            return Ok(user.clone());
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), audiences: None },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = with_timeout(api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        let user = if status.authenticated == Some(true) { status.user } else { None };
        let mut cache = self.cache.lock();
        evict(&mut cache.users, now, |(until, _)| *until);
        cache.users.insert(fingerprint, (now + IDENTITY_TTL, user.clone()));
        Ok(user)
    }

    async fn is_allowed(
        &self,
        fingerprint: Fingerprint,
        user: UserInfo,
        verb: &str,
        path: &str,
    ) -> Result<bool, String> {
        let now = Instant::now();
        let key = (fingerprint, verb.to_owned(), path.to_owned());
        if let Some((until, allowed)) = self.cache.lock().rights.get(&key)
            && now < *until
        {
            return Ok(*allowed);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = with_timeout(api.create(&PostParams::default(), &review)).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed && status.denied != Some(true));
        let mut cache = self.cache.lock();
        evict(&mut cache.rights, now, |(until, _)| *until);
        cache.rights.insert(key, (now + if allowed { ALLOWED_TTL } else { DENIED_TTL }, allowed));
        Ok(allowed)
    }
}

impl fmt::Debug for AccessReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessReview").finish_non_exhaustive()
    }
}

/// Evicts expired entries, or all if that is not enough, as when a client tries out tokens.
fn evict<K: Ord, V>(cache: &mut BTreeMap<K, V>, now: Instant, until: impl Fn(&V) -> Instant) {
    if cache.len() >= CACHE_SIZE {
        cache.retain(|_, answer| now < until(answer));
    }
    if cache.len() >= CACHE_SIZE {
        cache.clear();
    }
}

async fn with_timeout<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(REVIEW_TIMEOUT, request).await {
        Ok(outcome) => outcome.map_err(|error| plain_text(&error)),
        Err(_) => Err(format!("no answer within {REVIEW_TIMEOUT:?}")),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn fingerprint(token: &str) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
