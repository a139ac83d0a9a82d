//! Where a manager serves, and to whom.

use std::path::PathBuf;

use kube::Client;

use super::{AccessReview, Builder, Server};

/// Where a manager serves, and to whom. A plain address is one: `.serve(":8080")`.
///
/// ```no_run
/// # async fn example() -> kubewright::Result<()> {
/// use kubewright::{manager::serve::Endpoint, prelude::*};
///
/// Manager::builder("sample-controller")
///     .serve(":8081")                                                                      // probes
///     .metrics(Endpoint::at(":8443").tls("/certs/tls.crt", "/certs/tls.key").protected())  // scrapes
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
    /// On this address: `127.0.0.1:8080`, `:8080` for all interfaces, or `0` for nowhere.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), certificate: None, protected: false }
    }

    /// Speaks TLS with the certificate (chain) and key in these files, which are read again when they change.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Lets only those scrape `/metrics` who may, as the API server knows them ([`AccessReview`]). Use it with TLS: tokens
    /// are sent. Probes have no token and are let in.
    pub fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    /// The address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A server here, before it is said what it serves.
    pub(in crate::manager) fn server(&self, client: &Client) -> Builder {
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
        Self::at(address)
    }
}
