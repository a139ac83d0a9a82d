//! client-go's metrics of requests, for Prometheus.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use http::{Request, Uri};
use kube::client::Body;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};
use tokio::time::Instant;
use tower::BoxError;

use super::tap::{Answer, Tap, TapLayer};
use kubewright_core::series::{Durations, Series};

/// The upper limits of the buckets, in seconds.
const BOUNDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Requests to API servers, under the names that client-go gives them.
///
/// | metric | type | labels |
/// |---|---|---|
/// | `rest_client_requests_total` | counter | `code`, `method`, `host` |
/// | `rest_client_request_duration_seconds` | histogram | `verb`, `host` |
///
/// `code` is `<error>` where no answer came. The duration ends with the head of the answer, so that of a watch is the
/// time it took to open.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::kube::client::Body;
/// # let server = tower::service_fn(|_: Request<Body>| async {
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(b"ok".to_vec())))
/// # });
/// use kubewright::client::{RestMetrics, Transport};
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let metrics = RestMetrics::new();
/// let transport = Transport::over(server, "default").metrics(&metrics).build()?;
/// transport.client().request_text(Request::get("/version").body(vec![])?).await?;
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(metrics));
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// assert!(text.contains(r#"rest_client_requests_total{code="200",method="GET",host="in-process"} 1"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RestMetrics(Arc<Both>);

struct Both {
    requests: Series<u64, 3>,
    durations: Series<Durations, 2>,
}

impl RestMetrics {
    /// An empty set.
    pub fn new() -> Self {
        let requests = Series::new(["code", "method", "host"]);
        Self(Arc::new(Both { requests, durations: Series::new(["verb", "host"]) }))
    }

    /// The set of the process, in which transports count unless they are built with another.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<RestMetrics> = LazyLock::new(RestMetrics::new);
        &GLOBAL
    }

    /// The requests to one server.
    pub(super) fn of(&self, server: Option<&Uri>) -> Meter {
        // The host alone: the rest of an authority may be a password.
        let host = server.and_then(|server| {
            let host = server.host()?;
            Some(server.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        Meter { metrics: self.clone(), host: host.as_deref().unwrap_or("in-process").into() }
    }
}

impl Default for RestMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector for RestMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.requests.encode_counter(
            &mut encoder,
            "rest_client_requests",
            "Requests to API servers, by status code, method and host.",
        )?;
        self.0.durations.encode_histogram(
            &mut encoder,
            "rest_client_request_duration_seconds",
            "How long requests to API servers take, by verb and host.",
            &BOUNDS,
        )
    }
}

impl fmt::Debug for RestMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestMetrics").finish_non_exhaustive()
    }
}

/// Counts the requests to one server.
#[derive(Debug, Clone)]
pub struct Meter {
    metrics: RestMetrics,
    host: Arc<str>,
}

impl Tap for Meter {
    type Note = (http::Method, Instant);

    fn request(&self, request: &mut Request<Body>) -> Result<Self::Note, BoxError> {
        Ok((request.method().clone(), Instant::now()))
    }

    fn answer(&self, (method, begun): Self::Note, answer: Answer<'_>) {
        let code = match &answer {
            Ok((status, _)) => status.as_str(),
            Err(_) => "<error>",
        };
        let seconds = begun.elapsed().as_secs_f64();
        self.metrics.0.requests.count([code, method.as_str(), &self.host]);
        self.metrics
            .0
            .durations
            .update([method.as_str(), &self.host], |durations| durations.record(&BOUNDS, seconds));
    }
}

/// Counts requests; see [`RestMetrics`].
pub type MetricsLayer = TapLayer<Meter>;
