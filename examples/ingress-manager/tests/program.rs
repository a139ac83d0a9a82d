//! The program as shipped: a process with a kubeconfig, signals and ports.
#![cfg(unix)]

use std::{net::SocketAddr, path::Path, process::Stdio, time::Duration};

use kubewright::{
    k8s_openapi::api::{core::v1::Service, networking::v1::Ingress},
    kube::{Api, api::PostParams},
};
use kubewright_apiserver::ApiServer;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::Command,
};

fn program(kubeconfig: &Path, serve: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_with_builder"));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBEWRIGHT_SERVE", serve)
        .env("RUST_LOG", "info")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut socket = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(answer)
}

async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..3000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("did not come true: {what}");
}

#[tokio::test]
async fn it_logs_serves_reconciles_and_stops() {
    let server = ApiServer::builder().start().await.expect("a port is free");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig()).expect("a file");
    // Free a moment ago; the program fails if it no longer is.
    let address = TcpListener::bind("127.0.0.1:0").await.and_then(|held| held.local_addr()).expect("a port");
    let mut child = program(&kubeconfig, &address.to_string()).spawn().expect("the program runs");

    eventually("it is ready", async || get(address, "/readyz").await.is_some()).await;
    assert!(get(address, "/healthz").await.is_some());
    let client = server.server().client();
    let service = json!({
        "metadata": {"name": "web", "annotations": {"ingress/http": "web.example.com"}},
        "spec": {"ports": [{"port": 80}]},
    });
    let services = Api::<Service>::namespaced(client.clone(), "default");
    let service = serde_json::from_value(service).expect("a service");
    services.create(&PostParams::default(), &service).await.expect("created");
    let ingresses = Api::<Ingress>::namespaced(client, "default");
    eventually("an ingress", async || ingresses.get_opt("web").await.expect("an answer").is_some()).await;
    let metrics = get(address, "/metrics").await.expect("metrics");
    for series in [
        r#"controller_runtime_reconcile_total{controller="service",result="success"}"#,
        r#"workqueue_adds_total{name="service",controller="service"}"#,
        "rest_client_requests_total{",
    ] {
        assert!(metrics.contains(series), "no {series} in\n{metrics}");
    }

    let id = child.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args(["-TERM", &id]).status().expect("kill is everywhere");
    assert!(sent.success());
    let mut log = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut log).await.expect("a log");
    assert!(child.wait().await.expect("it ends").success(), "{log}");
    for line in ["serving probes and metrics", "controller started", "signal=\"SIGTERM\"", "manager stopped"]
    {
        assert!(log.contains(line), "no {line} in\n{log}");
    }
}

#[tokio::test]
async fn errors_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let output = program(&missing, "0").output().await.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    let wanted = format!("Error: none of the files in KUBECONFIG exists: {}", missing.display());
    assert!(text.contains(&wanted), "{text}");

    let server = ApiServer::builder().start().await.expect("a port is free");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig()).expect("a file");
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = program(&kubeconfig, &address).output().await.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    let wanted = format!("Error: probes and metrics failed\n  caused by: cannot listen on {address}");
    assert!(text.contains(&wanted), "{text}");
}
