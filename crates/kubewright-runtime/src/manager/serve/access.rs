//! Who may scrape: the API server knows.

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

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer holds. These are the times of controller-runtime.
const IDENTITY: Duration = Duration::from_mins(1);
const ALLOWED: Duration = Duration::from_mins(5);
const DENIED: Duration = Duration::from_secs(30);
/// How many answers are kept at most.
const ROOM: usize = 1024;

/// Asks the API server who a bearer token belongs to (`TokenReview`) and whether they may read this path
/// (`SubjectAccessReview`), as controller-runtime's authentication and authorization filter does. Answers are kept for a
/// short while. Clones share them.
///
/// The operator needs the right to create `tokenreviews` (authentication.k8s.io) and `subjectaccessreviews`
/// (authorization.k8s.io); whoever scrapes needs `get` on the non-resource URL `/metrics`.
#[derive(Clone)]
pub struct AccessReview {
    client: Client,
    answers: Arc<Mutex<Answers>>,
}

/// What identifies a token without being it.
type Fingerprint = [u8; 32];

#[derive(Default)]
struct Answers {
    users: BTreeMap<Fingerprint, (Instant, Option<UserInfo>)>,
    rights: BTreeMap<(Fingerprint, String, String), (Instant, bool)>,
}

impl AccessReview {
    /// Asks over this client.
    pub fn new(client: Client) -> Self {
        Self { client, answers: Arc::default() }
    }

    /// Lets a request pass, or says why not.
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
            tracing::error!(what, "a token could not be checked");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n".to_owned())
        })?;
        let user = user.ok_or_else(unauthorized)?;
        let name = user.username.clone().unwrap_or_default();
        let may = self.may(fingerprint, user, verb, path).await.map_err(|what| {
            tracing::error!(user = name, what, "a right could not be checked");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("Authorization for user {name} failed\n"))
        })?;
        if may {
            Ok(())
        } else {
            Err((StatusCode::FORBIDDEN, format!("Authorization denied for user {name}\n")))
        }
    }

    async fn user(&self, fingerprint: Fingerprint, token: &str) -> Result<Option<UserInfo>, String> {
        let now = Instant::now();
        if let Some((until, user)) = self.answers.lock().users.get(&fingerprint)
            && now < *until
        {
            return Ok(user.clone());
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), audiences: None },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = limited(api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        let user = if status.authenticated == Some(true) { status.user } else { None };
        let mut answers = self.answers.lock();
        make_room(&mut answers.users, now, |(until, _)| *until);
        answers.users.insert(fingerprint, (now + IDENTITY, user.clone()));
        Ok(user)
    }

    async fn may(
        &self,
        fingerprint: Fingerprint,
        user: UserInfo,
        verb: &str,
        path: &str,
    ) -> Result<bool, String> {
        let now = Instant::now();
        let key = (fingerprint, verb.to_owned(), path.to_owned());
        if let Some((until, may)) = self.answers.lock().rights.get(&key)
            && now < *until
        {
            return Ok(*may);
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
        let answer = limited(api.create(&PostParams::default(), &review)).await?;
        let may = answer.status.is_some_and(|status| status.allowed && status.denied != Some(true));
        let mut answers = self.answers.lock();
        make_room(&mut answers.rights, now, |(until, _)| *until);
        answers.rights.insert(key, (now + if may { ALLOWED } else { DENIED }, may));
        Ok(may)
    }
}

impl fmt::Debug for AccessReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessReview").finish_non_exhaustive()
    }
}

/// Forgets what has run out, and everything if that is not enough: somebody is trying out tokens.
fn make_room<K: Ord, V>(answers: &mut BTreeMap<K, V>, now: Instant, until: impl Fn(&V) -> Instant) {
    if answers.len() >= ROOM {
        answers.retain(|_, answer| now < until(answer));
    }
    if answers.len() >= ROOM {
        answers.clear();
    }
}

async fn limited<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(outcome) => outcome.map_err(|error| plain_text(&error)),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
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
