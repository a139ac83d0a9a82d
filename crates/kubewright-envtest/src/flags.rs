//! Flags of the programs.

use std::path::Path;

/// Directory and ports of a control plane.
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
            // A test's data need not survive a crash of the machine.
            "--unsafe-no-fsync".into(),
            // Tests may use large clusters.
            format!("--quota-backend-bytes={}", 8_u64 << 30),
        ]
    }

    /// Static tokens and RBAC, as in the recordings that the embedded server is compared with.
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
            // Pods must be accepted without a token controller.
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
            // Without kubelets, nodes would be marked unreachable.
            "--controllers=*,-node-lifecycle-controller,-node-ipam-controller".into(),
            "--secure-port=0".into(),
            // Tests wait for the controllers, so client-side throttling is off.
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ]
    }
}

pub(crate) fn local(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}
