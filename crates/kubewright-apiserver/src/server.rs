//! Starting and stopping a server.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{
    admission::{Chain, UnknownPlugin},
    authn::{Authenticator, MASTERS, RequestAuthenticator, User, token_file::TokenFile},
    authz::{Authorize, Authorizer, Mode},
    boot,
    clock::{Clock, SharedClock, SystemClock},
    http::{
        ApiService,
        tls::{self, Authority, Identity, TlsError},
    },
    identity::{Certificates, ClusterIdentity, IdentityError},
    random::Random,
    registry::{Parts, Registry, schematic::Schematic, semantics::Semantics},
    storage::{DataDirError, Retention, Storage, WriteError},
};

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An admission plugin does not exist.
    #[error(transparent)]
    Admission(#[from] UnknownPlugin),
    /// The keys and certificates of the cluster could not be had.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The data directory cannot be written.
    #[error(transparent)]
    NotStored(#[from] WriteError),
}

/// What a server is started with.
pub struct Builder {
    bind: SocketAddr,
    modes: Vec<Mode>,
    tokens: TokenFile,
    client_ca: Option<String>,
    clock: SharedClock,
    random: Random,
    semantics: Arc<dyn Semantics>,
    admission: Chain,
    enabled: Vec<String>,
    disabled: Vec<String>,
    authenticators: Vec<Arc<dyn RequestAuthenticator>>,
    authorizers: Vec<Arc<dyn Authorize>>,
    retention: Retention,
    data_dir: Option<PathBuf>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("bind", &self.bind)
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            modes: vec![Mode::Rbac],
            tokens: TokenFile::default(),
            client_ca: None,
            clock: Arc::new(SystemClock),
            random: Random::from_system(),
            semantics: Arc::new(Schematic),
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

impl Builder {
    /// Where to listen; port 0 is any free one.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// The authorisers, in order.
    #[must_use]
    pub fn authorization(mut self, modes: impl Into<Vec<Mode>>) -> Self {
        self.modes = modes.into();
        self
    }

    /// Users by static token.
    #[must_use]
    pub fn tokens(mut self, tokens: TokenFile) -> Self {
        self.tokens = tokens;
        self
    }

    /// An authority (PEM) whose client certificates are believed, besides the server's own.
    #[must_use]
    pub fn client_ca(mut self, pem: impl Into<String>) -> Self {
        self.client_ca = Some(pem.into());
        self
    }

    /// Where timestamps come from.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The seed of uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.random = Random::from_seed(seed);
        self
    }

    /// Who knows schemas, patches and field ownership.
    #[must_use]
    pub fn semantics(mut self, semantics: impl Semantics) -> Self {
        self.semantics = Arc::new(semantics);
        self
    }

    /// The admission plugins.
    #[must_use]
    pub fn admission(mut self, chain: Chain) -> Self {
        self.admission = chain;
        self
    }

    /// Switches on admission plugins that the server has but does not use unless told to.
    #[must_use]
    pub fn enable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.enabled.extend(names.into_iter().map(Into::into));
        self
    }

    /// Switches off admission plugins.
    #[must_use]
    pub fn disable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.disabled.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds another way to tell who asks.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl RequestAuthenticator) -> Self {
        self.authenticators.push(Arc::new(authenticator));
        self
    }

    /// Adds an authoriser that is asked before the modes.
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorize) -> Self {
        self.authorizers.push(Arc::new(authorizer));
        self
    }

    /// How much history is kept for watchers.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Keeps the cluster in a directory: acknowledged writes, keys and certificates outlive the process, even one that is
    /// killed. Without it everything lives in memory.
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// The storage and the identity of the cluster. The storage first: it holds the lock of the directory.
    fn open(&self) -> Result<(Storage, ClusterIdentity), StartError> {
        Ok(match &self.data_dir {
            None => (Storage::with_retention(self.retention), ClusterIdentity::fresh()?),
            Some(path) => (Storage::open(path, self.retention)?, ClusterIdentity::kept_in(path)?),
        })
    }

    /// A server without sockets. With a data directory it blocks while that is read.
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
        let registry = Registry::new(Parts {
            random: self.random.after(storage.revision()),
            storage: Arc::new(storage),
            clock: self.clock,
            semantics: self.semantics,
            admission,
            authorizer: Authorizer::new(self.modes).asking(self.authorizers),
            authenticator: Authenticator {
                others: self.authenticators,
                tokens: self.tokens,
                refuse_anonymous: false,
            },
            tokens: Arc::new(identity.issuer()?),
        });
        boot::fill(&registry);
        registry.storage.flush_blocking()?;
        Ok(ApiServer { service: ApiService::new(Arc::new(registry)), stop: CancellationToken::new() })
    }

    /// A server that listens on TLS.
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
        let task = tokio::spawn(tls::serve(listener, config, server.service.clone(), server.stop.clone()));
        Ok(RunningServer { server, address, authority, admin, task })
    }
}

/// A server in this process. Dropping it ends every watch.
#[derive(Debug)]
pub struct ApiServer {
    service: ApiService,
    stop: CancellationToken,
}

impl ApiServer {
    /// How a server is started.
    ///
    /// ```
    /// use kube::Api;
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kubewright_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ApiServer::builder().in_process()?;
    /// let namespaces = Api::<Namespace>::all(server.client());
    /// assert!(namespaces.get("kube-system").await.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The server as a `tower::Service`, for whoever shows credentials in their requests.
    pub fn service(&self) -> ApiService {
        self.service.clone()
    }

    /// A client that may do everything, without sockets.
    pub fn client(&self) -> kube::Client {
        self.client_as(User {
            name: "kubernetes-admin".into(),
            groups: vec![MASTERS.into()],
            ..User::default()
        })
    }

    /// A client of some user, without sockets.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.service.for_peer(user), "default")
    }

    /// What it serves.
    pub fn registry(&self) -> &Arc<Registry> {
        self.service.registry()
    }

    /// A server of its own that begins with everything that this one has: objects, definitions, accounts and their keys.
    /// Neither sees what the other does from then on. Objects are shared until one of the two changes them, so a fork
    /// costs what its Services and definitions cost, and nothing for anything else. It has no sockets, and keeps
    /// everything in memory.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use kubewright_apiserver::{ApiServer, clock::SystemClock};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prepared = ApiServer::builder().in_process()?;
    /// let fork = prepared.fork(SystemClock);
    /// let revision = |server: &ApiServer| server.registry().storage.revision();
    /// assert_eq!(revision(&prepared), revision(&fork));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn fork(&self, clock: impl Clock) -> Self {
        let registry = Registry::new(self.registry().fork(Arc::new(clock)));
        boot::resume(&registry);
        Self { service: ApiService::new(Arc::new(registry)), stop: CancellationToken::new() }
    }

    /// Forgets all history, as an etcd compaction does: older watches and continue tokens answer 410.
    pub fn compact(&self) {
        self.registry().storage.compact();
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.registry().storage.close();
    }
}

/// A server that listens on TLS.
#[derive(Debug)]
pub struct RunningServer {
    server: ApiServer,
    address: SocketAddr,
    authority: Authority,
    admin: Identity,
    task: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server itself.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The certificate of the authority that clients have to trust, as PEM.
    pub fn certificate(&self) -> &str {
        &self.authority.certificate
    }

    /// A kubeconfig for an administrator.
    pub fn kubeconfig(&self) -> String {
        use base64::{Engine, engine::general_purpose::STANDARD};
        use secrecy::ExposeSecret;
        let ca = STANDARD.encode(&self.authority.certificate);
        let certificate = STANDARD.encode(&self.admin.certificate);
        let key = STANDARD.encode(self.admin.key.expose_secret());
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: kubewright\n  cluster:\n    server: https://{}\n    \
             certificate-authority-data: {ca}\nusers:\n- name: kubernetes-admin\n  user:\n    \
             client-certificate-data: {certificate}\n    client-key-data: {key}\ncontexts:\n- name: kubewright\n  \
             context:\n    cluster: kubewright\n    user: kubernetes-admin\ncurrent-context: kubewright\n",
            self.address
        )
    }

    /// Stops: no new connections, watches end, requests finish.
    pub async fn stop(self) {
        self.server.stop.cancel();
        self.server.registry().storage.close();
        let _ = self.task.await;
    }
}
