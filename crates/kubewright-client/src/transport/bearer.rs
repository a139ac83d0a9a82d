//! Bearer tokens, fixed or from a file that the kubelet rotates.
//!
//! Service account tokens expire after an hour or less; the kubelet writes a new one at 80 % of the lifetime.
//! A token file is therefore read again
//! - 50 seconds after it was last read (client-go: a minute, less 10 seconds of leeway), and
//! - on the first request after a 401, so that a token revoked early costs one failed request and not a
//!   minute of them.
//!
//! When the file cannot be read, or is empty, the last good token stays in use and the read is tried again
//! with the next request: some programs remove the file after start on purpose.
//!
//! A request with an `Authorization` header keeps it.

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

use super::interceptor::{Interceptor, InterceptorLayer, ResponseHead};

/// Age after which a token file is read again.
const RELOAD_AFTER: Duration = Duration::from_secs(50);

/// Error from loading a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read and no earlier token is known.
    #[error("the token file {} could not be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is empty.
    #[error("the token file {} is empty", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The token has a character that no HTTP header may have, for example a line break in the middle.
    #[error("the bearer token contains a character that no HTTP header may have; is it a token at all?")]
    Malformed,
}

/// A bearer token and its source. `Debug` hides the token; clones share the cached token.
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
    File { path: PathBuf, fallback: Option<SecretString>, read: Mutex<Option<CachedToken>> },
}

/// A token read from the file.
struct CachedToken {
    header: HeaderValue,
    at: Instant,
    /// Whether the server rejected it with 401.
    rejected: bool,
    /// Whether reading the file again has failed; logged once, not with every request.
    failing: bool,
}

impl BearerToken {
    /// Creates a token that never changes.
    pub fn fixed(token: impl Into<SecretString>) -> Self {
        Self(Arc::new(Source::Fixed(token.into())))
    }

    /// Creates a token from a file, read again as it is rotated.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Source::File { path: path.into(), fallback: None, read: Mutex::new(None) }))
    }

    /// Creates a token from a file, with a fallback until the file can be read for the first time.
    pub fn file_or(path: impl Into<PathBuf>, fallback: impl Into<SecretString>) -> Self {
        let fallback = Some(fallback.into());
        Self(Arc::new(Source::File { path: path.into(), fallback, read: Mutex::new(None) }))
    }

    /// Returns the `Authorization` value to send now.
    pub(crate) fn header(&self) -> Result<HeaderValue, TokenError> {
        let (path, fallback, read) = match &*self.0 {
            Source::Fixed(token) => return header(token.expose_secret()),
            Source::File { path, fallback, read } => (path, fallback, read),
        };
        let mut read = read.lock();
        if let Some(cached) = &*read
            && !cached.rejected
            && cached.at.elapsed() < RELOAD_AFTER
        {
            return Ok(cached.header.clone());
        }
        match read_token(path).and_then(|token| header(token.expose_secret())) {
            Ok(header) => {
                let at = Instant::now();
                *read = Some(CachedToken { header: header.clone(), at, rejected: false, failing: false });
                Ok(header)
            }
            Err(error) => match (&mut *read, fallback) {
                (Some(cached), _) => {
                    if !std::mem::replace(&mut cached.failing, true) {
                        tracing::warn!(%error, "keeping the last token that was read");
                    }
                    Ok(cached.header.clone())
                }
                (None, Some(token)) => header(token.expose_secret()),
                (None, None) => Err(error),
            },
        }
    }

    /// Marks a token as rejected, unless the file was read again since: the next request reads it.
    fn rejected(&self, sent: &HeaderValue) {
        if let Source::File { read, .. } = &*self.0
            && let Some(cached) = &mut *read.lock()
            && cached.header == *sent
        {
            cached.rejected = true;
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

impl Interceptor for BearerToken {
    /// The header that was added, if any.
    type State = Option<HeaderValue>;

    fn request(&self, request: &mut Request<Body>) -> Result<Self::State, BoxError> {
        if request.headers().contains_key(AUTHORIZATION) {
            return Ok(None);
        }
        let header = self.header()?;
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        Ok(Some(header))
    }

    fn response(&self, sent: Self::State, response: ResponseHead<'_>) {
        if let (Some(sent), Ok((StatusCode::UNAUTHORIZED, _))) = (sent, response) {
            self.rejected(&sent);
        }
    }
}

/// Layer that adds a [`BearerToken`] to every request without `Authorization`.
pub type BearerLayer = InterceptorLayer<BearerToken>;

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
    async fn a_rejected_token_is_read_again_at_once() {
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
        assert_eq!(send().await, 200, "no time has passed: the 401 alone caused the read");
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_token_file_vanishes_the_last_token_stays_in_use() {
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
    async fn a_token_file_replaces_the_fallback_once_it_can_be_read() {
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
    fn a_token_that_is_no_header_value_is_rejected_without_quoting_it() {
        let error = BearerToken::fixed("hunter2\nX: y").header().unwrap_err();
        assert!(matches!(error, TokenError::Malformed));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn a_request_with_authorization_keeps_it() {
        let server = tower::service_fn(|request: Request<Body>| async move {
            assert_eq!(request.headers()[AUTHORIZATION], "Bearer mine");
            Ok::<_, BoxError>(Response::new(()))
        });
        let service = BearerLayer::new(BearerToken::fixed("other")).layer(server);
        let request = Request::get("/").header(AUTHORIZATION, "Bearer mine").body(Body::empty()).unwrap();
        service.oneshot(request).await.unwrap();
    }
}
