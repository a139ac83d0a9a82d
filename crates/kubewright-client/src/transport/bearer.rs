//! Bearer tokens, fixed or from a file that the kubelet rewrites.
//!
//! Service account tokens live for an hour or less; the kubelet writes a new one at 80 % of the lifetime. A
//! token file is therefore read again
//! - 50 seconds after it was last read (client-go: a minute, less 10 seconds of leeway), and
//! - on the first request after an answer of 401, whatever the age, so that a token revoked early costs one
//!   refused request and not a minute of them.
//!
//! When the file cannot be read, or is empty, the last good token goes on being used and the read is tried
//! again with the next request: some programs remove the file after start on purpose.
//!
//! A request that has an `Authorization` header already keeps it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use kube::client::Body;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;
use tower::BoxError;

use super::tap::{Answer, Tap, TapLayer};

/// How long a token that was read from a file is used before the file is read again.
const RELOAD_AFTER: Duration = Duration::from_secs(50);

/// Why there is no token to send.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read and no earlier token is known.
    #[error("the token file {} could not be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is there and has nothing in it.
    #[error("the token file {} is empty", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The token has a character that no HTTP header may have, for example a line break in the middle.
    #[error("the bearer token contains a character that no HTTP header may have; is it a token at all?")]
    Malformed,
}

/// A bearer token and where it comes from. Prints without the token; clones share what was read.
///
/// ```
/// use kubewright::client::BearerToken;
///
/// let token = BearerToken::fixed("hunter2");
/// assert!(!format!("{token:?}").contains("hunter2"));
///
/// let rotating = BearerToken::file("/var/run/secrets/kubernetes.io/serviceaccount/token");
/// assert!(format!("{rotating:?}").contains("serviceaccount/token"));
/// ```
#[derive(Clone)]
pub struct BearerToken(Arc<Source>);

enum Source {
    Fixed(SecretString),
    File { path: PathBuf, fallback: Option<SecretString>, read: Mutex<Option<Reading>> },
}

/// What the file held, and when.
struct Reading {
    header: HeaderValue,
    at: Instant,
    /// The server answered 401 to it.
    refused: bool,
    /// The file could not be read again since; said once in the log, not with every request.
    failing: bool,
}

impl BearerToken {
    /// A token that never changes.
    pub fn fixed(token: impl Into<SecretString>) -> Self {
        Self(Arc::new(Source::Fixed(token.into())))
    }

    /// The token in a file, read again as the file changes.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Source::File { path: path.into(), fallback: None, read: Mutex::new(None) }))
    }

    /// The token in a file, and a token to use until the file can be read for the first time.
    pub fn file_or(path: impl Into<PathBuf>, fallback: impl Into<SecretString>) -> Self {
        let fallback = Some(fallback.into());
        Self(Arc::new(Source::File { path: path.into(), fallback, read: Mutex::new(None) }))
    }

    /// The `Authorization` value to send now.
    pub(crate) fn header(&self) -> Result<HeaderValue, TokenError> {
        let (path, fallback, read) = match &*self.0 {
            Source::Fixed(token) => return header(token.expose_secret()),
            Source::File { path, fallback, read } => (path, fallback, read),
        };
        let mut read = read.lock();
        if let Some(reading) = &*read
            && !reading.refused
            && reading.at.elapsed() < RELOAD_AFTER
        {
            return Ok(reading.header.clone());
        }
        match read_token(path).and_then(|token| header(token.expose_secret())) {
            Ok(header) => {
                let at = Instant::now();
                *read = Some(Reading { header: header.clone(), at, refused: false, failing: false });
                Ok(header)
            }
            Err(error) => match (&mut *read, fallback) {
                (Some(reading), _) => {
                    if !std::mem::replace(&mut reading.failing, true) {
                        tracing::warn!(%error, "keeping the last token that was read");
                    }
                    Ok(reading.header.clone())
                }
                (None, Some(token)) => header(token.expose_secret()),
                (None, None) => Err(error),
            },
        }
    }

    /// The server did not accept `sent`: read the file again before the next request, unless that has already
    /// happened since.
    fn refused(&self, sent: &HeaderValue) {
        if let Source::File { read, .. } = &*self.0
            && let Some(reading) = &mut *read.lock()
            && reading.header == *sent
        {
            reading.refused = true;
        }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Source::Fixed(_) => f.write_str("BearerToken(fixed)"),
            Source::File { path, .. } => f.debug_tuple("BearerToken").field(path).finish(),
        }
    }
}

fn read_token(path: &Path) -> Result<SecretString, TokenError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TokenError::Read { path: path.to_owned(), source })
        .map(SecretString::from)?;
    match text.expose_secret().trim() {
        "" => Err(TokenError::Empty { path: path.to_owned() }),
        token => Ok(SecretString::from(token)),
    }
}

fn header(token: &str) -> Result<HeaderValue, TokenError> {
    let mut value =
        HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| TokenError::Malformed)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Tap for BearerToken {
    /// What was sent, unless the request brought its own.
    type Note = Option<HeaderValue>;

    fn request(&self, request: &mut Request<Body>) -> Result<Self::Note, BoxError> {
        if request.headers().contains_key(AUTHORIZATION) {
            return Ok(None);
        }
        let header = self.header()?;
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        Ok(Some(header))
    }

    fn answer(&self, sent: Self::Note, answer: Answer<'_>) {
        if let (Some(sent), Ok((StatusCode::UNAUTHORIZED, _))) = (sent, answer) {
            self.refused(&sent);
        }
    }
}

/// Puts a [`BearerToken`] on every request that has no `Authorization`.
pub type BearerLayer = TapLayer<BearerToken>;

#[cfg(test)]
mod tests {
    use std::fs;

    use http::Response;
    use tower::{Layer as _, ServiceExt as _};

    use super::*;

    fn text(token: &BearerToken) -> String {
        token.header().unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotated_token_file_is_picked_up_within_a_minute() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "first\n").unwrap();
        let token = BearerToken::file(&path);
        assert_eq!(text(&token), "Bearer first");

        fs::write(&path, "second\n").unwrap();
        tokio::time::advance(Duration::from_secs(49)).await;
        assert_eq!(text(&token), "Bearer first");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(text(&token), "Bearer second");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_token_is_read_again_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "first").unwrap();
        let server = tower::service_fn(|request: Request<Body>| async move {
            let code = if request.headers()[AUTHORIZATION] == "Bearer second" { 200 } else { 401 };
            Ok::<_, BoxError>(Response::builder().status(code).body(()).unwrap())
        });
        let service = BearerLayer::new(BearerToken::file(&path)).layer(server);
        let send = || async {
            let request = Request::get("/").body(Body::empty()).unwrap();
            service.clone().oneshot(request).await.unwrap().status()
        };

        assert_eq!(send().await, 401);
        assert_eq!(send().await, 401, "the file has not changed");
        fs::write(&path, "second").unwrap();
        assert_eq!(send().await, 200, "no time has passed, the refusal alone made us look");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_that_vanishes_leaves_the_last_token_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "first").unwrap();
        let token = BearerToken::file(&path);
        assert_eq!(text(&token), "Bearer first");
        fs::remove_file(&path).unwrap();
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(text(&token), "Bearer first");
        fs::write(&path, "   \n").unwrap();
        assert_eq!(text(&token), "Bearer first", "an empty file is no token either");
        fs::write(&path, "back").unwrap();
        assert_eq!(text(&token), "Bearer back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_wins_over_the_token_beside_it_once_it_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = BearerToken::file_or(&path, "inline");
        assert_eq!(text(&token), "Bearer inline");
        fs::write(&path, "from file").unwrap();
        assert_eq!(text(&token), "Bearer from file");
    }

    #[test]
    fn no_file_and_no_earlier_token_is_an_error_that_names_the_file() {
        let error = BearerToken::file("/nonexistent/token").header().unwrap_err();
        assert!(error.to_string().contains("/nonexistent/token"), "{error}");
    }

    #[test]
    fn a_token_that_no_header_can_carry_is_refused_without_repeating_it() {
        let error = BearerToken::fixed("hunter2\nX: y").header().unwrap_err();
        assert!(matches!(error, TokenError::Malformed));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn a_request_that_brings_its_own_authorization_keeps_it() {
        let server = tower::service_fn(|request: Request<Body>| async move {
            assert_eq!(request.headers()[AUTHORIZATION], "Bearer mine");
            Ok::<_, BoxError>(Response::new(()))
        });
        let service = BearerLayer::new(BearerToken::fixed("other")).layer(server);
        let request = Request::get("/").header(AUTHORIZATION, "Bearer mine").body(Body::empty()).unwrap();
        service.oneshot(request).await.unwrap();
    }
}
