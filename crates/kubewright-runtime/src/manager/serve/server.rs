//! HTTP server.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    access::AccessReview,
    bind,
    checks::Checks,
    metrics::Metrics,
    site::Routes,
    tls::{Certificate, CertificateError},
};

/// Time-out for TLS handshakes and request headers.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Grace period for requests in flight when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// How often the certificate's files are checked for changes.
const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Error of starting a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The text is no listen address.
    #[error(
        "{0:?} is no address to listen on: write it as 127.0.0.1:8080, [::1]:8080, :8080 or localhost:8080, or 0 for none"
    )]
    Address(String),
    /// Listening on the address failed.
    #[error("cannot listen on {address}: {source}; choose another address or port, or 0 for none")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The certificate cannot be loaded.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Builder of a [`Server`].
#[derive(Debug)]
#[must_use = "call listen() to get the server"]
pub struct ServerBuilder {
    address: String,
    routes: Routes,
    certificate: Option<(PathBuf, PathBuf)>,
}

impl ServerBuilder {
    /// Serves these checks under `/healthz`: is the process alive, or should it be restarted?
    pub fn healthz(mut self, checks: Checks) -> Self {
        self.routes.healthz = Some(checks);
        self
    }

    /// Serves these checks under `/readyz`: should requests be sent here?
    pub fn readyz(mut self, checks: Checks) -> Self {
        self.routes.readyz = Some(checks);
        self
    }

    /// Serves these metrics under `/metrics`.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.routes.metrics = Some(metrics);
        self
    }

    /// Authorizes scrapes of `/metrics`. Use it with TLS, because clients send tokens.
    pub fn protect(mut self, access: AccessReview) -> Self {
        self.routes.access = Some(access);
        self
    }

    /// Serves TLS with the certificate chain and key in these files, which are reloaded when they change.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Binds the address. Connections wait until the server runs.
    pub async fn listen(self) -> Result<Server, ServeError> {
        let addresses =
            bind::parse(&self.address).ok_or_else(|| ServeError::Address(self.address.clone()))?;
        let routes = Arc::new(self.routes);
        if addresses.is_empty() {
            return Ok(Server { listener: None, routes, tls: None });
        }
        let tls = match self.certificate {
            None => None,
            Some((certificate, key)) => {
                let certificate = Arc::new(Certificate::load(certificate, key)?);
                let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config()?));
                Some(Tls { certificate, acceptor })
            }
        };
        let failed = |source| ServeError::Listen { address: self.address.clone(), source };
        let listener = TcpListener::bind(&*addresses).await.map_err(failed)?;
        Ok(Server { listener: Some(listener), routes, tls })
    }
}

struct Tls {
    certificate: Arc<Certificate>,
    acceptor: TlsAcceptor,
}

/// HTTP server that listens.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::manager::serve::{Checks, Server};
/// use tokio_util::sync::CancellationToken;
///
/// let server = Server::builder("127.0.0.1:0").healthz(Checks::new()).listen().await?;
/// println!("probe http://{}/healthz", server.address().expect("it was not turned off"));
/// let stop = CancellationToken::new();
/// let running = tokio::spawn(server.run(stop.clone()));
/// stop.cancel();
/// running.await?;
/// # Ok(()) }
/// ```
#[must_use = "call run() to serve"]
pub struct Server {
    listener: Option<TcpListener>,
    routes: Arc<Routes>,
    tls: Option<Tls>,
}

impl Server {
    /// Creates a builder for an address: `127.0.0.1:8080`, `:8080` for all interfaces, or `0` to disable the
    /// server.
    pub fn builder(address: impl Into<String>) -> ServerBuilder {
        ServerBuilder { address: address.into(), routes: Routes::default(), certificate: None }
    }

    /// The address it listens on; `None` if it is disabled.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Serves until `stop` is cancelled, then waits a moment for requests in flight.
    pub async fn run(self, stop: CancellationToken) {
        let Some(listener) = self.listener else { return stop.cancelled().await };
        let connections = TaskTracker::new();
        let mut refresh = interval(CERTIFICATE_CHECK_INTERVAL);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = refresh.tick(), if self.tls.is_some() => {
                    if let Some(tls) = &self.tls {
                        tls.certificate.refresh();
                    }
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            let Ok((socket, _)) = accepted else {
                // Out of file descriptors: wait until some are closed.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let acceptor = self.tls.as_ref().map(|tls| tls.acceptor.clone());
            connections.spawn(connect(socket, acceptor, Arc::clone(&self.routes), stop.clone()));
        }
        drop(listener);
        connections.close();
        if timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!("connections of probes or scrapers were cut off");
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}

pub(super) async fn connect(
    socket: TcpStream,
    acceptor: Option<TlsAcceptor>,
    routes: Arc<Routes>,
    stop: CancellationToken,
) {
    let Some(acceptor) = acceptor else { return serve(socket, routes, stop).await };
    match timeout(CLIENT_TIMEOUT, acceptor.accept(socket)).await {
        Ok(Ok(stream)) => serve(stream, routes, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, routes: Arc<Routes>, stop: CancellationToken) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let routes = Arc::clone(&routes);
        async move { Ok::<_, Infallible>(routes.respond(&request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        biased;
        () = stop.cancelled() => false,
        _ = connection.as_mut() => true,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // An error means that the client has closed the connection.
        let _ = connection.await;
    }
}
