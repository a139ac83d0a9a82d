//! Configuration and start of a server.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use kubewright_core::{Clock, Random};

use crate::{
    admission::{Chain, UnknownPlugin},
    authn::{Authenticator, RequestAuthenticator, TokenFile},
    authz::{Authorize, Authorizer, Mode},
    boot,
    components::Components,
    http::tls::TlsError,
    identity::{Certificates, ClusterIdentity, IdentityError},
    registry::{ObjectReader, Registry},
    server::{ApiServer, RunningServer},
    storage::{DataDirError, Retention, Storage, WriteError},
};

/// A server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An admission plugin does not exist.
    #[error(transparent)]
    Admission(#[from] UnknownPlugin),
    /// The keys and certificates of the cluster cannot be read or generated.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The data directory cannot be written.
    #[error(transparent)]
    NotStored(#[from] WriteError),
}

/// Configures and starts an [`ApiServer`].
pub struct ApiServerBuilder {
    bind: SocketAddr,
    modes: Vec<Mode>,
    tokens: TokenFile,
    anonymous: bool,
    client_ca: Option<String>,
    clock: Clock,
    random: Random,
    admission: Chain,
    enabled: Vec<String>,
    disabled: Vec<String>,
    authenticators: Vec<Arc<dyn RequestAuthenticator>>,
    authorizers: Vec<Arc<dyn Authorize>>,
    retention: Retention,
    data_dir: Option<PathBuf>,
}

impl std::fmt::Debug for ApiServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServerBuilder")
            .field("bind", &self.bind)
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            modes: vec![Mode::Rbac],
            tokens: TokenFile::default(),
            anonymous: true,
            client_ca: None,
            clock: Clock::system(),
            random: Random::from_entropy(),
            admission: Chain::standard(),
            enabled: Vec::new(),
            disabled: Vec::new(),
            authenticators: Vec::new(),
            authorizers: Vec::new(),
            retention: Retention::default(),
            data_dir: None,
        }
    }
}

impl ApiServerBuilder {
    /// Sets the address to listen on; port 0 is any free one.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// Sets the authorization modes, in order.
    #[must_use]
    pub fn authorization(mut self, modes: impl Into<Vec<Mode>>) -> Self {
        self.modes = modes.into();
        self
    }

    /// Sets the users with static tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: TokenFile) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets whether requests without credentials are served as `system:anonymous` (the default) or are a 401, as
    /// `--anonymous-auth` does.
    #[must_use]
    pub fn anonymous_auth(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// Adds a certificate authority (PEM) whose client certificates are accepted besides those of the server's own.
    #[must_use]
    pub fn client_ca(mut self, pem: impl Into<String>) -> Self {
        self.client_ca = Some(pem.into());
        self
    }

    /// Sets the clock of all timestamps.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.random = Random::seeded(seed);
        self
    }

    /// Sets the admission plugins.
    #[must_use]
    pub fn admission(mut self, chain: Chain) -> Self {
        self.admission = chain;
        self
    }

    /// Enables admission plugins that are off by default.
    #[must_use]
    pub fn enable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.enabled.extend(names.into_iter().map(Into::into));
        self
    }

    /// Disables admission plugins.
    #[must_use]
    pub fn disable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.disabled.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds a custom authenticator.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl RequestAuthenticator) -> Self {
        self.authenticators.push(Arc::new(authenticator));
        self
    }

    /// Adds a custom authorizer, which comes before the modes.
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorize) -> Self {
        self.authorizers.push(Arc::new(authorizer));
        self
    }

    /// Sets how much history is kept for watches.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Stores the cluster in a directory: acknowledged writes, keys and certificates outlive the process, even if it is
    /// killed. Without it everything is in memory.
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Opens storage and identity of the cluster. The storage comes first: it locks the directory.
    fn open(&self) -> Result<(Storage, ClusterIdentity), StartError> {
        Ok(match &self.data_dir {
            None => (Storage::with_retention(self.retention), ClusterIdentity::generate()?),
            Some(path) => (Storage::open(path, self.retention)?, ClusterIdentity::open(path)?),
        })
    }

    /// Starts a server without sockets. Blocks while a data directory is read.
    pub fn in_process(self) -> Result<ApiServer, StartError> {
        let (storage, identity) = self.open()?;
        self.assemble(storage, &identity)
    }

    fn assemble(self, storage: Storage, identity: &ClusterIdentity) -> Result<ApiServer, StartError> {
        let mut admission = self.admission;
        for name in &self.enabled {
            admission = admission.enable(name)?;
        }
        for name in &self.disabled {
            admission = admission.without(name)?;
        }
        let random = continued(&self.random, storage.revision());
        let registry = Arc::new(Registry::new(Arc::new(storage), self.clock, random));
        let objects = || Arc::clone(&registry) as Arc<dyn ObjectReader>;
        let authenticator = Authenticator::new(objects(), Arc::new(identity.issuer()?))
            .with_custom(self.authenticators)
            .with_tokens(self.tokens)
            .with_anonymous(self.anonymous);
        let authorizer = Authorizer::new(objects(), self.authorizers, self.modes);
        boot::store_initial_objects(&registry);
        registry.storage().flush_blocking()?;
        Ok(ApiServer::new(Components {
            authenticator: Arc::new(authenticator),
            authorizer: Arc::new(authorizer),
            admission,
            registry,
        }))
    }

    /// Starts a server that listens on TLS.
    pub async fn start(mut self) -> Result<RunningServer, StartError> {
        let bind = self.bind;
        let client_ca = self.client_ca.take();
        let listener = tokio::net::TcpListener::bind(bind)
            .await
            .map_err(|source| StartError::Listen { address: bind, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Listen { address: bind, source })?;
        let mut ips = vec![address.ip(), std::net::IpAddr::from([127, 0, 0, 1])];
        ips.dedup();
        let (storage, mut identity) = self.open()?;
        let Certificates { authority, admin, server: certificate } = identity.certificates(&ips)?;
        let config = authority.server_config(certificate, client_ca.as_deref())?;
        let server = self.assemble(storage, &identity)?;
        Ok(RunningServer::new(server, listener, address, config, authority, admin))
    }
}

/// Continues a source of randomness, so that a server with a fixed seed does not repeat the uids of its earlier runs.
fn continued(random: &Random, revision: u64) -> Random {
    if revision == 0 {
        return random.clone();
    }
    Random::seeded(random.next() ^ revision.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
