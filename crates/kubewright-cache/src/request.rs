//! List and watch requests, and their errors.

use std::{io, sync::Arc, time::Duration};

use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body, core::Status};

use super::wire::split::SplitError;
use kubewright_client::{rest::encode_query, transport::ReadToItsEnd};

/// Error of a list or a watch.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[error("cannot {operation} {resource}: {kind}")]
pub struct ListWatchError {
    /// `list` or `watch`.
    pub operation: &'static str,
    /// The path of the resource.
    pub resource: Arc<str>,
    /// The kind of the error.
    pub kind: ListWatchErrorKind,
}

/// Kind of a [`ListWatchError`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ListWatchErrorKind {
    /// The server responded with an error. 403: grant `list` and `watch` on the resource; 404: the kind does
    /// not exist (yet).
    #[error("the server answered {} {}: {}", .status.code, .status.reason, .status.message)]
    Status {
        /// The status of the response.
        status: Box<Status>,
        /// The wait that the server requests.
        retry_after: Option<Duration>,
    },
    /// The server could not be reached, or the connection was interrupted.
    #[error("{}", causes(.0))]
    Transport(Arc<kube::Error>),
    /// The response is malformed or ends too early.
    #[error("{0}")]
    Body(String),
    /// Nothing was received for so long that the connection is considered dead.
    #[error("nothing arrived for {0:?}")]
    Timeout(Duration),
}

/// Formats an error with its sources: the last one is usually the most specific.
fn causes(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl ListWatchError {
    fn code(&self) -> Option<u16> {
        match &self.kind {
            ListWatchErrorKind::Status { status, .. } => Some(status.code),
            _ => None,
        }
    }

    /// Returns whether the requested version has expired: a relist is necessary.
    pub fn is_expired(&self) -> bool {
        match &self.kind {
            ListWatchErrorKind::Status { status, .. } => {
                status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
            }
            _ => false,
        }
    }

    /// Returns whether the requested version is newer than the server's; after a restore from a backup it
    /// stays so.
    pub fn is_too_large_version(&self) -> bool {
        let ListWatchErrorKind::Status { status, .. } = &self.kind else { return false };
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (status.code == 504 && status.message.contains("Too large resource version"))
    }

    /// Returns whether the server throttles the client (429).
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Returns whether the connection was refused: most likely the server restarts.
    pub fn is_connection_refused(&self) -> bool {
        let ListWatchErrorKind::Transport(error) = &self.kind else { return false };
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(error) = source {
            if let Some(error) = error.downcast_ref::<io::Error>()
                && error.kind() == io::ErrorKind::ConnectionRefused
            {
                return true;
            }
            source = error.source();
        }
        false
    }

    /// Returns the wait that the server requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ListWatchErrorKind::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The query parameters of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Option<String>>) -> Self {
        self.0.extend(value.into().map(|value| (name, value)));
        self
    }

    /// Returns whether this is the first page: the following ones are short, and come one after the other.
    fn is_first_page(&self) -> bool {
        self.0.iter().all(|(name, _)| *name != "continue")
    }

    fn append_to(&self, path: &str) -> String {
        let mut uri = path.to_owned();
        for (at, (name, value)) in self.0.iter().enumerate() {
            uri.push(if at == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            uri.extend(encode_query(value));
        }
        uri
    }
}

/// The target of a request, for errors.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) path: Arc<str>,
    /// Whether only metadata is requested.
    pub(crate) metadata_only: bool,
}

impl Target {
    pub(crate) fn failed(&self, operation: &'static str, kind: ListWatchErrorKind) -> ListWatchError {
        ListWatchError { operation, resource: Arc::clone(&self.path), kind }
    }

    pub(crate) fn split_failed(&self, operation: &'static str, error: &SplitError) -> ListWatchError {
        self.failed(operation, ListWatchErrorKind::Body(error.to_string()))
    }

    /// Sends the request and returns the body of a successful response.
    pub(crate) async fn send(&self, operation: &'static str, query: &Query) -> Result<Body, ListWatchError> {
        let accept = match (self.metadata_only, operation) {
            (false, _) => "application/json",
            (true, "list") => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            (true, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        };
        let transport = |error| self.failed(operation, ListWatchErrorKind::Transport(Arc::new(error)));
        let mut request = Request::get(query.append_to(&self.path))
            .header(header::ACCEPT, accept)
            // Newer servers compress watches event by event, which costs more than it saves.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| transport(kube::Error::HttpError(error)))?;
        if query.is_first_page() {
            request.extensions_mut().insert(ReadToItsEnd);
        }
        let response = self.client.send(request).await.map_err(transport)?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(self.failed(operation, read_status_error(response).await))
    }
}

/// Maximum length of a `Status`; longer bodies are error pages of proxies.
const MAX_STATUS_BYTES: usize = 64 * 1024;

async fn read_status_error(response: http::Response<Body>) -> ListWatchErrorKind {
    let code = response.status();
    let header = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let mut text = Vec::new();
    let mut body = response.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            text.extend_from_slice(&data);
        }
        if text.len() > MAX_STATUS_BYTES {
            break;
        }
    }
    status_error(serde_json::from_slice(&text).unwrap_or_else(|_| bare_status(code)), header, code.as_u16())
}

/// Completes a `Status` with the code and `Retry-After`.
pub(crate) fn status_error(
    mut status: Status,
    retry_after: Option<Duration>,
    code: u16,
) -> ListWatchErrorKind {
    if status.code == 0 {
        status.code = code;
    }
    let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let retry_after = retry_after.or_else(|| (asked > 0).then(|| Duration::from_secs(u64::from(asked))));
    ListWatchErrorKind::Status { status: Box::new(status), retry_after }
}

fn bare_status(code: StatusCode) -> Status {
    // An unknown path has a plain-text response.
    let message = if code == StatusCode::NOT_FOUND {
        "no such resource is served: is its CustomResourceDefinition installed, with this version?"
    } else {
        "the answer carries no status"
    };
    Status::failure(message, code.canonical_reason().unwrap_or_default()).with_code(code.as_u16())
}
