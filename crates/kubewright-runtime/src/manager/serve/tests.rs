//! Servers on real sockets, and authorization of scrapes.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{site::Routes, *};

fn metrics() -> Metrics {
    let metrics = Metrics::empty();
    let carts = Counter::<u64>::default();
    carts.inc();
    metrics.register(|registry| registry.register("shop_carts", "Carts.", carts));
    metrics
}

async fn get(routes: &Routes, path: &str, headers: &[(&'static str, &str)]) -> (StatusCode, String, String) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = routes.respond(&request.body(()).unwrap()).await;
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let (status, body) = (response.status(), response.into_body().collect().await.unwrap().to_bytes());
    (status, String::from_utf8(body.to_vec()).unwrap(), kind)
}

#[tokio::test]
async fn paths_are_routed_and_unknown_ones_are_not_found() {
    let ready = Checks::new();
    ready.add("cache", || async { Err("not synced".into()) });
    let routes =
        Routes { healthz: Some(Checks::new()), readyz: Some(ready), metrics: Some(metrics()), access: None };
    assert_eq!(get(&routes, "/healthz", &[]).await.1, "ok");
    assert_eq!(get(&routes, "/healthz/", &[]).await.1, "ok");
    assert_eq!(get(&routes, "/healthz/ping", &[]).await.1, "ok");
    assert_eq!(get(&routes, "/readyz", &[]).await.0, 500);
    assert_eq!(get(&routes, "/readyz/cache", &[]).await.1, "internal server error: not synced\n");
    assert_eq!(get(&routes, "/readyz?exclude=cache", &[]).await.1, "ok");
    for path in ["/", "/other", "/readyz/none", "/metrics/x", "/healthz/cache"] {
        assert_eq!(get(&routes, path, &[]).await.0, 404, "{path}");
    }
    assert_eq!(get(&Routes::default(), "/metrics", &[]).await.1, "404 page not found\n");
    let post = routes.respond(&Request::post("/healthz").body(()).unwrap()).await;
    assert_eq!(post.status(), 405);
}

#[tokio::test]
async fn metrics_are_encoded_in_the_accepted_format() {
    let routes = Routes { metrics: Some(metrics()), ..Routes::default() };
    let (_, text, kind) = get(&routes, "/metrics", &[]).await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(text.contains("# TYPE shop_carts_total counter\nshop_carts_total 1\n"), "{text}");
    let (_, text, kind) = get(&routes, "/metrics", &[("accept", "application/openmetrics-text")]).await;
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(text.contains("# TYPE shop_carts counter\n") && text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn the_metrics_of_the_process_have_the_names_of_controller_runtime() {
    let text = Metrics::new().text().unwrap();
    for name in [
        "workqueue_depth",
        "rest_client_requests",
        "rest_client_request_duration_seconds",
        "leader_election_master_status",
        "kubewright_events",
    ] {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}: {text}");
    }
}

/// An API server that knows two tokens and records reviews.
fn reviewing_client(asked: &Arc<Mutex<Vec<String>>>) -> Client {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = Arc::clone(&asked);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
            let mut review: Value = serde_json::from_slice(&body)?;
            let spec = review["spec"].clone();
            let kind = path.rsplit('/').next().unwrap_or_default().to_owned();
            asked.lock().push(kind.clone());
            review["status"] = if kind == "tokenreviews" {
                match spec["token"].as_str() {
                    Some("prom") => {
                        json!({"authenticated": true, "user": {"username": "prometheus", "groups": ["scrapers"]}})
                    }
                    Some("eve") => json!({"authenticated": true, "user": {"username": "eve"}}),
                    Some("broken") => return Err(std::io::Error::other("hunter2")),
                    _ => json!({"authenticated": false}),
                }
            } else {
                assert_eq!(spec["nonResourceAttributes"], json!({"path": "/metrics", "verb": "get"}));
                json!({"allowed": spec["groups"] == json!(["scrapers"])})
            };
            Ok::<_, std::io::Error>(http::Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn scrapes_are_authorized_and_reviews_are_cached() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let access = Some(AccessReview::new(reviewing_client(&asked)));
    let routes =
        Routes { metrics: Some(metrics()), access, healthz: Some(Checks::new()), ..Routes::default() };
    let scrape = async |authorization: &str| {
        let (status, text, _) = get(&routes, "/metrics", &[("authorization", authorization)]).await;
        (status.as_u16(), text)
    };
    assert_eq!(get(&routes, "/metrics", &[]).await.0, 401);
    assert_eq!(scrape("Basic eA==").await.0, 401);
    assert_eq!(scrape("Bearer ").await.0, 401);
    assert!(asked.lock().is_empty(), "no token, no review");
    assert_eq!(get(&routes, "/healthz", &[]).await.0, 200, "probes have no credentials");

    assert_eq!(scrape("Bearer wrong").await, (401, "Unauthorized\n".into()));
    assert_eq!(scrape("Bearer eve").await, (403, "Authorization denied for user eve\n".into()));
    assert_eq!(scrape("Bearer broken").await, (500, "Authentication failed\n".into()));
    asked.lock().clear();

    assert_eq!(scrape("Bearer prom").await.0, 200);
    assert_eq!(scrape("bearer prom").await.0, 200);
    assert_eq!(*asked.lock(), ["tokenreviews", "subjectaccessreviews"], "reviewed once");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(scrape("Bearer prom").await.0, 200);
    assert_eq!(asked.lock().len(), 3, "the identity has expired, the authorization has not");
    tokio::time::advance(Duration::from_mins(5)).await;
    assert_eq!(scrape("Bearer prom").await.0, 200);
    assert_eq!(asked.lock().len(), 5);
}

async fn fetch(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static) -> String {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/healthz").header("host", "x").body(Empty::<Bytes>::new()).unwrap();
    let body = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_server_listens_answers_and_stops() {
    let server = Server::builder("localhost:0").healthz(Checks::new()).listen().await.unwrap();
    let (address, stop) = (server.address().unwrap(), CancellationToken::new());
    let running = tokio::spawn(server.run(stop.clone()));
    assert_eq!(fetch(TcpStream::connect(address).await.unwrap()).await, "ok");
    stop.cancel();
    running.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_or_malformed_is_refused_with_a_way_out() {
    let first = Server::builder("127.0.0.1:0").listen().await.unwrap();
    let error = Server::builder(first.address().unwrap().to_string()).listen().await.unwrap_err();
    assert!(error.to_string().contains("choose another"), "{error}");
    let error = Server::builder("nonsense").listen().await.unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:8080"), "{error}");
}

#[tokio::test]
async fn zero_disables_a_server() {
    let server = Server::builder("0").tls("/nonexistent", "/nonexistent").listen().await.unwrap();
    assert_eq!(server.address(), None);
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.run(stop.clone()));
    stop.cancel();
    running.await.unwrap();
}

/// Writes a new self-signed certificate to two files.
fn write_certificate(dir: &Path) -> CertificateDer<'static> {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(dir.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

/// Sends a probe that trusts one certificate.
async fn fetch_tls(
    address: std::net::SocketAddr,
    trusted: &CertificateDer<'static>,
) -> Result<String, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await;
    Ok(fetch(stream.map_err(|error| error.to_string())?).await)
}

#[tokio::test]
async fn a_new_certificate_is_loaded_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let old = write_certificate(dir.path());
    let (crt, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let certificate = Arc::new(super::tls::Certificate::load(crt.clone(), key.clone()).unwrap());
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(certificate.server_config().unwrap()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Arc::new(Routes { healthz: Some(Checks::new()), ..Routes::default() });
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let stop = CancellationToken::new();
            tokio::spawn(super::server::connect(socket, Some(acceptor.clone()), Arc::clone(&routes), stop));
        }
    });
    assert_eq!(fetch_tls(address, &old).await.unwrap(), "ok");

    let new = write_certificate(dir.path());
    assert!(fetch_tls(address, &new).await.is_err(), "not loaded yet");
    certificate.refresh();
    assert_eq!(fetch_tls(address, &new).await.unwrap(), "ok");
    assert!(fetch_tls(address, &old).await.is_err());

    std::fs::write(&crt, "nonsense").unwrap();
    certificate.refresh();
    std::fs::remove_file(&crt).unwrap();
    certificate.refresh();
    assert_eq!(fetch_tls(address, &new).await.unwrap(), "ok", "the last good one stays");
}

#[tokio::test]
async fn unusable_certificates_are_refused_by_file_name() {
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path());
    let (crt, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let listen = async || {
        let server = Server::builder("127.0.0.1:0").tls(&crt, &key).listen().await;
        server.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(listen().await, "");
    std::fs::write(&key, &other).unwrap();
    assert!(listen().await.contains("cannot be used with the key"), "{}", listen().await);
    std::fs::write(&key, "hunter2").unwrap();
    let error = listen().await;
    assert!(
        error.contains("tls.key is no PEM file with a private key") && !error.contains("hunter2"),
        "{error}"
    );
    std::fs::remove_file(&crt).unwrap();
    assert!(listen().await.contains("tls.crt cannot be read"));
}
