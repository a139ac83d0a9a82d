//! A request in the making.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE},
};
use kube::{Client, client::Body};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Serialize, de::DeserializeOwned};

use super::{BodyStream, WatchStream, check, decode, not_sent, read_all, send};
use crate::{error::ApiError, transport::Impersonation};

/// What may stand in a path segment or a query part as it is (RFC 3986, unreserved).
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In a path segment these may stand too, and names like `system:node` are easier to read with them.
const SEGMENT: AsciiSet = KEPT.remove(b':').remove(b'@').remove(b'!').remove(b'$').remove(b',').remove(b'=');

/// The sort of a patch, which the server is told by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// A list of operations (RFC 6902).
    Json,
    /// A partial object (RFC 7386).
    Merge,
    /// A partial object that knows which lists are maps; built-in types only.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// The content type of the request.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// A request to the API server, put together word by word. Made by [`RestClient`](super::RestClient).
///
/// A mistake on the way, such as a name with a slash, is told when the request is sent.
#[must_use = "a request does nothing until it is sent: call json(), bytes(), stream() or send()"]
pub struct RestRequest {
    client: Client,
    method: Method,
    prefix: String,
    raw_query: Option<String>,
    namespace: Option<String>,
    resource: Option<String>,
    name: Option<String>,
    subresource: Vec<String>,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
    body: Bytes,
    impersonation: Option<Impersonation>,
    timeout: Option<Duration>,
    mistake: Option<String>,
}

impl RestRequest {
    pub(super) fn new(client: Client, method: Method, prefix: String) -> Self {
        Self {
            client,
            method,
            prefix,
            raw_query: None,
            namespace: None,
            resource: None,
            name: None,
            subresource: Vec::new(),
            query: Vec::new(),
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
            impersonation: None,
            timeout: None,
            mistake: None,
        }
    }

    /// Begins at this path instead of the client's group version. It may carry a query, and is sent as it is.
    pub fn path(mut self, path: impl AsRef<str>) -> Self {
        let path = path.as_ref();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        self.prefix = format!("/{}", path.trim_start_matches('/'));
        self.raw_query = query.filter(|query| !query.is_empty()).map(str::to_owned);
        self
    }

    /// In this namespace; empty means none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        if namespace.is_empty() {
            self.namespace = None;
        } else {
            self.segment("namespace", &namespace);
            self.namespace = Some(namespace);
        }
        self
    }

    /// Of this resource, by its plural: `pods`.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        let resource = resource.into();
        self.segment("resource", &resource);
        self.resource = Some(resource);
        self
    }

    /// Of the object with this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.segment("name", &name);
        self.name = Some(name);
        self
    }

    /// A part of the object: `status`, `scale`, `log`. Called twice, it goes deeper.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        let subresource = subresource.into();
        self.segment("subresource", &subresource);
        self.subresource.push(subresource);
        self
    }

    /// With one more query parameter.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// With a header, replacing an earlier one of the same name.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let (name, value) = (name.as_ref(), value.as_ref());
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => self.wrong(format!("{name:?} or its value is no HTTP header")),
        }
        self
    }

    /// Asks for this media type.
    pub fn accept(self, media_type: impl AsRef<str>) -> Self {
        self.header(ACCEPT, media_type)
    }

    /// Says what the body is. [`json`](Self::json_body) says it by itself.
    pub fn content_type(self, media_type: impl AsRef<str>) -> Self {
        self.header(CONTENT_TYPE, media_type)
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// With this object as body, in JSON.
    pub fn json_body<T: Serialize + ?Sized>(mut self, object: &T) -> Self {
        match serde_json::to_vec(object) {
            Ok(body) => {
                self.body = body.into();
                self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            }
            // The error may quote the object.
            Err(_) => self.wrong(format!("the {} cannot be written as JSON", std::any::type_name::<T>())),
        }
        self
    }

    /// Acts as somebody else, for this request only.
    pub fn impersonate(mut self, who: Impersonation) -> Self {
        self.impersonation = Some(who);
        self
    }

    /// Gives up after this time, and asks the server to do so too. For [`stream`](Self::stream) and
    /// [`watch`](Self::watch) it limits the time until the answer begins.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Path and query as they will be sent.
    pub fn url(&self) -> String {
        let mut url = self.path_only();
        let mut separator = '?';
        if let Some(raw) = &self.raw_query {
            url.push(separator);
            url.push_str(raw);
            separator = '&';
        }
        let timeout =
            self.timeout.map(|timeout| ("timeout".to_owned(), format!("{}s", timeout.as_secs_f64())));
        for (name, value) in self.query.iter().chain(&timeout) {
            url.push(separator);
            url.extend(utf8_percent_encode(name, &KEPT));
            url.push('=');
            url.extend(utf8_percent_encode(value, &KEPT));
            separator = '&';
        }
        url
    }

    /// Sends the request and returns the answer's body in one piece.
    pub async fn bytes(self) -> Result<Bytes, ApiError> {
        let (operation, timeout) = (self.operation(), self.timeout);
        within(&operation, timeout, async {
            let response = self.answer().await?;
            read_all(&operation, response.into_body()).await
        })
        .await
    }

    /// Sends the request and reads the answer as JSON.
    pub async fn json<T: DeserializeOwned>(mut self) -> Result<T, ApiError> {
        self.headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let operation = self.operation();
        let bytes = self.bytes().await?;
        decode(&operation, &bytes)
    }

    /// Sends the request and returns the answer frame by frame as it arrives: logs, and what is too large to
    /// hold.
    pub async fn stream(mut self) -> Result<BodyStream, ApiError> {
        self.plain_encoding();
        let operation = self.operation();
        let response = self.send().await?;
        Ok(BodyStream::new(operation, response.into_body()))
    }

    /// Sends the request as a watch and returns its events. Adds `watch=true`; everything else is said by
    /// [`query`](Self::query).
    pub async fn watch<K: DeserializeOwned>(mut self) -> Result<WatchStream<K>, ApiError> {
        self.plain_encoding();
        self.headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let request = self.query("watch", "true");
        Ok(WatchStream::new(request.stream().await?))
    }

    /// Sends the request and returns the answer as it is, unless it is a refusal.
    pub async fn send(self) -> Result<Response<Body>, ApiError> {
        let (operation, timeout) = (self.operation(), self.timeout);
        within(&operation, timeout, self.answer()).await
    }

    async fn answer(self) -> Result<Response<Body>, ApiError> {
        let (operation, creating) = (self.operation(), self.method == Method::POST);
        let client = self.client.clone();
        let response = send(&client, &operation, self.build()?).await?;
        check(&operation, creating, response).await
    }

    /// The request as it will be sent.
    pub(crate) fn build(self) -> Result<Request<Body>, ApiError> {
        let path = self.path_only();
        if let Some(mistake) = &self.mistake {
            return Err(not_sent(&self.method, &path, mistake.clone()));
        }
        if self.resource.is_none() && (self.name.is_some() || self.namespace.is_some()) {
            return Err(not_sent(&self.method, &path, "a name or namespace was given but no resource"));
        }
        if self.name.is_none() && !self.subresource.is_empty() {
            return Err(not_sent(&self.method, &path, "a subresource was given but no name"));
        }
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(self.url())
            .body(Body::from(self.body))
            .map_err(|_| not_sent(&self.method, &path, "the path or query is not valid in a URL"))?;
        *request.headers_mut() = self.headers;
        if let Some(who) = self.impersonation {
            who.put_on(&mut request).map_err(|error| not_sent(&self.method, &path, error.to_string()))?;
        }
        Ok(request)
    }

    fn path_only(&self) -> String {
        let mut path = self.prefix.trim_end_matches('/').to_owned();
        let mut add = |segment: &str| {
            path.push('/');
            path.extend(utf8_percent_encode(segment, &SEGMENT));
        };
        if let Some(namespace) = &self.namespace {
            add("namespaces");
            add(namespace);
        }
        for segment in self.resource.iter().chain(&self.name).chain(&self.subresource) {
            add(segment);
        }
        if path.is_empty() {
            path.push('/');
        }
        path
    }

    fn operation(&self) -> String {
        format!("{} {}", self.method, self.path_only())
    }

    /// Since 1.37 the server compresses watches event by event, which decoders take for the end of the
    /// stream.
    fn plain_encoding(&mut self) {
        self.headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    }

    fn segment(&mut self, what: &str, text: &str) {
        if let Err(mistake) = check_segment(what, text) {
            self.wrong(mistake);
        }
    }

    fn wrong(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }
}

impl std::fmt::Debug for RestRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RestRequest").field(&self.operation()).finish()
    }
}

/// A name must be one segment of a path: with a slash, or as `..`, it would be the name of something else.
pub fn check_segment(what: &str, text: &str) -> Result<(), String> {
    match text {
        "" => Err(format!("the {what} is empty")),
        "." | ".." => Err(format!("the {what} may not be {text:?}")),
        _ if text.contains(['/', '%']) => Err(format!("the {what} {text:?} may not contain '/' or '%'")),
        _ => Ok(()),
    }
}

/// A checked name as it is written into a path.
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, &SEGMENT).to_string()
}

async fn within<T>(
    operation: &str,
    timeout: Option<Duration>,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    match timeout {
        None => answer.await,
        Some(timeout) => tokio::time::timeout(timeout, answer).await.unwrap_or_else(|_| {
            let gave_up = std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("gave up after {} seconds", timeout.as_secs_f64()),
            );
            Err(ApiError::transport(operation, kube::Error::Service(gave_up.into())))
        }),
    }
}
