//! HTTP client of the exporter, on the program's tokio runtime.
//!
//! The SDK exports from a thread of its own without a reactor. The clients that come with it block that
//! thread or need a second HTTP and TLS stack; this one spawns each request on the existing runtime.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

/// Default time-out of a request to the collector.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Size limit of responses, which are empty or list rejected spans.
const MAX_RESPONSE: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct RuntimeClient {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

impl RuntimeClient {
    pub(super) fn new(runtime: Handle, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variables = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
        let timeout = variables.iter().find_map(|name| variable(name)?.trim().parse().ok());
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls()).https_or_http().enable_http1().build();
        Self {
            runtime,
            client: Client::builder(TokioExecutor::new()).build(connector),
            timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
        }
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let (head, body) = self.client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_RESPONSE).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        tokio::time::timeout(self.timeout, exchange).await?
    }
}

/// TLS with the system's trusted certificates; without any, only collectors without TLS can be reached.
fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows the protocol versions that rustls thinks safe");
    match config.clone().with_native_roots() {
        Ok(config) => config.with_no_client_auth(),
        Err(error) => {
            tracing::debug!(%error, "no certificates that this machine trusts");
            config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    }
}

type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for RuntimeClient {
    fn send_bytes<'s, 'a>(&'s self, request: Request<Bytes>) -> ResponseFuture<'a>
    where
        's: 'a,
        Self: 'a,
    {
        let sending = self.runtime.spawn(self.clone().send(request));
        // Awaiting a task needs no reactor. It fails when the runtime is gone.
        Box::pin(async move { sending.await? })
    }
}
