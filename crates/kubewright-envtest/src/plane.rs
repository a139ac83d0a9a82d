//! Starts and holds the programs of a control plane.

use std::{path::PathBuf, time::Duration};

use kube::{Client, Config, config::AuthInfo};
use secrecy::SecretString;
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, time::Instant};

use crate::{
    Binaries, Error,
    flags::{Layout, local},
    process::Process,
};

/// The administrator's token. The server listens on localhost only, for the duration of a test.
const TOKEN: &str = "admintoken";
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// Builder of a [`ControlPlane`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing runs before `start`"]
pub struct ControlPlaneBuilder {
    controllers: bool,
}

impl ControlPlaneBuilder {
    /// Runs kube-controller-manager too. There is no scheduler and no kubelet: the test writes the status of
    /// Pods.
    pub fn controllers(mut self, on: bool) -> Self {
        self.controllers = on;
        self
    }

    /// Starts the programs and waits until the API server is ready.
    pub async fn start(self, binaries: &Binaries) -> Result<ControlPlane, Error> {
        let folder = tempfile::tempdir().map_err(io("make a temporary folder"))?;
        let [etcd_port, etcd_peers, api_port] = free_ports().await?;
        let layout = Layout { folder: folder.path(), etcd: etcd_port, etcd_peers, api: api_port };
        write(&folder, "tokens.csv", &format!("{TOKEN},admin,admin,\"system:masters\"\n"))?;
        let key = rcgen::KeyPair::generate()?;
        write(&folder, "service-accounts.key", &key.serialize_pem())?;
        write(&folder, "service-accounts.pub", &key.public_key_pem())?;
        write(&folder, "kubeconfig", &kubeconfig(api_port))?;

        let mut processes = Vec::new();
        let start = |program, flags: &[String]| {
            let path = binaries.path(program).unwrap_or_else(|| PathBuf::from(program));
            Process::start(program, &path, flags, folder.path())
        };
        processes.push(start("etcd", &layout.etcd_flags())?);
        processes.push(start("kube-apiserver", &layout.api_flags())?);
        let client = client(api_port)?;
        wait_until_ready(&client, &mut processes).await?;
        if self.controllers {
            processes.push(start("kube-controller-manager", &layout.controller_flags())?);
        }
        Ok(ControlPlane { client, api_port, etcd_port, processes, folder })
    }
}

/// Running control plane, stopped when it is dropped.
pub struct ControlPlane {
    client: Client,
    api_port: u16,
    etcd_port: u16,
    // Declared before the directory, so that the processes end before their files are removed.
    processes: Vec<Process>,
    folder: TempDir,
}

impl ControlPlane {
    /// Creates a builder.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// A client with the rights of a cluster administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The configuration of [`ControlPlane::client`], for other clients.
    pub fn config(&self) -> Config {
        config(self.api_port)
    }

    /// The names and process ids of the running programs.
    pub fn processes(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.processes.iter().filter_map(Process::id)
    }

    /// The URL of etcd, without TLS.
    pub fn etcd(&self) -> String {
        local("http", self.etcd_port)
    }

    /// The path of an administrator's kubeconfig, for programs such as kubectl.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

fn io(doing: &str) -> impl FnOnce(std::io::Error) -> Error {
    let doing = doing.to_owned();
    move |source| Error::Io { doing, source }
}

fn write(folder: &TempDir, name: &str, content: &str) -> Result<(), Error> {
    std::fs::write(folder.path().join(name), content).map_err(io(&format!("write {name}")))
}

/// Ports that were free a moment ago. The listeners are held until all ports are known, so that they differ.
async fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(io("find a free port"))?;
        *port = listener.local_addr().map_err(io("find a free port"))?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn config(port: u16) -> Config {
    let url = local("https", port).parse().expect("an address with a number for a port is a URL");
    let mut config = Config::new(url);
    // The server generates a self-signed certificate at each start.
    config.accept_invalid_certs = true;
    config.auth_info = AuthInfo { token: Some(SecretString::from(TOKEN)), ..AuthInfo::default() };
    config
}

fn client(port: u16) -> Result<Client, Error> {
    Client::try_from(config(port))
        .map_err(|source| Error::Client { url: local("https", port), source: Box::new(source) })
}

fn kubeconfig(port: u16) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "envtest",
        "clusters": [{"name": "envtest",
                      "cluster": {"server": local("https", port), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": "admin"}}],
    })
    .to_string()
}

async fn wait_until_ready(client: &Client, processes: &mut [Process]) -> Result<(), Error> {
    let until = Instant::now() + READY_TIMEOUT;
    loop {
        for process in &mut *processes {
            process.must_run()?;
        }
        let request = http::Request::get("/readyz").body(Vec::new()).expect("a fixed request is well formed");
        if client.request_text(request).await.is_ok() {
            return Ok(());
        }
        if Instant::now() >= until {
            let why = format!("was not ready after {} s", READY_TIMEOUT.as_secs());
            return Err(processes.last().expect("the API server was started").not_ready(why));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
