//! Listening.

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
    site::Site,
    tls::{Certificate, CertificateError},
};

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long requests have to finish once the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// How often the files of the certificate are looked at.
const REFRESH: Duration = Duration::from_secs(10);

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is none.
    #[error(
        "{0:?} is no address to listen on: write it as 127.0.0.1:8080, [::1]:8080, :8080 or localhost:8080, or 0 for none"
    )]
    Address(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address or port, or 0 for none")]
    Listen {
        /// The address.
        address: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Sets up a [`Server`].
#[derive(Debug)]
#[must_use = "call listen() to get the server"]
pub struct Builder {
    address: String,
    site: Site,
    certificate: Option<(PathBuf, PathBuf)>,
}

impl Builder {
    /// Serves these checks under `/healthz`: is the process alive, or should it be restarted?
    pub fn healthz(mut self, checks: Checks) -> Self {
        self.site.healthz = Some(checks);
        self
    }

    /// Serves these checks under `/readyz`: should requests be sent here?
    pub fn readyz(mut self, checks: Checks) -> Self {
        self.site.readyz = Some(checks);
        self
    }

    /// Serves these metrics under `/metrics`.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.site.metrics = Some(metrics);
        self
    }

    /// Lets only those scrape `/metrics` who may. Use it with TLS: tokens are sent.
    pub fn protect(mut self, access: AccessReview) -> Self {
        self.site.access = Some(access);
        self
    }

    /// Speaks TLS with the certificate (chain) and key in these files, which are read again when they change.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Listens. Connections wait until the server runs.
    pub async fn listen(self) -> Result<Server, ServeError> {
        let addresses =
            bind::parse(&self.address).ok_or_else(|| ServeError::Address(self.address.clone()))?;
        let site = Arc::new(self.site);
        if addresses.is_empty() {
            return Ok(Server { listener: None, site, tls: None });
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
        Ok(Server { listener: Some(listener), site, tls })
    }
}

struct Tls {
    certificate: Arc<Certificate>,
    acceptor: TlsAcceptor,
}

/// A server that listens.
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
    site: Arc<Site>,
    tls: Option<Tls>,
}

impl Server {
    /// Begins a server on an address: `127.0.0.1:8080`, `:8080` for all interfaces, or `0` for none.
    pub fn builder(address: impl Into<String>) -> Builder {
        Builder { address: address.into(), site: Site::default(), certificate: None }
    }

    /// Where it listens; nowhere if it was turned off.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Serves until told to stop, then lets requests finish for a moment.
    pub async fn run(self, stop: CancellationToken) {
        let Some(listener) = self.listener else { return stop.cancelled().await };
        let connections = TaskTracker::new();
        let mut refresh = interval(REFRESH);
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
                // Out of file descriptors: give others the time to close theirs.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let acceptor = self.tls.as_ref().map(|tls| tls.acceptor.clone());
            connections.spawn(connect(socket, acceptor, Arc::clone(&self.site), stop.clone()));
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
    site: Arc<Site>,
    stop: CancellationToken,
) {
    let Some(acceptor) = acceptor else { return serve(socket, site, stop).await };
    match timeout(PATIENCE, acceptor.accept(socket)).await {
        Ok(Ok(stream)) => serve(stream, site, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, site: Arc<Site>, stop: CancellationToken) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(&request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        biased;
        () = stop.cancelled() => false,
        _ = connection.as_mut() => true,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // Whoever is cut off here has hung up or is about to.
        let _ = connection.await;
    }
}
