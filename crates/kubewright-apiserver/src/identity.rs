//! Who the cluster is: the keys and certificates that outlive a run.
//!
//! In memory they are made anew with every start. In a data directory they are kept in `identity.json`, readable by its
//! owner only, so that kubeconfigs and `ServiceAccount` tokens of an earlier run are still good.

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

/// Why the identity of a cluster cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not what it should be. Its content is never named: it holds keys.
    #[error("{path} is no identity of a cluster (line {line}); restore it, or remove it to have new keys")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The first line that makes no sense.
        line: usize,
    },
    /// The file is of another release.
    #[error("{path} has format {found}, this release reads format {FORMAT}; use the release that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that it says it has.
        found: u16,
    },
    /// Certificates could not be made or read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no key for tokens.
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

/// What is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    format: u16,
    service_account_key: String,
    authority: Option<Pair>,
    admin: Option<Pair>,
    server: Option<Pair>,
    /// The addresses that the server's certificate is good for.
    #[serde(default)]
    addresses: Vec<IpAddr>,
}

/// The identity of a cluster, kept in a file or not at all.
pub(crate) struct ClusterIdentity {
    file: Option<PathBuf>,
    kept: Kept,
}

/// What a server needs to speak TLS.
pub(crate) struct Certificates {
    pub(crate) authority: Authority,
    pub(crate) admin: Identity,
    pub(crate) server: Identity,
}

impl ClusterIdentity {
    /// A new identity that nobody keeps.
    pub(crate) fn fresh() -> Result<Self, IdentityError> {
        let key = service_account::Issuer::generate_pkcs8()?;
        Ok(Self {
            file: None,
            kept: Kept {
                format: FORMAT,
                service_account_key: STANDARD.encode(key),
                authority: None,
                admin: None,
                server: None,
                addresses: Vec::new(),
            },
        })
    }

    /// The identity in a directory; made and kept there when it has none.
    pub(crate) fn kept_in(directory: &Path) -> Result<Self, IdentityError> {
        let path = directory.join("identity.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = Self { file: Some(path), ..Self::fresh()? };
                identity.keep()?;
                return Ok(identity);
            }
            Err(source) => return Err(IdentityError::Io { path, operation: "read", source }),
        };
        let kept: Kept = serde_json::from_slice(&text)
            .map_err(|error| IdentityError::Malformed { path: path.clone(), line: error.line() })?;
        if kept.format != FORMAT {
            return Err(IdentityError::Format { path, found: kept.format });
        }
        Ok(Self { file: Some(path), kept })
    }

    fn keep(&self) -> Result<(), IdentityError> {
        let Some(path) = &self.file else { return Ok(()) };
        let io = |source| IdentityError::Io { path: path.clone(), operation: "write", source };
        let text = serde_json::to_vec_pretty(&self.kept).map_err(|e| io(e.into()))?;
        crate::storage::replace(path, &text).map_err(io)
    }

    /// The issuer of `ServiceAccount` tokens.
    pub(crate) fn issuer(&self) -> Result<service_account::Issuer, IdentityError> {
        let key = STANDARD.decode(&self.kept.service_account_key).map_err(|_| service_account::KeyError)?;
        Ok(service_account::Issuer::from_pkcs8("https://kubernetes.default.svc", &key)?)
    }

    /// Certificates for a server at these addresses. Those that were kept stay as long as they fit.
    pub(crate) fn certificates(&mut self, addresses: &[IpAddr]) -> Result<Certificates, IdentityError> {
        let kept = &mut self.kept;
        let fits = addresses.iter().all(|a| kept.addresses.contains(a));
        if let (Some(authority), Some(admin), Some(server), true) =
            (&kept.authority, &kept.admin, &kept.server, fits)
        {
            return Ok(Certificates {
                authority: Authority::from_pem(&authority.certificate, &authority.key)?,
                admin: Identity::from_pem(&admin.certificate, &admin.key)?,
                server: Identity::from_pem(&server.certificate, &server.key)?,
            });
        }
        let authority = match &kept.authority {
            Some(pair) => Authority::from_pem(&pair.certificate, &pair.key)?,
            None => Authority::generate()?,
        };
        let admin = match &kept.admin {
            Some(pair) => Identity::from_pem(&pair.certificate, &pair.key)?,
            None => authority.client("kubernetes-admin", &[MASTERS])?,
        };
        let server = authority.server(addresses)?;
        kept.authority = Some(Pair {
            certificate: authority.certificate.clone(),
            key: authority.key().expose_secret().to_owned(),
        });
        kept.admin = Some(Pair::of(&admin));
        kept.server = Some(Pair::of(&server));
        kept.addresses = addresses.to_vec();
        self.keep()?;
        Ok(Certificates { authority, admin, server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

    #[test]
    fn keys_and_certificates_are_the_same_in_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = ClusterIdentity::kept_in(directory.path()).unwrap();
        let made = first.certificates(&HERE).unwrap();
        let token = first.issuer().unwrap().sign(&serde_json::json!({"sub": "x"})).unwrap();

        let mut second = ClusterIdentity::kept_in(directory.path()).unwrap();
        let kept = second.certificates(&HERE).unwrap();
        assert_eq!(kept.authority.certificate, made.authority.certificate);
        assert_eq!(kept.admin.certificate, made.admin.certificate);
        assert_eq!(kept.server.certificate, made.server.certificate);
        assert!(second.issuer().unwrap().claims(&token).is_some());
    }

    #[test]
    fn another_address_gets_another_certificate_of_the_same_authority() {
        let directory = tempfile::tempdir().unwrap();
        let made = ClusterIdentity::kept_in(directory.path()).unwrap().certificates(&HERE).unwrap();
        let other = [IpAddr::from([192, 0, 2, 1])];
        let moved = ClusterIdentity::kept_in(directory.path()).unwrap().certificates(&other).unwrap();
        assert_eq!(moved.authority.certificate, made.authority.certificate);
        assert_ne!(moved.server.certificate, made.server.certificate);
    }

    #[test]
    fn a_damaged_file_is_refused_without_naming_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity.json");
        fs::write(&path, "{\"format\":1,\"serviceAccountKey\":\"topsecret\"").unwrap();
        let Err(error) = ClusterIdentity::kept_in(directory.path()) else { panic!("it was taken") };
        assert!(error.to_string().contains("identity.json") && !error.to_string().contains("topsecret"));
        fs::write(&path, "{\"format\":9,\"serviceAccountKey\":\"\"}").unwrap();
        assert!(matches!(
            ClusterIdentity::kept_in(directory.path()),
            Err(IdentityError::Format { found: 9, .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        ClusterIdentity::kept_in(directory.path()).unwrap();
        let mode = fs::metadata(directory.path().join("identity.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}
