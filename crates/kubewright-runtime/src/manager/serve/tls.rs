//! Certificates that are reloaded when their files change.

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

/// Error of loading a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("the file {} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file does not contain what is expected.
    #[error("the file {} is no PEM file with a {what}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is expected.
        what: &'static str,
    },
    /// The certificate and the key do not match, or their type is not supported.
    #[error("the certificate {} cannot be used with the key beside it: {source}", .path.display())]
    Unusable {
        /// The file of the certificate.
        path: PathBuf,
        /// The error of the TLS library.
        source: rustls::Error,
    },
}

/// Certificate and key, loaded from files.
#[derive(Debug)]
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Arc<CertifiedKey>, FilesDigest)>,
}

/// Digest of both files as last read, to detect changes.
type FilesDigest = [u8; 32];

impl Certificate {
    pub(super) fn load(chain: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (digest_of_files, texts) = read(&chain, &key)?;
        let current = Mutex::new((parse(&provider, &chain, &key, &texts)?, digest_of_files));
        Ok(Self { chain, key, provider, current })
    }

    /// Reloads the files if they have changed. Files that cannot be used are reported once and the last good
    /// certificate is kept: the two files are replaced one after the other.
    pub(super) fn refresh(&self) {
        let (digest_of_files, texts) = match read(&self.chain, &self.key) {
            Ok(found) => found,
            Err(error) => return tracing::warn!(%error, "keeping the last certificate"),
        };
        if self.current.lock().1 == digest_of_files {
            return;
        }
        match parse(&self.provider, &self.chain, &self.key, &texts) {
            Ok(parsed) => {
                *self.current.lock() = (parsed, digest_of_files);
                tracing::info!(certificate = %self.chain.display(), "the certificate was reloaded");
            }
            Err(error) => {
                self.current.lock().1 = digest_of_files;
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

fn read(certificate: &Path, key: &Path) -> Result<(FilesDigest, [Vec<u8>; 2]), CertificateError> {
    let file = |path: &Path| {
        std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let texts = [file(certificate)?, file(key)?];
    let mut digest_of_files = [0; 32];
    let both = texts.each_ref().map(|text| digest(&SHA256, text));
    let both = [both[0].as_ref(), both[1].as_ref()].concat();
    digest_of_files.copy_from_slice(digest(&SHA256, &both).as_ref());
    Ok((digest_of_files, texts))
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
