//! Tests of webhooks over TLS.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::{TestClient, rules, server};

/// Serves a webhook on a free local port; returns the port and the CA of its certificate.
async fn serve() -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let pem = made.cert.pem();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a certificate that fits its key");
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            let _ = connection.await;
        }
    });
    (port, pem)
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<Full<bytes::Bytes>>, hyper::Error> {
    let place = request.uri().to_string();
    let review: Value =
        serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).expect("a review");
    let patch = STANDARD.encode(json!([{"op": "add", "path": "/data/by", "value": place}]).to_string());
    let response =
        json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch});
    let body = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    Ok(http::Response::new(Full::from(body.to_string())))
}

fn hook(url: &str, authority: &str) -> Value {
    json!({"webhooks": [{
        "name": "tls.example.com", "clientConfig": {"url": url, "caBundle": STANDARD.encode(authority)},
        "rules": rules("", &["configmaps"]), "admissionReviewVersions": ["v1"], "sideEffects": "None",
    }]})
}

#[tokio::test]
async fn a_webhook_with_a_trusted_ca_is_called() {
    let (port, authority) = serve().await;
    let server = server();
    let admin = TestClient::new(&server);
    let url = format!("https://localhost:{port}/mutate");
    admin.configure("MutatingWebhookConfiguration", "m", hook(&url, &authority)).await.ok();
    let map = admin.config_map("a", json!({"k": "1"})).await.ok();
    assert_eq!(map["data"]["by"], "/mutate?timeout=10s");
}

#[tokio::test]
async fn a_webhook_with_an_untrusted_certificate_fails() {
    let (port, _) = serve().await;
    let (_, other) = serve().await;
    let server = server();
    let admin = TestClient::new(&server);
    let url = format!("https://localhost:{port}/mutate");
    admin.configure("MutatingWebhookConfiguration", "m", hook(&url, &other)).await.ok();
    let refused = admin.config_map("a", json!({})).await;
    assert_eq!(refused.code, 500);
    assert!(
        refused
            .message()
            .contains(&format!("Post \"{url}?timeout=10s\": tls: failed to verify certificate: x509: ")),
        "{}",
        refused.message()
    );
}

#[tokio::test]
async fn an_unreachable_webhook_fails() {
    let server = server();
    let admin = TestClient::new(&server);
    let (_, authority) = serve().await;
    let free = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let url = format!("https://127.0.0.1:{port}/x");
    admin.configure("MutatingWebhookConfiguration", "m", hook(&url, &authority)).await.ok();
    admin.config_map("a", json!({})).await.rejected(
        500,
        &format!(
            "Internal error occurred: failed calling webhook \"tls.example.com\": failed to call webhook: Post \
             \"{url}?timeout=10s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        ),
    );
}
