//! Environment of a case: a server and a namespace of its own.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use kubewright::{
    cache::Caches,
    client::CachedClient,
    manager::{ManagerBuilder, ManagerHandle},
    prelude::*,
};
use kubewright_envtest::{Binaries, ControlPlane};
use tokio::task::JoinHandle;

const TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct TestEnv {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// `embedded` or `real`: for process-wide names, such as those of metrics.
    pub(crate) server_kind: &'static str,
    /// kubectl and its kubeconfig, if there are any.
    kubectl: Option<(PathBuf, PathBuf)>,
}

impl TestEnv {
    pub(crate) async fn new(client: Client, case: &str) -> Self {
        let namespace = case.replace('_', "-");
        let namespace = namespace[..namespace.len().min(50)].trim_end_matches('-').to_owned();
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let new = Namespace { metadata, ..Namespace::default() };
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &new).await.unwrap();
        Self { client, namespace, server_kind: "embedded", kubectl: None }
    }

    pub(crate) async fn with_real_server(plane: &ControlPlane, binaries: &Binaries, case: &str) -> Self {
        let kubectl = binaries.path("kubectl").map(|kubectl| (kubectl, plane.kubeconfig()));
        Self { kubectl, server_kind: "real", ..Self::new(plane.client(), case).await }
    }

    /// Returns the output of kubectl, if there is one.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Option<String> {
        let (program, config) = self.kubectl.as_ref()?;
        let mut command = tokio::process::Command::new(program);
        command.arg("--kubeconfig").arg(config).args(["--namespace", &self.namespace]).args(arguments);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn cached(&self) -> CachedClient {
        let caches = Caches::new(self.client.clone()).namespaces([&*self.namespace]);
        caches.start();
        CachedClient::new(&caches).field_owner("test")
    }

    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, name)
    }

    pub(crate) fn map(&self, name: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map.metadata.namespace = Some(self.namespace.clone());
        map
    }

    /// Creates a manager for this namespace.
    pub(crate) fn manager(&self, name: &str) -> ManagerBuilder {
        Manager::builder(name).client(self.client.clone()).namespaces([&*self.namespace]).signals(false)
    }
}

/// Running manager, aborted when it is dropped.
pub(crate) struct Running {
    pub(crate) handle: ManagerHandle,
    task: JoinHandle<Result<()>>,
}

impl Running {
    pub(crate) async fn begin(manager: ManagerBuilder) -> Self {
        let manager = manager.build().await.unwrap();
        Self { handle: manager.handle(), task: tokio::spawn(manager.run()) }
    }

    pub(crate) async fn stop(mut self) {
        self.handle.stop();
        (&mut self.task).await.unwrap().unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(mut self) -> Result<()> {
        (&mut self.task).await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let until = tokio::time::Instant::now() + TIMEOUT;
    while !condition().await {
        assert!(tokio::time::Instant::now() < until, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
