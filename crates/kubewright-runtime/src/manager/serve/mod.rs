//! HTTP for probes and scrapes: `/healthz`, `/readyz` and `/metrics`.
//!
//! ```no_run
//! # async fn example(client: kubewright::kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use kubewright::manager::serve::{AccessReview, Checks, Metrics, Server};
//! use tokio_util::sync::CancellationToken;
//!
//! let ready = Checks::new();
//! ready.add("cache", || async { Ok(()) });
//! let probes = Server::builder(":8081").healthz(Checks::new()).readyz(ready).listen().await?;
//! let metrics = Server::builder(":8443")
//!     .metrics(Metrics::new())
//!     .tls("/certs/tls.crt", "/certs/tls.key")
//!     .protect(AccessReview::new(client))
//!     .listen()
//!     .await?;
//!
//! let stop = CancellationToken::new();
//! tokio::join!(probes.run(stop.clone()), metrics.run(stop));
//! # Ok(()) }
//! ```
//!
//! A [manager](super::ManagerBuilder::serve) does this by itself; [`Endpoint`] says where and to whom.
//!
//! - [`Checks`]: named checks. `?verbose` lists them, `?exclude=NAME` leaves one out, `/readyz/NAME` asks one. What is
//!   printed is what controller-runtime prints, letter by letter.
//! - [`Metrics`]: what is measured in this process, in the text format of Prometheus or `OpenMetrics`, as the scraper
//!   asks.
//! - [`AccessReview`]: lets those scrape who may, as the API server knows them.
//!
//! The address `0` turns a server off: it listens nowhere and runs until it is stopped.
//!
//! # Pitfalls
//! - Probes come from the kubelet, without credentials: [`protect`](Builder::protect) is about `/metrics` alone.
//! - The reason of a failed check is told only under its own name (`/readyz/cache`), and to everybody who asks: no
//!   secrets in it.
//! - A liveness check that depends on the API server restarts every replica when that server is away.

mod access;
mod bind;
mod checks;
mod endpoint;
mod metrics;
mod negotiate;
mod server;
mod site;
#[cfg(test)]
mod tests;
mod tls;

pub use self::{
    access::AccessReview,
    checks::Checks,
    endpoint::Endpoint,
    metrics::Metrics,
    server::{Builder, ServeError, Server},
    tls::CertificateError,
};
