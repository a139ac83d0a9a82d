//! Shows the traffic, as `kubectl -v=6` to `-v=9` does.
//!
//! Events go to tracing under the target `kubewright::http` at level `DEBUG`; both the [`DebugLevel`] and the
//! filter must let them through, and while the filter does not, the layer costs one check per request.
//!
//! | level | what is shown |
//! |---|---|
//! | 6 | verb, URL, status and milliseconds, one event per request |
//! | 7 | and the request's headers |
//! | 8 | and the response's headers, and both bodies, cut after 1,024 characters |
//! | 9 | and a `curl` command line (without the body), and whole bodies |
//!
//! Credentials are never shown: header values, URL parameters and body fields that are or may be secrets are
//! masked at every level, and bodies that cannot be judged are left out (see `redact.rs`).
//!
//! # Streams
//! The answer is passed on frame by frame as it arrives; its copy for the log is written when it has ended.
//! Watches and followed logs are not copied at all, nor is what grows beyond 1 MiB (level 8) or 16 MiB (level
//! 9).

use std::{
    fmt::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use super::redact;
use crate::error;

/// The tracing target of all events of this layer.
const TARGET: &str = "kubewright::http";

/// How much of the traffic to show. The numbers are those of `kubectl -v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebugLevel {
    /// 6: verb, URL, status and time.
    Timing,
    /// 7: request headers too.
    Headers,
    /// 8: response headers and shortened bodies too.
    Bodies,
    /// 9: curl commands and whole bodies too.
    Curl,
}

impl DebugLevel {
    /// The level for a number after `-v`; below 6 there is nothing to show.
    ///
    /// ```
    /// use kubewright::client::DebugLevel;
    ///
    /// assert_eq!(DebugLevel::from_verbosity(5), None);
    /// assert_eq!(DebugLevel::from_verbosity(6), Some(DebugLevel::Timing));
    /// assert_eq!(DebugLevel::from_verbosity(10), Some(DebugLevel::Curl));
    /// ```
    pub fn from_verbosity(verbosity: u8) -> Option<Self> {
        match verbosity {
            0..=5 => None,
            6 => Some(Self::Timing),
            7 => Some(Self::Headers),
            8 => Some(Self::Bodies),
            _ => Some(Self::Curl),
        }
    }

    /// The longest body that is looked at, and the longest text that is shown of it.
    fn limits(self) -> (usize, usize) {
        match self {
            Self::Curl => (16 << 20, usize::MAX),
            _ => (1 << 20, 1024),
        }
    }
}

/// Shows what passes at a [`DebugLevel`], or nothing.
#[derive(Debug, Clone)]
pub struct DebugLayer {
    level: Option<DebugLevel>,
    base: Option<Uri>,
}

impl DebugLayer {
    /// A layer that shows requests at this level. `base` completes the URLs of requests that are still
    /// relative.
    pub fn new(level: Option<DebugLevel>, base: Option<Uri>) -> Self {
        Self { level, base }
    }
}

impl<S> Layer<S> for DebugLayer {
    type Service = DebugService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        DebugService { inner, layer: self.clone() }
    }
}

/// The service of [`DebugLayer`].
#[derive(Debug, Clone)]
pub struct DebugService<S> {
    inner: S,
    layer: DebugLayer,
}

impl<S, B> Service<Request<Body>> for DebugService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Unpin + 'static,
{
    type Response = Response<Tee<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Tee<B>>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let level = self.layer.level.filter(|_| tracing::enabled!(target: TARGET, tracing::Level::DEBUG));
        let Some(level) = level else {
            let answer = self.inner.call(request);
            return Box::pin(async move {
                let response = answer.await.map_err(Into::into)?;
                Ok(response.map(|inner| Tee { inner, copy: None }))
            });
        };
        let exchange = Exchange::begin(level, self.layer.base.as_ref(), &request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            match answer.await.map_err(Into::into) {
                Ok(response) => Ok(exchange.answered(response)),
                Err(failure) => {
                    exchange.failed(&failure);
                    Err(failure)
                }
            }
        })
    }
}

/// One request and its answer.
struct Exchange {
    level: DebugLevel,
    verb: String,
    url: String,
    path: String,
    streams: bool,
    begun: Instant,
}

impl Exchange {
    fn begin(level: DebugLevel, base: Option<&Uri>, request: &Request<Body>) -> Self {
        let exchange = Self {
            level,
            verb: request.method().to_string(),
            url: redact::url(base, request.uri()),
            path: request.uri().path().to_owned(),
            streams: streams(request.uri()),
            begun: Instant::now(),
        };
        let Self { verb, url, .. } = &exchange;
        if level >= DebugLevel::Curl {
            let curl = curl(verb, url, request.headers());
            tracing::debug!(target: TARGET, verb, url, headers = headers(request.headers()), curl, "Request");
        } else if level >= DebugLevel::Headers {
            tracing::debug!(target: TARGET, verb, url, headers = headers(request.headers()), "Request");
        }
        if level >= DebugLevel::Bodies {
            exchange.request_body(request.body());
        }
        exchange
    }

    fn request_body(&self, body: &Body) {
        // A body that is a stream cannot be copied and is passed on unseen; requests of clients are never
        // that.
        let bytes = body.try_clone().and_then(|copy| copy.collect().now_or_never()).and_then(Result::ok);
        match bytes.map(http_body_util::Collected::to_bytes) {
            Some(bytes) if bytes.is_empty() => {}
            Some(bytes) => self.show("Request Body", &bytes),
            None => {
                tracing::debug!(target: TARGET, verb = self.verb, url = self.url, "Request Body is a stream, not shown");
            }
        }
    }

    fn answered<B>(self, response: Response<B>) -> Response<Tee<B>> {
        let Self { verb, url, .. } = &self;
        let status = response.status().to_string();
        let milliseconds = self.milliseconds();
        if self.level >= DebugLevel::Bodies {
            let headers = headers(response.headers());
            tracing::debug!(target: TARGET, verb, url, status, milliseconds, headers, "Response");
        } else {
            tracing::debug!(target: TARGET, verb, url, status, milliseconds, "Response");
        }
        let wanted = self.level >= DebugLevel::Bodies && !self.streams;
        let copy = wanted.then(|| Copy { exchange: self, bytes: BytesMut::new(), length: 0 });
        response.map(|inner| Tee { inner, copy })
    }

    fn failed(&self, failure: &BoxError) {
        let reason = match error::auth_error(failure.as_ref()) {
            Some(auth) => error::summary(auth),
            None => failure.to_string(),
        };
        let Self { verb, url, .. } = self;
        tracing::debug!(target: TARGET, verb, url, milliseconds = self.milliseconds(), reason, "No response");
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn show(&self, what: &str, bytes: &[u8]) {
        let (_, longest) = self.level.limits();
        let mut body = redact::body(&self.path, bytes);
        if let Some((cut, _)) = body.char_indices().nth(longest) {
            let left_out = body[cut..].chars().count();
            body.truncate(cut);
            let _ = write!(body, " [truncated {left_out} chars]");
        }
        tracing::debug!(target: TARGET, verb = self.verb, url = self.url, body, "{what}");
    }
}

/// Answers that have no end worth waiting for.
fn streams(uri: &Uri) -> bool {
    let asked = |pair: &str| matches!(pair, "watch=true" | "watch=1" | "watch" | "follow=true" | "follow=1");
    uri.query().unwrap_or_default().split('&').any(asked)
        // The deprecated form: /api/v1/watch/…
        || uri.path().split('/').any(|segment| segment == "watch")
}

/// Headers as they may be shown, sorted.
fn header_lines(headers: &HeaderMap) -> Vec<String> {
    let line = |(name, value)| format!("{name}: {}", redact::header(name, value));
    let mut lines: Vec<String> = headers.iter().map(line).collect();
    lines.sort();
    lines
}

fn headers(headers: &HeaderMap) -> String {
    header_lines(headers).join("\n")
}

fn curl(verb: &str, url: &str, headers: &HeaderMap) -> String {
    let mut text = format!("curl -v -X{verb}");
    for line in header_lines(headers) {
        let _ = write!(text, " -H {}", quote(&line));
    }
    let _ = write!(text, " {}", quote(url));
    text
}

/// Quotes for a POSIX shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A body that is passed on as it comes, and copied for the log where that is wanted.
pub struct Tee<B> {
    inner: B,
    copy: Option<Copy>,
}

struct Copy {
    exchange: Exchange,
    bytes: BytesMut,
    length: usize,
}

impl Copy {
    fn take(&mut self, data: &Bytes) {
        self.length += data.len();
        let (most, _) = self.exchange.level.limits();
        if self.length <= most {
            self.bytes.extend_from_slice(data);
        } else {
            // Too long to be looked at whole, and half a document cannot be judged: give the memory back.
            self.bytes = BytesMut::new();
        }
    }

    fn show(self, ended: bool) {
        let Exchange { verb, url, level, .. } = &self.exchange;
        if !ended || self.length > level.limits().0 {
            let length = self.length;
            tracing::debug!(target: TARGET, verb, url, length, ended, "Response Body not shown");
        } else if self.length > 0 {
            self.exchange.show("Response Body", &self.bytes);
        }
    }
}

impl<B> std::fmt::Debug for Tee<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tee").field("copied", &self.copy.is_some()).finish_non_exhaustive()
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(frame) = &polled
            && let Some(mut copy) = self.copy.take()
        {
            match frame {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        copy.take(data);
                    }
                    if self.inner.is_end_stream() {
                        copy.show(true);
                    } else {
                        self.copy = Some(copy);
                    }
                }
                Some(Err(_)) => copy.show(false),
                None => copy.show(true),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
