//! A server double for the tests of this module: answers by path, and remembers what it was asked.

pub(crate) mod cluster;

use std::{convert::Infallible, sync::Arc};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tower::{ServiceExt as _, util::BoxCloneService};

/// The double as a tower service.
pub(crate) type Service = BoxCloneService<Request<Body>, Response<Body>, Infallible>;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

/// The requests of a test, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().map(|seen| seen.line).collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// A service that records each request and answers with what `answer` makes of it.
pub(crate) fn service<F>(answer: F) -> (Log, Service)
where
    F: Fn(&Seen) -> Response<Body> + Clone + Send + Sync + 'static,
{
    let log = Log::default();
    let record = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, record) = (answer.clone(), record.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            let seen = Seen {
                line: format!("{} {}", parts.method, parts.uri),
                headers: parts.headers,
                body: String::from_utf8_lossy(&body).into_owned(),
            };
            record.0.lock().push(seen.clone());
            // Let others come while this one is under way: that is what concurrency tests are about.
            tokio::task::yield_now().await;
            Ok(answer(&seen))
        }
    });
    (log, service.boxed_clone())
}

/// A client straight on such a service.
pub(crate) fn client<F>(answer: F) -> (Log, Client)
where
    F: Fn(&Seen) -> Response<Body> + Clone + Send + Sync + 'static,
{
    let (log, service) = service(answer);
    (log, Client::new(service, "default"))
}

/// An answer in JSON.
pub(crate) fn json(code: u16, body: &serde_json::Value) -> Response<Body> {
    text(code, "application/json", &body.to_string())
}

/// An answer in anything.
pub(crate) fn text(code: u16, media_type: &str, body: &str) -> Response<Body> {
    Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .header("content-type", media_type)
        .body(Body::from(body.as_bytes().to_vec()))
        .unwrap()
}

/// A refusal as kube-apiserver writes it.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Response<Body> {
    json(
        code,
        &serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        }),
    )
}
