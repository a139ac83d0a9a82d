//! Where the API server is and who we are: kubeconfig files and the Pod's own account.
//!
//! [`ConfigLoader`] finds a [`kube::Config`] in the order that operators are used to from controller-runtime:
//!
//! 1. an explicit file ([`ConfigLoader::kubeconfig`]), which must exist;
//! 2. the files that `KUBECONFIG` lists, merged, the first one to say a thing wins; files that do not exist
//!    are skipped as kubectl skips them (kube alone would fail);
//! 3. the service account of the Pod we run in;
//! 4. `~/.kube/config`.
//!
//! A master URL ([`ConfigLoader::master`]) replaces the server of whatever was found, and is enough by
//! itself. The result is a plain [`kube::Config`]: change its fields if you need to, and pass it to
//! [`Transport::builder`](crate::Transport::builder) or
//! [`Clients::from_config`](crate::Clients::from_config).
//!
//! # Pitfalls
//! - Errors about a kubeconfig name file, line and column, never the text: kube's own message quotes the
//!   lines around the fault, and those may hold a token.
//! - [`ConfigLoader::insecure`] turns off every check of the server's certificate. Whoever sits in between
//!   can then read and change everything, tokens included.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use kube::{
    Config,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// Why no configuration was found, or the one found cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "no cluster is configured: KUBECONFIG is not set, this is not a Pod ({in_cluster}), and {} does not exist",
        .home.as_deref().unwrap_or(Path::new("~/.kube/config")).display()
    )]
    NotFound {
        /// Why the Pod's account cannot be used.
        in_cluster: InClusterError,
        /// The file in the home directory that was looked for.
        home: Option<PathBuf>,
    },
    /// None of the files that `KUBECONFIG` lists exists.
    #[error("none of the files in KUBECONFIG exists: {0}")]
    AllMissing(String),
    /// A kubeconfig cannot be read.
    #[error("the kubeconfig {} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A kubeconfig is not valid YAML or not a kubeconfig.
    #[error("the kubeconfig {} is malformed{place}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file, if that is known.
        place: String,
    },
    /// The files are fine and what they say does not fit together.
    #[error("the kubeconfig cannot be used: {0}")]
    Unusable(#[source] KubeconfigError),
    /// The master URL is none.
    #[error("the master URL {url:?} is not a URL such as https://10.0.0.1:6443")]
    Master {
        /// What was given.
        url: String,
    },
    /// The service account of the Pod was asked for and is not there.
    #[error("this process has no service account of a Pod: {0}")]
    InCluster(#[source] InClusterError),
}

/// Finds the configuration; see [the module](self) for the order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::client::ConfigLoader;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("config");
/// # std::fs::write(&path, r#"
/// # apiVersion: v1
/// # kind: Config
/// # clusters: [{ name: c, cluster: { server: "https://10.0.0.1:6443" } }]
/// # users: [{ name: u, user: { token: t } }]
/// # contexts: [{ name: staging, context: { cluster: c, user: u, namespace: shop } }]
/// # "#)?;
/// let config = ConfigLoader::new().kubeconfig(&path).context("staging").load().await?;
/// assert_eq!(config.cluster_url, "https://10.0.0.1:6443/");
/// assert_eq!(config.default_namespace, "shop");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "call load() to get the configuration"]
pub struct ConfigLoader {
    explicit: Option<PathBuf>,
    context: Option<String>,
    cluster: Option<String>,
    user: Option<String>,
    namespace: Option<String>,
    master: Option<String>,
    insecure: bool,
    environment: Environment,
}

impl ConfigLoader {
    /// A loader that looks in the usual places.
    pub fn new() -> Self {
        Self {
            explicit: None,
            context: None,
            cluster: None,
            user: None,
            namespace: None,
            master: None,
            insecure: false,
            environment: Environment::process(),
        }
    }

    /// Reads this file and no other, as `--kubeconfig` does.
    pub fn kubeconfig(mut self, path: impl Into<PathBuf>) -> Self {
        self.explicit = Some(path.into());
        self
    }

    /// Uses this context instead of the current one.
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context = Some(name.into());
        self
    }

    /// Uses this cluster instead of the one of the context.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Uses this user instead of the one of the context.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// Makes this the default namespace.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// Talks to this address instead of the configured one, as `--master` does.
    pub fn master(mut self, url: impl Into<String>) -> Self {
        self.master = Some(url.into());
        self
    }

    /// Does not check the server's certificate.
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Looks in all places and returns what was found first.
    pub async fn load(self) -> Result<Config, ConfigError> {
        let master = match &self.master {
            Some(url) => Some(parse_master(url)?),
            None => None,
        };
        let mut config = match self.find().await {
            Ok(config) => config,
            // A master URL needs nothing else: an insecure port, or `kubectl proxy`.
            Err(ConfigError::NotFound { .. }) if master.is_some() => Config::new(http::Uri::default()),
            Err(error) => return Err(error),
        };
        if let Some(master) = master {
            config.cluster_url = master;
        }
        if let Some(namespace) = self.namespace {
            config.default_namespace = namespace;
        }
        // A namespace file written by hand ends with a line break, and no namespace does.
        config.default_namespace = config.default_namespace.trim().to_owned();
        config.accept_invalid_certs |= self.insecure;
        // Whoever builds kube's client from this directly should not get its retries either; see `transport`.
        config.default_retry = false;
        Ok(config)
    }

    async fn find(&self) -> Result<Config, ConfigError> {
        if let Some(path) = &self.explicit {
            return self.choose(read(path)?).await;
        }
        let listed = self.environment.kubeconfig_files();
        if !listed.is_empty() {
            return self.choose(merge(&listed)?).await;
        }
        // A context, cluster or user can only be meant for a kubeconfig.
        let names_kubeconfig = self.context.is_some() || self.cluster.is_some() || self.user.is_some();
        let home = self.environment.home_kubeconfig();
        let in_cluster = match (self.environment.in_cluster)() {
            Ok(config) if !names_kubeconfig => return Ok(config),
            Ok(config) => Ok(config),
            Err(error) => Err(error),
        };
        match (home, in_cluster) {
            (Some(path), _) if path.exists() => self.choose(read(&path)?).await,
            (_, Ok(_)) => Err(ConfigError::Unusable(KubeconfigError::FindPath)),
            (home, Err(in_cluster)) => Err(ConfigError::NotFound { in_cluster, home }),
        }
    }

    async fn choose(&self, kubeconfig: Kubeconfig) -> Result<Config, ConfigError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(ConfigError::Unusable)
    }

    /// The service account of the Pod we run in, and nothing else.
    pub fn in_cluster() -> Result<Config, ConfigError> {
        let mut config = Config::incluster().map_err(ConfigError::InCluster)?;
        config.default_namespace = config.default_namespace.trim().to_owned();
        config.default_retry = false;
        Ok(config)
    }
}

impl Default for ConfigLoader {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ConfigLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigLoader")
            .field("explicit", &self.explicit)
            .field("context", &self.context)
            .field("master", &self.master)
            .finish_non_exhaustive()
    }
}

/// What the loader takes from the process around it; a test gives another.
#[derive(Clone)]
struct Environment {
    variable: Arc<ReadVariable>,
    in_cluster: Arc<ReadAccount>,
}

type ReadVariable = dyn Fn(&str) -> Option<OsString> + Send + Sync;
type ReadAccount = dyn Fn() -> Result<Config, InClusterError> + Send + Sync;

impl Environment {
    fn process() -> Self {
        Self { variable: Arc::new(|name| std::env::var_os(name)), in_cluster: Arc::new(Config::incluster) }
    }

    fn kubeconfig_files(&self) -> Vec<PathBuf> {
        let listed = (self.variable)("KUBECONFIG").unwrap_or_default();
        let mut files: Vec<PathBuf> = Vec::new();
        for path in std::env::split_paths(&listed) {
            if !path.as_os_str().is_empty() && !files.contains(&path) {
                files.push(path);
            }
        }
        files
    }

    fn home_kubeconfig(&self) -> Option<PathBuf> {
        let home = (self.variable)("HOME").or_else(|| (self.variable)("USERPROFILE"))?;
        (!home.is_empty()).then(|| Path::new(&home).join(".kube").join("config"))
    }
}

fn parse_master(url: &str) -> Result<http::Uri, ConfigError> {
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    full.parse::<http::Uri>()
        .ok()
        .filter(|uri| uri.host().is_some_and(|host| !host.is_empty()))
        .ok_or_else(|| ConfigError::Master { url: url.to_owned() })
}

/// Merges the files that exist; the first to say a thing wins.
fn merge(files: &[PathBuf]) -> Result<Kubeconfig, ConfigError> {
    let mut merged: Option<Kubeconfig> = None;
    for path in files {
        let next = match read(path) {
            Ok(next) => next,
            Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                tracing::debug!(path = %path.display(), "a file in KUBECONFIG does not exist");
                continue;
            }
            Err(error) => return Err(error),
        };
        merged = Some(match merged {
            Some(earlier) => earlier.merge(next).map_err(ConfigError::Unusable)?,
            None => next,
        });
    }
    merged.ok_or_else(|| {
        let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        ConfigError::AllMissing(names.join(", "))
    })
}

fn read(path: &Path) -> Result<Kubeconfig, ConfigError> {
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(source, path) => ConfigError::Read { path, source },
        KubeconfigError::Parse(fault) => ConfigError::Malformed {
            path: path.to_owned(),
            place: match fault.location() {
                Some(place) => format!(" at line {}, column {}", place.line(), place.column()),
                None => String::new(),
            },
        },
        other => ConfigError::Unusable(other),
    })
}
