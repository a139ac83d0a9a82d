//! How each program is started.

use std::path::Path;

/// Everything that the programs of one control plane share.
pub(crate) struct Layout<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api: u16,
}

impl Layout<'_> {
    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(crate) fn etcd_flags(&self) -> Vec<String> {
        let (clients, peers) = (local("http", self.etcd), local("http", self.etcd_peers));
        vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // Nothing of a test outlives a crash of its machine.
            "--unsafe-no-fsync".into(),
            // A test may be about a large cluster.
            format!("--quota-backend-bytes={}", 8_u64 << 30),
        ]
    }

    /// Users by token and rights by RBAC, as in the recordings that the embedded server is held to.
    pub(crate) fn api_flags(&self) -> Vec<String> {
        vec![
            format!("--etcd-servers={}", local("http", self.etcd)),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.api),
            format!("--cert-dir={}", self.file("certificates")),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            format!("--service-account-key-file={}", self.file("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", self.file("service-accounts.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            // Pods must not wait for a token controller that may not be there.
            "--disable-admission-plugins=ServiceAccount".into(),
            "--endpoint-reconciler-type=none".into(),
        ]
    }

    pub(crate) fn controller_flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.file("kubeconfig")),
            format!("--service-account-private-key-file={}", self.file("service-accounts.key")),
            format!("--root-ca-file={}", self.file("certificates/apiserver.crt")),
            "--use-service-account-credentials=false".into(),
            "--leader-elect=false".into(),
            // No kubelet reports here: nodes would be found unreachable.
            "--controllers=*,-node-lifecycle-controller,-node-ipam-controller".into(),
            "--secure-port=0".into(),
            // One test at a time, and it waits.
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ]
    }
}

pub(crate) fn local(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}
