//! Servers in process and on TLS.

use std::{net::SocketAddr, sync::Arc};

use kubewright_core::Clock;
use tokio_util::sync::CancellationToken;

use crate::{
    authn::{Authenticator, MASTERS, User},
    builder::ApiServerBuilder,
    components::Components,
    http::{
        ApiService,
        tls::{self, Authority, Identity},
    },
    registry::Registry,
};

/// An API server in this process. Dropping it ends all watches.
#[derive(Debug)]
pub struct ApiServer {
    components: Arc<Components>,
    service: ApiService,
    stop: CancellationToken,
}

impl ApiServer {
    pub(crate) fn new(components: Components) -> Self {
        let components = Arc::new(components);
        Self { service: ApiService::new(&components), components, stop: CancellationToken::new() }
    }

    #[cfg(test)]
    pub(crate) fn components(&self) -> &Components {
        &self.components
    }

    /// Returns a builder of a server.
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
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    /// Returns the server as a [`tower::Service`] for requests with credentials.
    pub fn service(&self) -> ApiService {
        self.service.clone()
    }

    /// Returns an in-process client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.client_as(User {
            name: "kubernetes-admin".into(),
            groups: vec![MASTERS.into()],
            ..User::default()
        })
    }

    /// Returns an in-process client of a user.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.service.for_peer(user), "default")
    }

    /// Returns the served types and the storage.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.components.registry
    }

    /// Returns the authenticators.
    pub fn authenticator(&self) -> &Authenticator {
        &self.components.authenticator
    }

    /// Returns an independent server that begins with the state of this one: objects, definitions, accounts and their
    /// keys. Objects are shared until one of the two changes them, so a fork costs what its Services and definitions cost
    /// and nothing else. It has no sockets and is in memory.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use kubewright_apiserver::ApiServer;
    /// use kubewright_core::Clock;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prepared = ApiServer::builder().in_process()?;
    /// let fork = prepared.fork(Clock::system());
    /// let revision = |server: &ApiServer| server.registry().storage().revision();
    /// assert_eq!(revision(&prepared), revision(&fork));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn fork(&self, clock: Clock) -> Self {
        Self::new(self.components.fork(clock))
    }

    /// Drops all history, as an etcd compaction does: older watches and continue tokens answer 410.
    pub fn compact(&self) {
        self.registry().storage().compact();
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.registry().storage().close();
    }
}

/// An API server that listens on TLS.
#[derive(Debug)]
pub struct RunningServer {
    server: ApiServer,
    address: SocketAddr,
    authority: Authority,
    admin: Identity,
    task: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    pub(crate) fn new(
        server: ApiServer,
        listener: tokio::net::TcpListener,
        address: SocketAddr,
        config: rustls::ServerConfig,
        authority: Authority,
        admin: Identity,
    ) -> Self {
        let task = tokio::spawn(tls::serve(listener, config, server.service.clone(), server.stop.clone()));
        Self { server, address, authority, admin, task }
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server itself.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the certificate (PEM) of the authority that clients have to trust.
    pub fn certificate(&self) -> &str {
        &self.authority.certificate
    }

    /// Returns a kubeconfig of an administrator.
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

    /// Stops the server: no new connections, watches end, requests finish.
    pub async fn stop(self) {
        self.server.stop.cancel();
        self.server.registry().storage().close();
        let _ = self.task.await;
    }
}
