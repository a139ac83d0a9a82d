//! The layers together: who wins, what is shown, what is not.

use std::{
    convert::Infallible,
    io::{Read as _, Write as _},
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::config::{ExecConfig, Kubeconfig};
use parking_lot::Mutex;
use serde_json::json;
use tracing::Level;

use super::*;
use crate::{Clients, Refusal as _, RestClient, testing};

/// Eight letters, so that it is valid base64 too and can stand in a Secret.
const SECRET: &str = "hunter22";

/// What the log says while this lives, at every level.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let captured = Self::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (captured, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// The events of the debug layer.
    fn http(&self) -> Vec<String> {
        let mut events: Vec<String> = Vec::new();
        for line in self.text().lines() {
            // Headers are several lines of one event.
            match events.last_mut() {
                Some(event) if !line.contains(" DEBUG ") && !line.contains(" TRACE ") => event.push_str(line),
                _ => events.push(line.to_owned()),
            }
        }
        events.retain(|event| event.contains("kubewright::http"));
        events
    }
}

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn secret() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": "db", "namespace": "shop" },
        "data": { "password": SECRET },
    })
}

/// Everything that can go wrong with a secret, once.
async fn traffic(level: Option<DebugLevel>) -> String {
    let (captured, _guard) = Captured::begin();
    let (_, service) = testing::service(|seen| {
        let mut response = match seen.line.as_str() {
            line if line.contains("html") => {
                testing::text(500, "text/html", &format!("<html>{SECRET}</html>"))
            }
            line if line.contains("nonsense") => {
                testing::text(200, "application/json", &format!("{{\"{SECRET}"))
            }
            line if line.contains("refused") => {
                testing::refusal(400, "BadRequest", "error found in #10 byte of ...|\"password\"")
            }
            line if line.contains("token") => {
                testing::json(201, &json!({ "kind": "TokenRequest", "status": { "token": SECRET } }))
            }
            _ => testing::json(200, &secret()),
        };
        response.headers_mut().insert("set-cookie", SECRET.parse().unwrap());
        response
    });
    let transport = Transport::over(service, "default")
        .bearer_token(BearerToken::fixed(SECRET))
        .debug(level)
        .build()
        .unwrap();
    let rest = RestClient::new(transport.client());
    let secrets = || rest.group_version("v1").get().namespace("shop").resource("secrets").name("db");
    let _: k8s_openapi::api::core::v1::Secret = secrets().json().await.unwrap();
    // Neither the answer of the wrong type, nor a page of a proxy, nor half a document may be repeated.
    let errors = [
        secrets().json::<Vec<u8>>().await.unwrap_err(),
        secrets().query("html", "1").bytes().await.unwrap_err(),
        secrets().query("nonsense", "1").json::<serde_json::Value>().await.unwrap_err(),
        secrets().query("refused", "1").bytes().await.unwrap_err(),
    ];
    let create = rest.group_version("v1").post().namespace("shop").resource("secrets");
    create.header("cookie", SECRET).query("token", SECRET).json_body(&secret()).bytes().await.unwrap();
    let patch = rest.group_version("v1").patch(crate::PatchType::Json).namespace("shop");
    let steps = json!([{ "op": "add", "path": "/data/x", "value": SECRET }]);
    patch.resource("secrets").name("db").json_body(&steps).bytes().await.unwrap();
    let token = rest.group_version("v1").post().namespace("shop").resource("serviceaccounts").name("cart");
    token.subresource("token").json_body(&json!({ "kind": "TokenRequest" })).bytes().await.unwrap();
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(!text.contains(SECRET), "{text}");
    }
    captured.text()
}

#[tokio::test]
async fn no_secret_is_in_the_log_at_any_level() {
    for verbosity in [0, 6, 7, 8, 9, 10] {
        let log = traffic(DebugLevel::from_verbosity(verbosity)).await;
        assert!(!log.contains(SECRET), "at {verbosity}: {log}");
        assert_eq!(log.contains("kubewright::http"), verbosity >= 6, "at {verbosity}: {log}");
    }
}

async fn one_request(verbosity: u8) -> Vec<String> {
    let (captured, _guard) = Captured::begin();
    let long = "x".repeat(5000);
    let (_, service) =
        testing::service(move |_| testing::json(200, &json!({ "kind": "ConfigMap", "note": long })));
    let level = DebugLevel::from_verbosity(verbosity);
    let transport = Transport::over(service, "default").debug(level).build().unwrap();
    let request = RestClient::new(transport.client()).group_version("v1").post().namespace("n");
    request.resource("configmaps").json_body(&json!({ "kind": "ConfigMap" })).bytes().await.unwrap();
    captured.http()
}

#[tokio::test(start_paused = true)]
async fn each_level_shows_what_kubectl_shows_and_more_than_the_one_before() {
    let six = one_request(6).await;
    assert_eq!(six.len(), 1, "{six:#?}");
    for part in ["POST", "/api/v1/namespaces/n/configmaps", "200 OK", "milliseconds=0"] {
        assert!(six[0].contains(part), "{part} in {}", six[0]);
    }

    let seven = one_request(7).await;
    assert_eq!(seven.len(), 2, "{seven:#?}");
    assert!(seven[0].contains("user-agent: "), "{}", seven[0]);

    let eight = one_request(8).await;
    assert_eq!(eight.len(), 4, "{eight:#?}");
    assert!(eight[1].contains("Request Body"), "{}", eight[1]);
    assert!(eight[2].contains("content-type: application/json"), "{}", eight[2]);
    assert!(eight[3].contains("Response Body") && eight[3].contains("[truncated "), "{}", eight[3]);
    assert!(eight[3].len() < 2000, "{}", eight[3].len());

    let nine = one_request(9).await;
    assert_eq!(nine.len(), 4, "{nine:#?}");
    assert!(nine[0].contains("curl -v -XPOST -H "), "{}", nine[0]);
    assert!(nine[3].len() > 5000 && !nine[3].contains("truncated"), "{}", nine[3].len());
}

#[tokio::test]
async fn the_debug_layer_passes_a_watch_on_as_it_comes_and_copies_nothing() {
    let (captured, _guard) = Captured::begin();
    let service = tower::service_fn(|_: Request<Body>| async {
        // One event, and then silence for ever: whoever waits for the end hangs.
        let first = Frame::data(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"}}\n"));
        let body = StreamBody::new(stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending()));
        Ok::<_, Infallible>(Response::new(body))
    });
    let transport = Transport::over(service, "default").debug(DebugLevel::Curl).build().unwrap();
    let request = RestClient::new(transport.client()).group_version("v1").get().resource("pods");
    let mut events = request.watch::<serde_json::Value>().await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(kube::core::WatchEvent::Added(_)))));
    drop(events);
    assert!(!captured.text().contains("ADDED"), "{}", captured.text());
}

#[tokio::test]
async fn any_other_answer_is_passed_on_as_it_comes_too() {
    let (_captured, _guard) = Captured::begin();
    let service = tower::service_fn(|_: Request<Body>| async {
        let first = Frame::data(Bytes::from_static(b"line"));
        let body = StreamBody::new(stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending()));
        Ok::<_, Infallible>(Response::new(body))
    });
    let transport = Transport::over(service, "default").debug(DebugLevel::Curl).build().unwrap();
    let mut frames = RestClient::new(transport.client()).get().path("/metrics").stream().await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "line");
}

#[tokio::test]
async fn layers_of_the_user_see_requests_as_they_leave() {
    let (log, service) = testing::service(|_| testing::json(200, &json!({})));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tap = tower::layer::layer_fn({
        let seen = seen.clone();
        move |inner: TransportService| {
            let seen = seen.clone();
            inner.map_request(move |request: Request<Body>| {
                seen.lock().push(request.headers().contains_key("authorization"));
                request
            })
        }
    });
    let transport = Transport::over(service, "default")
        .basic_auth(BasicAuth::new("alice", SECRET))
        .layer(tap)
        .build()
        .unwrap();
    RestClient::new(transport.client()).get().path("/").bytes().await.unwrap();
    assert_eq!(*seen.lock(), [true]);
    assert_eq!(log.all()[0].headers["authorization"], "Basic YWxpY2U6aHVudGVyMjI=");
}

#[test]
fn building_outside_a_runtime_is_an_error_and_no_panic() {
    let (_, service) = testing::service(|_| testing::json(200, &json!({})));
    let error = Transport::over(service, "default").build().unwrap_err();
    assert!(matches!(error, TransportError::NoRuntime));
}

#[tokio::test]
async fn a_password_and_a_token_together_are_refused() {
    let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
    config.auth_info.token = Some("t".into());
    config.auth_info.username = Some("u".into());
    config.auth_info.password = Some("p".into());
    assert!(matches!(Transport::builder(config).build().unwrap_err(), TransportError::TwoCredentials));
}

#[tokio::test]
async fn what_a_failing_credential_plugin_prints_stays_out_of_the_error() {
    let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
    config.auth_info.exec = Some(ExecConfig {
        command: Some("sh".to_owned()),
        args: Some(vec!["-c".to_owned(), format!("echo {SECRET}; echo {SECRET} >&2; exit 3")]),
        interactive_mode: Some(kube::config::ExecInteractiveMode::Never),
        ..ExecConfig::default()
    });
    let error = Transport::builder(config.clone()).build().unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("credential plugin failed") && !text.contains(SECRET), "{text}");
    // A caller who brings a token does not need the plugin, and it is not run.
    Transport::builder(config).bearer_token(BearerToken::fixed("t")).build().unwrap();
}

/// A server of one answer on a real socket, and the heads of the requests that came.
fn listen(answer: &'static str) -> (Uri, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let record = heads.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { break };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            record.lock().push(String::from_utf8_lossy(&head).to_ascii_lowercase());
            let _ = write!(connection, "HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        }
    });
    (format!("http://{address}/prefix").parse().unwrap(), heads)
}

/// The one test over a real connection: that kube's stack below ours is built as we say. It does not retry,
/// its own impersonation and credentials are out of the way, and the base URL is kept.
#[tokio::test]
async fn over_a_real_connection_nothing_is_retried_and_our_layers_replace_those_of_kube() {
    let (server, heads) = listen("503 Service Unavailable");
    let yaml = format!(
        r#"
apiVersion: v1
kind: Config
current-context: x
clusters: [{{ name: x, cluster: {{ server: "{server}" }} }}]
users: [{{ name: x, user: {{ token: from-config, as: alice, as-groups: [dev], as-user-extra: {{ "a/b": [c] }} }} }}]
contexts: [{{ name: x, context: {{ cluster: x, user: x }} }}]
"#
    );
    let mut config = Config::try_from(Kubeconfig::from_yaml(&yaml).unwrap()).unwrap();
    assert!(config.default_retry, "this is kube's default, and what we switch off");
    config.proxy_url = None;
    let clients = Clients::from_config(config).unwrap();
    let post = || clients.rest().group_version("v1").post().resource("nodes").json_body(&json!({}));

    let error = post().bytes().await.unwrap_err();
    assert!(error.is_service_unavailable(), "{error}");
    let error = post().impersonate(Impersonation::user("bob")).bytes().await.unwrap_err();
    assert!(error.is_service_unavailable(), "{error}");
    let error = post().header("authorization", "Bearer mine").bytes().await.unwrap_err();
    assert!(error.is_service_unavailable(), "{error}");

    let heads = heads.lock();
    assert_eq!(heads.len(), 3, "one request each, no retry: {heads:#?}");
    let has = |head: &str, line: &str| head.lines().any(|other| other == line);
    assert!(heads[0].starts_with("post /prefix/api/v1/nodes http/1.1"), "{}", heads[0]);
    for line in ["authorization: bearer from-config", "impersonate-user: alice", "impersonate-group: dev"] {
        assert!(has(&heads[0], line), "{line} in {}", heads[0]);
    }
    assert!(has(&heads[0], "impersonate-extra-a%2fb: c"), "{}", heads[0]);
    assert!(has(&heads[1], "impersonate-user: bob"), "{}", heads[1]);
    assert_eq!(heads[1].matches("impersonate-").count(), 1, "nothing of alice is left: {}", heads[1]);
    assert!(has(&heads[2], "authorization: bearer mine"), "{}", heads[2]);
    assert_eq!(heads[2].matches("authorization").count(), 1, "{}", heads[2]);
}

#[tokio::test]
async fn requests_are_counted_by_code_method_and_host_and_failures_as_errors() {
    let metrics = RestMetrics::new();
    let server = tower::service_fn(|request: Request<Body>| async move {
        match request.uri().path() {
            "/down" => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            "/none" => Ok(Response::builder().status(404).body(Body::empty()).unwrap()),
            _ => Ok(Response::new(Body::empty())),
        }
    });
    let clients = Clients::new(Transport::over(server, "default").metrics(&metrics).build().unwrap());
    for path in ["/", "/", "/none", "/down"] {
        // What becomes of the request is not the question here.
        let _ = clients.rest().get().path(path).bytes().await;
    }
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(metrics));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"rest_client_requests_total{code="200",method="GET",host="in-process"} 2"#,
        r#"rest_client_requests_total{code="404",method="GET",host="in-process"} 1"#,
        r#"rest_client_requests_total{code="<error>",method="GET",host="in-process"} 1"#,
        r#"rest_client_request_duration_seconds_count{verb="GET",host="in-process"} 4"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_host_of_a_metric_is_the_host_alone() {
    let server: Uri = "https://user:hunter22@10.0.0.1:6443/path?token=hunter22".parse().unwrap();
    let meter = format!("{:?}", RestMetrics::new().of(Some(&server)));
    assert!(meter.contains("10.0.0.1:6443") && !meter.contains(SECRET), "{meter}");
}
