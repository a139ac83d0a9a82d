//! HTTP server for probes and scrapes: `/healthz`, `/readyz` and `/metrics`.
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
//! A [manager](super::ManagerBuilder::serve) runs one by itself, configured by an [`Endpoint`].
//!
//! - [`Checks`]: named checks. `?verbose` lists them, `?exclude=NAME` excludes one, `/readyz/NAME` runs one.
//!   Responses equal controller-runtime's.
//! - [`Metrics`]: the metrics of this process, in the text format of Prometheus or `OpenMetrics`, as the
//!   scraper accepts.
//! - [`AccessReview`]: authorizes scrapes by the API server.
//!
//! The address `0` disables a server: it does not listen and runs until it is stopped.
//!
//! # Pitfalls
//! - Probes come from the kubelet, without credentials: [`protect`](ServerBuilder::protect) covers `/metrics`
//!   only.
//! - The reason of a failed check is in the response for that check (`/readyz/cache`), readable by any
//!   client: no secrets.
//! - A liveness check that depends on the API server restarts all replicas when that server is unavailable.

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
    server::{ServeError, Server, ServerBuilder},
    tls::CertificateError,
};
