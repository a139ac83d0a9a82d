//! Spans of reconciles, as a collector receives them. The program under test is this one, started again: the
//! exporter is configured by the environment, and a process has only one subscriber.
#![cfg(feature = "otel")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{convert::Infallible, process::Stdio, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use support::FakeApi;
use tokio::{net::TcpListener, sync::mpsc};

/// Set in the environment of the program under test.
const OPERATOR: &str = "KUBEWRIGHT_TEST_OPERATOR";

/// An operator without any code for tracing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator() {
    if std::env::var_os(OPERATOR).is_none() {
        return;
    }
    let api = FakeApi::new();
    api.put_config_map("default", "good", "1");
    api.put_config_map("default", "bad", "1");
    let (done, mut reconciled) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>().named("maps").reconcile(move |cx: Context<ConfigMap>| {
        let _ = done.send(());
        async move {
            match cx.key().name() {
                "bad" => Err(Error::terminal("it is beyond repair")),
                _ => Ok(Action::done()),
            }
        }
    });
    let manager = Manager::builder("otel-test").client(api.client()).controller(controller);
    let manager = manager.build().await.unwrap();
    let handle = manager.handle();
    let running = tokio::spawn(manager.run());
    for _ in 0..2 {
        reconciled.recv().await.unwrap();
    }
    handle.stop();
    running.await.unwrap().unwrap();
}

/// Runs the operator above with these variables, and returns its standard error.
async fn run_operator(variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().unwrap();
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let output = std::thread::spawn(move || {
        std::process::Command::new(program)
            .args(["--exact", "operator", "--nocapture"])
            .env(OPERATOR, "1")
            .env("KUBEWRIGHT_SERVE", "0")
            .env_remove("RUST_LOG")
            .envs(variables)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    });
    while !output.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let output = output.join().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    log
}

/// Starts a collector; returns its address and the requests that it received.
async fn collector() -> (String, mpsc::UnboundedReceiver<(Request<()>, Bytes)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let sender = sender.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let sender = sender.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let _ = sender.send((Request::from_parts(head, ()), body));
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    (address, received)
}

#[tokio::test]
async fn every_reconcile_is_a_span_with_object_id_and_trigger_and_all_are_flushed_at_the_end() {
    let (address, mut received) = collector().await;
    let log = run_operator(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
        // The level applies to the log only.
        ("RUST_LOG", "warn"),
    ])
    .await;
    assert!(log.contains("beyond repair") && !log.contains("INFO"), "{log}");

    let (request, body) = received.try_recv().expect("the operator has waited for the collector");
    assert_eq!(request.uri().path(), "/v1/traces");
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    assert_eq!(request.headers()["x-tenant"], "shop");
    let mut bodies = vec![body];
    while let Ok((_, body)) = received.try_recv() {
        bodies.push(body);
    }
    let resources: Vec<_> = bodies.iter().flat_map(|body| Message(body).all(1)).collect();
    let resource = resources[0].only(1).attributes(1);
    assert!(resource.contains(&("service.name".into(), "otel-test".into())), "{resource:?}");
    assert!(resource.contains(&("deployment.environment".into(), "test".into())), "{resource:?}");

    let spans = resources.iter().flat_map(|resource| resource.all(2)).flat_map(|scope| scope.all(2));
    let mut found = Vec::new();
    for span in spans.filter(|span| span.only(5).text() == "reconcile") {
        let attributes = span.attributes(9);
        let value = |name: &str| {
            let held = attributes.iter().find(|(held, _)| held == name);
            held.unwrap_or_else(|| panic!("no {name} in {attributes:?}")).1.clone()
        };
        assert_eq!(value("controller"), "maps");
        assert_eq!(value("trigger"), "ConfigMap listed");
        assert!(["1", "2"].contains(&&*value("id")));
        let status = span.only(15);
        found.push((value("object"), value("result"), status.number(3), status.only(2).text()));
    }
    found.sort();
    assert_eq!(
        found,
        [
            ("default/bad".to_owned(), "error".to_owned(), 2, "it is beyond repair".to_owned()),
            ("default/good".to_owned(), "success".to_owned(), 0, String::new()),
        ]
    );
}

#[tokio::test]
async fn without_a_collector_nothing_is_exported_and_an_invalid_one_is_only_logged() {
    let log = run_operator(&[]).await;
    assert!(log.contains("controller started") && !log.contains("export"), "{log}");
    let log = run_operator(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address")]).await;
    assert!(log.contains("spans are not exported") && log.contains("OTEL_EXPORTER_OTLP"), "{log}");
    let log = run_operator(&[("RUST_LOG", "info,kubewright=loud")]).await;
    assert!(log.contains("RUST_LOG is not understood") && log.contains("controller started"), "{log}");
}

/// A protobuf message, as far as this test needs it.
#[derive(Clone, Copy)]
struct Message<'a>(&'a [u8]);

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn fields(self) -> impl Iterator<Item = (u64, Field<'a>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let tag = varint(&mut rest);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut rest)),
                1 => Field::Bytes(take(&mut rest, 8)),
                2 => {
                    let length = varint(&mut rest);
                    Field::Bytes(take(&mut rest, usize::try_from(length).unwrap()))
                }
                5 => Field::Bytes(take(&mut rest, 4)),
                other => panic!("wire type {other}"),
            };
            Some((tag >> 3, field))
        })
    }

    fn all(self, number: u64) -> impl Iterator<Item = Message<'a>> {
        self.fields().filter_map(move |(held, field)| match field {
            Field::Bytes(bytes) if held == number => Some(Message(bytes)),
            _ => None,
        })
    }

    fn only(self, number: u64) -> Message<'a> {
        self.all(number).next().unwrap_or(Message(&[]))
    }

    fn number(self, number: u64) -> u64 {
        let found = self.fields().find_map(|(held, field)| match field {
            Field::Number(value) if held == number => Some(value),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn text(self) -> String {
        String::from_utf8(self.0.to_vec()).unwrap()
    }

    /// Returns keys and values, numbers as text.
    fn attributes(self, number: u64) -> Vec<(String, String)> {
        let attribute = |pair: Message<'_>| {
            let value = pair.only(2);
            let text = value.all(1).next().map(Message::text);
            (pair.only(1).text(), text.unwrap_or_else(|| value.number(3).to_string()))
        };
        self.all(number).map(attribute).collect()
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(length);
    *rest = left;
    taken
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(rest, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
