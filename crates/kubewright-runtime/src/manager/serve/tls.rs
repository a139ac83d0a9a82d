//! Certificates that are read again when their files change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("the file {} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("the file {} is no PEM file with a {what}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The certificate and the key do not belong together, or are of a kind that TLS does not know.
    #[error("the certificate {} cannot be used with the key beside it: {source}", .path.display())]
    Unusable {
        /// The file of the certificate.
        path: PathBuf,
        /// What the TLS library said.
        source: rustls::Error,
    },
}

/// A certificate and its key, in files.
#[derive(Debug)]
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Arc<CertifiedKey>, Seen)>,
}

/// What both files held when they were read last, to notice a change: not the key itself.
type Seen = [u8; 32];

impl Certificate {
    pub(super) fn load(chain: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (seen, texts) = read(&chain, &key)?;
        let current = Mutex::new((parse(&provider, &chain, &key, &texts)?, seen));
        Ok(Self { chain, key, provider, current })
    }

    /// Reads the files again. What cannot be used is reported once and leaves the last good certificate in place: files
    /// are replaced one after the other.
    pub(super) fn refresh(&self) {
        let (seen, texts) = match read(&self.chain, &self.key) {
            Ok(found) => found,
            Err(error) => return tracing::warn!(%error, "keeping the last certificate"),
        };
        if self.current.lock().1 == seen {
            return;
        }
        match parse(&self.provider, &self.chain, &self.key, &texts) {
            Ok(parsed) => {
                *self.current.lock() = (parsed, seen);
                tracing::info!(certificate = %self.chain.display(), "the certificate was read again");
            }
            Err(error) => {
                self.current.lock().1 = seen;
                tracing::warn!(%error, "keeping the last certificate");
            }
        }
    }

    pub(super) fn server_config(self: &Arc<Self>) -> Result<ServerConfig, CertificateError> {
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| CertificateError::Unusable { path: self.chain.clone(), source })?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.lock().0))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<(Seen, [Vec<u8>; 2]), CertificateError> {
    let file = |path: &Path| {
        std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let texts = [file(certificate)?, file(key)?];
    let mut seen = [0; 32];
    let both = texts.each_ref().map(|text| digest(&SHA256, text));
    let both = [both[0].as_ref(), both[1].as_ref()].concat();
    seen.copy_from_slice(digest(&SHA256, &both).as_ref());
    Ok((seen, texts))
}

fn parse(
    provider: &CryptoProvider,
    certificate: &Path,
    key: &Path,
    [certificate_text, key_text]: &[Vec<u8>; 2],
) -> Result<Arc<CertifiedKey>, CertificateError> {
    let malformed = |path: &Path, what| CertificateError::Malformed { path: path.to_owned(), what };
    let chain = CertificateDer::pem_slice_iter(certificate_text)
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| malformed(certificate, "certificate"))?;
    let private = PrivateKeyDer::from_pem_slice(key_text).map_err(|_| malformed(key, "private key"))?;
    CertifiedKey::from_der(chain, private, provider)
        .map(Arc::new)
        .map_err(|source| CertificateError::Unusable { path: certificate.to_owned(), source })
}
