//! Routes of the HTTP server.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::Full;

use super::{
    access::AccessReview,
    checks::{Checks, ProbeResponse},
    metrics::Metrics,
    negotiate::{OPEN_METRICS, PROMETHEUS, to_prometheus, wants_open_metrics},
};

const PLAIN: &str = "text/plain; charset=utf-8";

#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) healthz: Option<Checks>,
    pub(super) readyz: Option<Checks>,
    pub(super) metrics: Option<Metrics>,
    pub(super) access: Option<AccessReview>,
}

impl Routes {
    pub(super) async fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response =
                to_response((StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n".to_owned()), PLAIN);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let path = request.uri().path();
        let (first, rest) = match path.trim_matches('/').split_once('/') {
            Some((first, rest)) => (first, rest),
            None => (path.trim_matches('/'), ""),
        };
        let query = request.uri().query().unwrap_or_default();
        let checks = match first {
            "healthz" => self.healthz.as_ref(),
            "readyz" => self.readyz.as_ref(),
            "metrics" if rest.is_empty() => return self.scrape(request).await,
            _ => None,
        };
        let probe = match checks {
            Some(checks) if rest.is_empty() => Some(checks.run(query).await),
            Some(checks) => checks.run_one(rest).await,
            None => None,
        };
        to_response(probe.unwrap_or_else(not_found), PLAIN)
    }

    async fn scrape<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let Some(metrics) = &self.metrics else { return to_response(not_found(), PLAIN) };
        if let Some(access) = &self.access {
            let verb = request.method().as_str().to_ascii_lowercase();
            if let Err(refusal) = access.check(request.headers(), &verb, request.uri().path()).await {
                return to_response(refusal, PLAIN);
            }
        }
        match metrics.text() {
            Ok(text) if wants_open_metrics(request.headers()) => {
                to_response((StatusCode::OK, text), OPEN_METRICS)
            }
            Ok(text) => to_response((StatusCode::OK, to_prometheus(&text)), PROMETHEUS),
            Err(_) => {
                let text = "a collector failed to encode its metrics\n".to_owned();
                to_response((StatusCode::INTERNAL_SERVER_ERROR, text), PLAIN)
            }
        }
    }
}

/// The text of Go's HTTP server.
fn not_found() -> ProbeResponse {
    (StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
}

fn to_response((status, text): ProbeResponse, kind: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
