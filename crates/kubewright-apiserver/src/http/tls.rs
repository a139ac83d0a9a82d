//! TLS: the certificate authority of the server, and the listener.

use std::{net::IpAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::ApiService;
use crate::authn::x509;

/// TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate cannot be generated.
    #[error("a certificate could not be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library refuses the certificates.
    #[error("the certificates cannot be used for TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// Client certificates cannot be checked with this authority.
    #[error("the client certificate authority cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A file of certificates or keys is no PEM.
    #[error("certificates and keys must be PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
}

/// The certificate authority of a server.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, for kubeconfigs.
    pub(crate) certificate: String,
    der: CertificateDer<'static>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// A certificate and its key, as PEM.
pub(crate) struct Identity {
    /// The certificate.
    pub(crate) certificate: String,
    /// The key.
    pub(crate) key: secrecy::SecretString,
    der: CertificateDer<'static>,
    key_der: PrivateKeyDer<'static>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads a certificate and its key.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<Self, TlsError> {
        Ok(Self {
            der: CertificateDer::from_pem_slice(certificate.as_bytes())?,
            key_der: PrivateKeyDer::from_pem_slice(key.as_bytes())?,
            certificate: certificate.to_owned(),
            key: key.to_owned().into(),
        })
    }
}

impl Authority {
    /// Generates an authority.
    pub(crate) fn generate() -> Result<Self, TlsError> {
        let params = Self::params();
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Ok(Self { issuer: Issuer::new(params, key), certificate: pem, der })
    }

    fn params() -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kubewright-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params
    }

    /// Reads the authority of an earlier run.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<Self, TlsError> {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        let issuer = Issuer::new(Self::params(), KeyPair::from_pem(key)?);
        Ok(Self { issuer, certificate: certificate.to_owned(), der })
    }

    /// Returns the key as PEM. It must be kept secret.
    pub(crate) fn key(&self) -> secrecy::SecretString {
        self.issuer.key().serialize_pem().into()
    }

    fn sign(&self, params: &CertificateParams) -> Result<Identity, TlsError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem().into(),
            der: certificate.der().clone(),
            key_der: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    /// Issues a certificate for the server at these addresses and under the names of its Service.
    pub(crate) fn server(&self, addresses: &[IpAddr]) -> Result<Identity, TlsError> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// Issues a certificate for a user and its groups.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Identity, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let [group, ..] = groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// Returns the TLS configuration of a server that accepts client certificates of this authority and of `others` (PEM).
    pub(crate) fn server_config(
        &self,
        identity: Identity,
        others: Option<&str>,
    ) -> Result<ServerConfig, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone())?;
        if let Some(pem) = others {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.add(certificate?)?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![identity.der], identity.key_der)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Time for connections to finish once the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// Serves TLS until `stop` is cancelled, then waits [`GRACE`] for requests to finish.
///
/// Boxed, so that programs do not compile the whole of it once more: the body of an `async fn` is compiled where it is
/// polled.
pub(crate) fn serve(
    listener: TcpListener,
    config: ServerConfig,
    service: ApiService,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    Box::pin(accept(listener, config, service, stop))
}

async fn accept(listener: TcpListener, config: ServerConfig, service: ApiService, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let tracker = tokio_util::task::TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _)) = accepted else {
            // Out of file descriptors: wait for connections to be closed.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (acceptor, service, stop) = (acceptor.clone(), service.clone(), stop.clone());
        tracker.spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let peer = stream
                .get_ref()
                .1
                .peer_certificates()
                .and_then(|chain| chain.first())
                .and_then(|certificate| x509::user(certificate));
            let service = match peer {
                Some(user) => service.for_peer(user),
                None => service,
            };
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http2().max_concurrent_streams(1000);
            let connection =
                builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            tokio::pin!(connection);
            let ended = tokio::select! {
                biased;
                () = stop.cancelled() => false,
                _ = connection.as_mut() => true,
            };
            if !ended {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        });
    }
    drop(listener);
    tracker.close();
    let _ = tokio::time::timeout(GRACE, tracker.wait()).await;
}
