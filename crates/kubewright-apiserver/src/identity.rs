//! Keys and certificates of the cluster.
//!
//! In memory they are generated with every start. In a data directory they are stored in `identity.json`, readable by its
//! owner only, so that kubeconfigs and `ServiceAccount` tokens of an earlier run stay valid.

use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::{
    authn::{MASTERS, service_account},
    http::tls::{Authority, Identity, TlsError},
};

/// The identity of a cluster cannot be read or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is malformed. Its content is never named: it holds keys.
    #[error("{path} is no identity of a cluster (line {line}); restore it, or remove it to have new keys")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line that cannot be parsed.
        line: usize,
    },
    /// The file has the format of another release.
    #[error("{path} has format {found}, this release reads format {FORMAT}; use the release that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u16,
    },
    /// Certificates cannot be generated or read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key of tokens cannot be generated or read.
    #[error(transparent)]
    Key(#[from] service_account::KeyError),
}

const FORMAT: u16 = 1;

#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    fn of(identity: &Identity) -> Self {
        Self { certificate: identity.certificate.clone(), key: identity.key.expose_secret().to_owned() }
    }
}

/// The content of `identity.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    format: u16,
    service_account_key: String,
    authority: Option<Pair>,
    admin: Option<Pair>,
    server: Option<Pair>,
    /// The addresses of the server's certificate.
    #[serde(default)]
    addresses: Vec<IpAddr>,
}

/// The identity of a cluster, in memory or in a file.
pub(crate) struct ClusterIdentity {
    file: Option<PathBuf>,
    stored: Stored,
}

/// The certificates of a TLS server.
pub(crate) struct Certificates {
    pub(crate) authority: Authority,
    pub(crate) admin: Identity,
    pub(crate) server: Identity,
}

impl ClusterIdentity {
    /// Generates an identity in memory.
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        let key = service_account::Issuer::generate_pkcs8()?;
        Ok(Self {
            file: None,
            stored: Stored {
                format: FORMAT,
                service_account_key: STANDARD.encode(key),
                authority: None,
                admin: None,
                server: None,
                addresses: Vec::new(),
            },
        })
    }

    /// Reads the identity in a directory; generates and stores one if there is none.
    pub(crate) fn open(directory: &Path) -> Result<Self, IdentityError> {
        let path = directory.join("identity.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = Self { file: Some(path), ..Self::generate()? };
                identity.store()?;
                return Ok(identity);
            }
            Err(source) => return Err(IdentityError::Io { path, operation: "read", source }),
        };
        let stored: Stored = serde_json::from_slice(&text)
            .map_err(|error| IdentityError::Malformed { path: path.clone(), line: error.line() })?;
        if stored.format != FORMAT {
            return Err(IdentityError::Format { path, found: stored.format });
        }
        Ok(Self { file: Some(path), stored })
    }

    fn store(&self) -> Result<(), IdentityError> {
        let Some(path) = &self.file else { return Ok(()) };
        let io = |source| IdentityError::Io { path: path.clone(), operation: "write", source };
        let text = serde_json::to_vec_pretty(&self.stored).map_err(|e| io(e.into()))?;
        crate::storage::replace(path, &text).map_err(io)
    }

    /// Returns the issuer of `ServiceAccount` tokens.
    pub(crate) fn issuer(&self) -> Result<service_account::Issuer, IdentityError> {
        let key = STANDARD.decode(&self.stored.service_account_key).map_err(|_| service_account::KeyError)?;
        Ok(service_account::Issuer::from_pkcs8("https://kubernetes.default.svc", &key)?)
    }

    /// Returns certificates for a server at these addresses; stored ones if they fit.
    pub(crate) fn certificates(&mut self, addresses: &[IpAddr]) -> Result<Certificates, IdentityError> {
        let stored = &mut self.stored;
        let fits = addresses.iter().all(|a| stored.addresses.contains(a));
        if let (Some(authority), Some(admin), Some(server), true) =
            (&stored.authority, &stored.admin, &stored.server, fits)
        {
            return Ok(Certificates {
                authority: Authority::from_pem(&authority.certificate, &authority.key)?,
                admin: Identity::from_pem(&admin.certificate, &admin.key)?,
                server: Identity::from_pem(&server.certificate, &server.key)?,
            });
        }
        let authority = match &stored.authority {
            Some(pair) => Authority::from_pem(&pair.certificate, &pair.key)?,
            None => Authority::generate()?,
        };
        let admin = match &stored.admin {
            Some(pair) => Identity::from_pem(&pair.certificate, &pair.key)?,
            None => authority.client("kubernetes-admin", &[MASTERS])?,
        };
        let server = authority.server(addresses)?;
        stored.authority = Some(Pair {
            certificate: authority.certificate.clone(),
            key: authority.key().expose_secret().to_owned(),
        });
        stored.admin = Some(Pair::of(&admin));
        stored.server = Some(Pair::of(&server));
        stored.addresses = addresses.to_vec();
        self.store()?;
        Ok(Certificates { authority, admin, server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCALHOST: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

    #[test]
    fn keys_and_certificates_are_the_same_in_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = ClusterIdentity::open(directory.path()).unwrap();
        let made = first.certificates(&LOCALHOST).unwrap();
        let token = first.issuer().unwrap().sign(&serde_json::json!({"sub": "x"})).unwrap();

        let mut second = ClusterIdentity::open(directory.path()).unwrap();
        let stored = second.certificates(&LOCALHOST).unwrap();
        assert_eq!(stored.authority.certificate, made.authority.certificate);
        assert_eq!(stored.admin.certificate, made.admin.certificate);
        assert_eq!(stored.server.certificate, made.server.certificate);
        assert!(second.issuer().unwrap().claims(&token).is_some());
    }

    #[test]
    fn another_address_gets_another_certificate_of_the_same_authority() {
        let directory = tempfile::tempdir().unwrap();
        let made = ClusterIdentity::open(directory.path()).unwrap().certificates(&LOCALHOST).unwrap();
        let other = [IpAddr::from([192, 0, 2, 1])];
        let moved = ClusterIdentity::open(directory.path()).unwrap().certificates(&other).unwrap();
        assert_eq!(moved.authority.certificate, made.authority.certificate);
        assert_ne!(moved.server.certificate, made.server.certificate);
    }

    #[test]
    fn a_damaged_file_is_refused_without_naming_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity.json");
        fs::write(&path, "{\"format\":1,\"serviceAccountKey\":\"topsecret\"").unwrap();
        let Err(error) = ClusterIdentity::open(directory.path()) else { panic!("it was taken") };
        assert!(error.to_string().contains("identity.json") && !error.to_string().contains("topsecret"));
        fs::write(&path, "{\"format\":9,\"serviceAccountKey\":\"\"}").unwrap();
        assert!(matches!(
            ClusterIdentity::open(directory.path()),
            Err(IdentityError::Format { found: 9, .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        ClusterIdentity::open(directory.path()).unwrap();
        let mode = fs::metadata(directory.path().join("identity.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}
