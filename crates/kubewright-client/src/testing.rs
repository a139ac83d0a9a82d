//! Test double of a server: responds by path, and records its requests.

pub(crate) mod cluster;

use std::{convert::Infallible, sync::Arc};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tower::{ServiceExt as _, util::BoxCloneService};

/// The double as a tower service.
pub(crate) type Service = BoxCloneService<Request<Body>, Response<Body>, Infallible>;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) line: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

/// The recorded requests of a test, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<Vec<RecordedRequest>>>);

impl RequestLog {
    pub(crate) fn all(&self) -> Vec<RecordedRequest> {
        self.0.lock().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().map(|seen| seen.line).collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Creates a service that records each request and responds with the result of `answer`.
pub(crate) fn service<F>(answer: F) -> (RequestLog, Service)
where
    F: Fn(&RecordedRequest) -> Response<Body> + Clone + Send + Sync + 'static,
{
    let log = RequestLog::default();
    let record = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, record) = (answer.clone(), record.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            let seen = RecordedRequest {
                line: format!("{} {}", parts.method, parts.uri),
                headers: parts.headers,
                body: String::from_utf8_lossy(&body).into_owned(),
            };
            record.0.lock().push(seen.clone());
            // Let concurrent requests interleave.
            tokio::task::yield_now().await;
            Ok(answer(&seen))
        }
    });
    (log, service.boxed_clone())
}

/// Creates a client over such a service.
pub(crate) fn client<F>(answer: F) -> (RequestLog, Client)
where
    F: Fn(&RecordedRequest) -> Response<Body> + Clone + Send + Sync + 'static,
{
    let (log, service) = service(answer);
    (log, Client::new(service, "default"))
}

/// Creates a JSON response.
pub(crate) fn json(code: u16, body: &serde_json::Value) -> Response<Body> {
    text(code, "application/json", &body.to_string())
}

/// Creates a response of any media type.
pub(crate) fn text(code: u16, media_type: &str, body: &str) -> Response<Body> {
    Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .header("content-type", media_type)
        .body(Body::from(body.as_bytes().to_vec()))
        .unwrap()
}

/// Creates an error `Status` response as kube-apiserver sends it.
pub(crate) fn status_error(code: u16, reason: &str, message: &str) -> Response<Body> {
    json(
        code,
        &serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        }),
    )
}
