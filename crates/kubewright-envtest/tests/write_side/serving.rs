//! HTTP endpoints of a manager, and their authorization by the API server.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{ConfigMap, Event, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use kubewright::{manager::serve::Endpoint, prelude::*};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
};

use crate::place::{Running, TestEnv, eventually};

/// Sends a GET request; returns status and body.
async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    token: Option<&str>,
) -> (u16, String) {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn get_http(address: SocketAddr, path: &str) -> (u16, String) {
    get(TcpStream::connect(address).await.unwrap(), path, None).await
}

/// A certificate in files, and a client that trusts only it.
struct Tls {
    folder: tempfile::TempDir,
    connector: tokio_rustls::TlsConnector,
}

impl Tls {
    fn new() -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tls.crt"), certified.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), certified.signing_key.serialize_pem()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certified.cert.der().clone()).unwrap();
        let config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        Self { folder, connector: Arc::new(config).into() }
    }

    async fn get(&self, address: SocketAddr, path: &str, token: Option<&str>) -> (u16, String) {
        let socket = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        get(self.connector.connect(name, socket).await.unwrap(), path, token).await
    }
}

/// Returns a token of the service account of this name.
async fn token(env: &TestEnv, name: &str) -> String {
    let accounts = env.api::<ServiceAccount>();
    let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let granted = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    granted.status.unwrap().token.unwrap()
}

async fn allow_scraping(env: &TestEnv, account: &str) {
    let role = json!({
        "metadata": {"name": "scraper"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    let binding = json!({
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": env.namespace}],
    });
    let (roles, bindings) =
        (Api::<ClusterRole>::all(env.client.clone()), Api::<ClusterRoleBinding>::all(env.client.clone()));
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

pub(crate) async fn probes_are_public_and_metrics_are_authorized(env: TestEnv) {
    env.api::<ConfigMap>().create(&PostParams::default(), &env.map("a")).await.unwrap();
    let (scraper, unauthorized) = (token(&env, "prometheus").await, token(&env, "eve").await);
    allow_scraping(&env, "prometheus").await;
    let tls = Tls::new();
    let file = |name: &str| tls.folder.path().join(name);
    let (open, shop) = watch::channel(false);
    let name = format!("served-{}", env.server_kind);
    let (work, worked) = watch::channel(());
    let controller =
        Controller::of::<ConfigMap>().named(&name).workers(3).reconcile(move |_: Context<ConfigMap>| {
            work.send_replace(());
            async { Ok(Action::requeue_after(Duration::from_hours(1))) }
        });
    let manager = env
        .manager(&name)
        .leader_election(true)
        .serve("127.0.0.1:0")
        .metrics(Endpoint::new("127.0.0.1:0").tls(file("tls.crt"), file("tls.key")).protected())
        .readyz("shop", move || {
            let is_open = *shop.borrow();
            async move { if is_open { Ok(()) } else { Err("the shop is closed".into()) } }
        })
        .controller(controller);
    let running = Running::begin(manager).await;
    eventually("it serves", async || running.handle.addresses().len() == 2).await;
    let [probes, metrics] = running.handle.addresses()[..] else { panic!("two addresses") };

    assert_eq!(get_http(probes, "/healthz").await, (200, "ok".to_owned()));
    eventually("it works", async || worked.has_changed().unwrap()).await;
    let (status, text) = get_http(probes, "/readyz").await;
    assert_eq!(
        (status, text.contains("[+]caches ok"), text.contains("[-]shop failed")),
        (500, true, true),
        "{text}"
    );
    assert!(get_http(probes, "/readyz/shop").await.1.contains("the shop is closed"));
    assert_eq!(get_http(probes, "/readyz?exclude=shop").await.0, 200);
    open.send(true).unwrap();
    assert_eq!(get_http(probes, "/readyz").await, (200, "ok".to_owned()));
    assert_eq!(get_http(probes, "/metrics").await.0, 404, "they have their own address");

    assert_eq!(tls.get(metrics, "/metrics", None).await.0, 401);
    assert_eq!(tls.get(metrics, "/metrics", Some("nonsense")).await.0, 401);
    assert_eq!(tls.get(metrics, "/metrics", Some(&unauthorized)).await.0, 403);
    let scrape = async || tls.get(metrics, "/metrics", Some(&scraper)).await;
    let done =
        format!(r#"controller_runtime_reconcile_total{{controller="{name}",result="requeue_after"}} "#);
    // The server applies new RBAC rules with a delay, and a denial is cached for half a minute.
    eventually("the right to scrape, and a reconcile", async || {
        let (status, text) = scrape().await;
        status == 200 && text.lines().any(|line| line.starts_with(&done) && !line.ends_with(" 0"))
    })
    .await;
    let text = scrape().await.1;
    let workers = format!(r#"{{controller="{name}"}}"#);
    let queue = format!(r#"{{name="{name}",controller="{name}"}}"#);
    for series in [
        format!("controller_runtime_max_concurrent_reconciles{workers} 3"),
        format!("controller_runtime_active_workers{workers} 0"),
        format!("controller_runtime_reconcile_errors_total{workers} 0"),
        format!("controller_runtime_terminal_reconcile_errors_total{workers} 0"),
        format!("controller_runtime_reconcile_panics_total{workers} 0"),
        format!("controller_runtime_reconcile_timeouts_total{workers} 0"),
        format!("controller_runtime_reconcile_time_seconds_count{workers} "),
        format!("workqueue_adds_total{queue} "),
        format!("workqueue_depth{queue} 0"),
        format!(r#"leader_election_master_status{{name="{name}"}} 1"#),
    ] {
        assert!(text.lines().any(|line| line.starts_with(&series)), "no {series} in\n{text}");
    }
    running.stop().await;
    assert!(TcpStream::connect(probes).await.is_err(), "it has stopped listening");

    // The election uses the client's namespace, and records events.
    let events = Api::<Event>::default_namespaced(env.client.clone());
    let about =
        ListParams::default().fields(&format!("involvedObject.kind=Lease,involvedObject.name={name}"));
    let messages: Vec<_> =
        events.list(&about).await.unwrap().items.into_iter().filter_map(|event| event.message).collect();
    assert!(messages.iter().any(|message| message.ends_with(" became leader")), "{messages:?}");
}

pub(crate) async fn an_address_in_use_is_reported(env: TestEnv) {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = Running::begin(env.manager("late").serve(&*address)).await.ended().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("cannot listen on {address}")) && text.contains("0 for none"), "{text}");
}
