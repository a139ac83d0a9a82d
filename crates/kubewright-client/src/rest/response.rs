//! An answer: refused or not, whole or in pieces, decoded or not.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::{
    Request, Response,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, client::Body, core::Status};
use serde::de::DeserializeOwned;

use crate::error::{ApiError, TransportFault, generic_status, set_retry_after};

/// A `Status` is a few hundred bytes; what is longer than this is somebody's error page.
const LONGEST_STATUS: usize = 1 << 20;

/// Sends a request and names the operation if no answer comes.
pub(crate) async fn send(
    client: &Client,
    operation: &str,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    client.send(request).await.map_err(|error| ApiError::transport(operation, error))
}

/// Passes on a success and makes an error of everything else.
pub async fn check<B>(operation: &str, creating: bool, response: Response<B>) -> Result<Response<B>, ApiError>
where
    B: http_body::Body<Data = Bytes, Error = kube::Error>,
{
    if response.status().is_success() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let media_type =
        parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no media type");
    let (length, status) = match Limited::new(body, LONGEST_STATUS).collect().await {
        Ok(whole) => {
            let bytes = whole.to_bytes();
            (format!("{} bytes of {media_type}", bytes.len()), parse_status(&bytes))
        }
        Err(_) => (format!("an unreadable body of {media_type}"), None),
    };
    let mut status = status.unwrap_or_else(|| {
        // An error page of a proxy. Its text stays out: nobody knows what is in it.
        generic_status(
            parts.status,
            creating,
            format!("the server answered with {length} instead of a Status"),
        )
    });
    if status.code == 0 {
        status.code = parts.status.as_u16();
    }
    let retry_after =
        parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    if let Some(seconds) = retry_after {
        set_retry_after(&mut status, seconds);
    }
    Err(ApiError::Status { operation: operation.to_owned(), status: Box::new(status) })
}

/// A `Status` and nothing that merely has some of its fields.
fn parse_status(bytes: &[u8]) -> Option<Status> {
    #[derive(serde::Deserialize)]
    struct Kind<'a> {
        #[serde(borrow)]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    let kind: Kind<'_> = serde_json::from_slice(bytes).ok()?;
    (kind.kind.as_deref() == Some("Status")).then(|| serde_json::from_slice(bytes).ok()).flatten()
}

/// The whole body.
pub async fn read_all(
    operation: &str,
    mut body: impl http_body::Body<Data = Bytes, Error = kube::Error> + Unpin,
) -> Result<Bytes, ApiError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let received = (first.len() + rest.len()) as u64;
        let Ok(data) = frame.map_err(|error| interrupted(operation, received, Some(error)))?.into_data()
        else {
            continue;
        };
        // Most answers are one frame: that one is passed on without a copy.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Reads JSON, and tells of a failure without repeating what was read.
pub fn decode<T: DeserializeOwned>(operation: &str, bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::decode::<T>(operation, &error))
}

pub(crate) fn interrupted(operation: &str, received: u64, error: Option<kube::Error>) -> ApiError {
    ApiError::Interrupted {
        operation: operation.to_owned(),
        received,
        source: error.map(TransportFault::from),
    }
}

/// A body as it arrives: a [`Stream`] of its frames.
#[derive(Debug)]
pub struct BodyStream {
    operation: String,
    body: Body,
    received: u64,
    ended: bool,
}

impl BodyStream {
    pub(crate) fn new(operation: String, body: Body) -> Self {
        Self { operation, body, received: 0, ended: false }
    }

    pub(crate) fn operation(&self) -> &str {
        &self.operation
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }
}

impl Stream for BodyStream {
    type Item = Result<Bytes, ApiError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while !this.ended {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.received += data.len() as u64;
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(interrupted(&this.operation, this.received, Some(error)))));
                }
                None => this.ended = true,
            }
        }
        Poll::Ready(None)
    }
}
