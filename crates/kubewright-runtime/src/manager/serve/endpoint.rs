//! Address and protection of a manager's HTTP server.

use std::path::PathBuf;

use kube::Client;

use super::{AccessReview, Server, ServerBuilder};

/// Address and protection of a manager's HTTP server. Converts from a plain address: `.serve(":8080")`.
///
/// ```no_run
/// # async fn example() -> kubewright::Result<()> {
/// use kubewright::{manager::serve::Endpoint, prelude::*};
///
/// Manager::builder("sample-controller")
///     .serve(":8081")                                                                      // probes
///     .metrics(Endpoint::new(":8443").tls("/certs/tls.crt", "/certs/tls.key").protected())  // scrapes
///     .run()
///     .await
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "give it to a manager"]
pub struct Endpoint {
    address: String,
    certificate: Option<(PathBuf, PathBuf)>,
    protected: bool,
}

impl Endpoint {
    /// Creates an endpoint on an address: `127.0.0.1:8080`, `:8080` for all interfaces, or `0` to disable it.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), certificate: None, protected: false }
    }

    /// Serves TLS with the certificate chain and key in these files, which are reloaded when they change.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Authorizes scrapes of `/metrics` by the API server ([`AccessReview`]). Use it with TLS, because
    /// clients send tokens. Probes are not authorized: they have no token.
    pub fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    /// The address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Creates a server builder for this endpoint.
    pub(in crate::manager) fn server(&self, client: &Client) -> ServerBuilder {
        let mut server = Server::builder(&*self.address);
        if let Some((certificate, key)) = &self.certificate {
            server = server.tls(certificate, key);
        }
        if self.protected {
            server = server.protect(AccessReview::new(client.clone()));
        }
        server
    }
}

impl<A: Into<String>> From<A> for Endpoint {
    fn from(address: A) -> Self {
        Self::new(address)
    }
}
