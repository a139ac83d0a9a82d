//! Server that stores events, with injected faults.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use indexmap::IndexMap;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::{EventBroadcaster, EventBroadcasterBuilder, EventMetrics};
use kubewright_core::{Clock, Random};

#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    events: IndexMap<String, Value>,
    requests: Vec<(Duration, String)>,
    faults: VecDeque<Fault>,
    start: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    Refuse(Value),
    Reset,
    /// Written, but the response is lost.
    LoseResponse,
}

impl Fault {
    pub(super) fn code(code: u16, reason: &str) -> Self {
        Self::Refuse(
            json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}),
        )
    }
}

impl Server {
    pub(super) fn new() -> Self {
        let server = Self::default();
        server.0.lock().start = Some(Instant::now());
        server
    }

    pub(super) fn inject(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().faults.extend(faults);
    }

    pub(super) fn events(&self) -> Vec<Value> {
        self.0.lock().events.values().cloned().collect()
    }

    /// `message xCount`, as `kubectl describe` shows it.
    pub(super) fn shown(&self) -> Vec<String> {
        let line = |event: &Value| format!("{} x{}", event["message"].as_str().unwrap(), event["count"]);
        self.events().iter().map(line).collect()
    }

    pub(super) fn clear(&self) {
        self.0.lock().events.clear();
    }

    /// Requests with their time since the start.
    pub(super) fn requests(&self) -> Vec<(Duration, String)> {
        self.0.lock().requests.clone()
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
                let (code, answer) = match server.answer(&parts.method, parts.uri.path(), &body) {
                    Ok(answer) => answer,
                    Err(Fault::Reset) => return Err(std::io::ErrorKind::ConnectionReset.into()),
                    Err(_) => std::future::pending().await,
                };
                let body = Body::from(answer.to_string().into_bytes());
                Response::builder().status(code).body(body).map_err(std::io::Error::other)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Result<(u16, Value), Fault> {
        let mut state = self.0.lock();
        let at = state.start.unwrap().elapsed();
        state.requests.push((at, format!("{method} {path}")));
        let lose_response = match state.faults.pop_front() {
            Some(Fault::Refuse(status)) => {
                return Ok((u16::try_from(status["code"].as_u64().unwrap()).unwrap(), status));
            }
            Some(Fault::Reset) => return Err(Fault::Reset),
            Some(Fault::LoseResponse) => true,
            None => false,
        };
        let given: Value = serde_json::from_slice(body).unwrap();
        let refused = |code: u16, reason: &str| {
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
            Ok((code, status))
        };
        let answer = if *method == Method::POST {
            let name = given["metadata"]["name"].as_str().unwrap().to_owned();
            if state.events.contains_key(&name) {
                return refused(409, "AlreadyExists");
            }
            state.events.insert(name, given.clone());
            given
        } else {
            let name = path.rsplit('/').next().unwrap();
            let Some(event) = state.events.get_mut(name) else { return refused(404, "NotFound") };
            for (key, value) in given.as_object().unwrap() {
                event[key] = value.clone();
            }
            event.clone()
        };
        if lose_response { Err(Fault::LoseResponse) } else { Ok((200, answer)) }
    }

    pub(super) fn broadcaster(&self) -> EventBroadcasterBuilder {
        EventBroadcaster::builder(self.client())
            .clock(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()))
            .random(Random::seeded(1))
            .metrics(&EventMetrics::new())
    }
}

pub(super) fn pod(name: &str) -> Pod {
    serde_json::from_value(
        json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")}}),
    )
    .unwrap()
}

/// Lets the writer run without advancing time.
pub(super) async fn run_writer() {
    sleep(Duration::from_nanos(1)).await;
}

pub(super) fn scrape(metrics: &EventMetrics) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics.clone()));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}
