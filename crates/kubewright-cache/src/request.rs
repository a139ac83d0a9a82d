//! One request for a list or a watch, and the ways in which it fails.

use std::{fmt::Write as _, io, sync::Arc, time::Duration};

use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body, core::Status};

use super::wire::split::SplitError;
use kubewright_client::transport::ReadToItsEnd;

/// A list or a watch failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {operation} {resource}: {failure}")]
pub struct ListWatchError {
    /// `list` or `watch`.
    pub operation: &'static str,
    /// What was asked for: the path of the resource.
    pub resource: Arc<str>,
    /// What happened.
    pub failure: Failure,
}

/// Why a list or a watch failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server refused. 403: grant `list` and `watch` on the resource; 404: the kind does not exist (yet).
    #[error("the server answered {} {}: {}", .status.code, .status.reason, .status.message)]
    Refused {
        /// What the server said.
        status: Box<Status>,
        /// How long it asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// The server could not be reached, or the connection broke.
    #[error("{}", causes(.0))]
    Transport(Arc<kube::Error>),
    /// The answer is not what a list or a watch answers with, or ends too early.
    #[error("{0}")]
    Body(String),
    /// Nothing came for so long that the connection must be dead.
    #[error("nothing arrived for {0:?}")]
    Silent(Duration),
}

/// An error with all its causes: the one that helps is usually the last.
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
        match &self.failure {
            Failure::Refused { status, .. } => Some(status.code),
            _ => None,
        }
    }

    /// The history that was asked for is gone: list again.
    pub fn is_expired(&self) -> bool {
        match &self.failure {
            Failure::Refused { status, .. } => {
                status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
            }
            _ => false,
        }
    }

    /// The server has not come as far as the version that was asked for; one that was restored from a backup never
    /// will.
    pub fn is_too_large_version(&self) -> bool {
        let Failure::Refused { status, .. } = &self.failure else { return false };
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (status.code == 504 && status.message.contains("Too large resource version"))
    }

    /// The server asks for fewer requests.
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Nobody listens at the server's address: it is restarting, most likely.
    pub fn is_connection_refused(&self) -> bool {
        let Failure::Transport(error) = &self.failure else { return false };
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

    /// How long the server asked to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.failure {
            Failure::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The parameters of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Option<String>>) -> Self {
        self.0.extend(value.into().map(|value| (name, value)));
        self
    }

    /// Whether this asks for something from its beginning: the pages that follow are short, and come one after the other.
    fn begins(&self) -> bool {
        self.0.iter().all(|(name, _)| *name != "continue")
    }

    fn append_to(&self, path: &str) -> String {
        let mut uri = path.to_owned();
        for (at, (name, value)) in self.0.iter().enumerate() {
            uri.push(if at == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            for byte in value.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                        uri.push(byte as char);
                    }
                    // Writing to a String cannot fail.
                    _ => drop(write!(uri, "%{byte:02X}")),
                }
            }
        }
        uri
    }
}

/// Where a request goes and what it is for, for every error on the way.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) path: Arc<str>,
    /// Whether only the metadata of each object is asked for.
    pub(crate) metadata_only: bool,
}

impl Target {
    pub(crate) fn failed(&self, operation: &'static str, failure: Failure) -> ListWatchError {
        ListWatchError { operation, resource: Arc::clone(&self.path), failure }
    }

    pub(crate) fn split_failed(&self, operation: &'static str, error: &SplitError) -> ListWatchError {
        self.failed(operation, Failure::Body(error.to_string()))
    }

    /// Sends the request and returns the body of a successful answer.
    pub(crate) async fn send(&self, operation: &'static str, query: &Query) -> Result<Body, ListWatchError> {
        let accept = match (self.metadata_only, operation) {
            (false, _) => "application/json",
            (true, "list") => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            (true, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        };
        let transport = |error| self.failed(operation, Failure::Transport(Arc::new(error)));
        let mut request = Request::get(query.append_to(&self.path))
            .header(header::ACCEPT, accept)
            // Newer servers compress watches event by event, which costs more than it saves.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| transport(kube::Error::HttpError(error)))?;
        if query.begins() {
            request.extensions_mut().insert(ReadToItsEnd);
        }
        let response = self.client.send(request).await.map_err(transport)?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(self.failed(operation, refusal(response).await))
    }
}

/// A refusal may be an HTML page of some proxy; this much of a body is enough to find a Status in.
const LONGEST_STATUS: usize = 64 * 1024;

async fn refusal(response: http::Response<Body>) -> Failure {
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
        if text.len() > LONGEST_STATUS {
            break;
        }
    }
    refused(serde_json::from_slice(&text).unwrap_or_else(|_| bare_status(code)), header, code.as_u16())
}

/// A refusal with its status filled up from what else is known.
pub(crate) fn refused(mut status: Status, retry_after: Option<Duration>, code: u16) -> Failure {
    if status.code == 0 {
        status.code = code;
    }
    let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let retry_after = retry_after.or_else(|| (asked > 0).then(|| Duration::from_secs(u64::from(asked))));
    Failure::Refused { status: Box::new(status), retry_after }
}

fn bare_status(code: StatusCode) -> Status {
    // A path that nobody serves is answered in plain text.
    let message = if code == StatusCode::NOT_FOUND {
        "no such resource is served: is its CustomResourceDefinition installed, with this version?"
    } else {
        "the answer carries no status"
    };
    Status::failure(message, code.canonical_reason().unwrap_or_default()).with_code(code.as_u16())
}
