//! A server with one Lease, machines with clocks of their own, and the network between them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep};

use super::super::{ElectionMetrics, LeaderElection, LeaderElectionBuilder, LeadershipHandle};
use kubewright_core::{Clock, Random};

/// Server with one Lease, optimistic concurrency, and a list of all leaderships.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    lease: Option<Value>,
    handles: Vec<(String, LeadershipHandle)>,
    acts: Vec<(Duration, String)>,
    requests: Vec<String>,
    start: Option<Instant>,
}

/// Machine with a clock and a network.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) name: String,
    server: Server,
    state: Arc<Mutex<MachineState>>,
}

pub(super) struct MachineState {
    /// Offset of the wall clock.
    pub(super) skew: SignedDuration,
    /// Time at which the wall clock is stopped.
    pub(super) frozen: Option<Timestamp>,
    /// Until when the process is suspended.
    paused_until: Instant,
    /// Until when the network is partitioned.
    cut_until: Instant,
    /// Until when responses are lost.
    responses_lost_until: Instant,
    /// Until when the server answers with errors.
    refused_until: Instant,
    /// The longest one-way latency.
    slowness: Duration,
    random: Random,
}

fn epoch() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl Server {
    pub(super) fn new() -> Self {
        let server = Self::default();
        server.0.lock().start = Some(Instant::now());
        server
    }

    pub(super) fn machine(&self, name: &str) -> Machine {
        let now = Instant::now();
        Machine {
            name: name.to_owned(),
            server: self.clone(),
            state: Arc::new(Mutex::new(MachineState {
                skew: SignedDuration::ZERO,
                frozen: None,
                paused_until: now,
                cut_until: now,
                responses_lost_until: now,
                refused_until: now,
                slowness: Duration::ZERO,
                random: Random::seeded(name.bytes().map(u64::from).sum()),
            })),
        }
    }

    pub(super) fn lease(&self) -> Value {
        self.0.lock().lease.clone().unwrap_or(Value::Null)
    }

    pub(super) fn holder(&self) -> String {
        self.lease()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Writes the Lease as another client.
    pub(super) fn put(&self, spec: &Value) {
        let mut state = self.0.lock();
        state.version += 1;
        let version = state.version.to_string();
        state.lease = Some(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "work", "namespace": "shop", "resourceVersion": version},
            "spec": spec,
        }));
    }

    /// Changes a label, and with it the resource version.
    pub(super) fn label(&self) {
        let mut state = self.0.lock();
        state.version += 1;
        let version = state.version;
        if let Some(lease) = &mut state.lease {
            lease["metadata"]["resourceVersion"] = json!(version.to_string());
            lease["metadata"]["labels"] = json!({"touched": version.to_string()});
        }
    }

    pub(super) fn delete(&self) {
        self.0.lock().lease = None;
    }

    /// Notes that a candidate leads.
    pub(super) fn began(&self, who: &str, handle: LeadershipHandle) {
        self.0.lock().handles.push((who.to_owned(), handle));
        self.check();
    }

    /// Notes an action of a leader, which must be the only one.
    pub(super) fn act(&self, who: &str) {
        self.check();
        let mut state = self.0.lock();
        let at = state.start.unwrap().elapsed();
        state.acts.push((at, who.to_owned()));
    }

    /// Checks that no two machines lead, running or suspended.
    pub(super) fn check(&self) {
        let state = self.0.lock();
        let holding: Vec<&str> =
            state.handles.iter().filter(|(_, handle)| handle.is_leader()).map(|(who, _)| &**who).collect();
        assert!(
            holding.len() < 2,
            "{holding:?} lead at the same time, after {:?}",
            state.start.unwrap().elapsed()
        );
    }

    pub(super) fn acts(&self) -> Vec<(Duration, String)> {
        self.0.lock().acts.clone()
    }

    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().requests)
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
        self.check();
        let mut state = self.0.lock();
        state.requests.push(format!("{method} {path}"));
        let refused = |code: u16, reason: &str| {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                "message": reason,
            });
            (StatusCode::from_u16(code).unwrap(), status)
        };
        if *method == Method::GET {
            return match &state.lease {
                Some(lease) => (StatusCode::OK, lease.clone()),
                None => refused(404, "NotFound"),
            };
        }
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        let (held, given) = (
            state.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone()),
            lease["metadata"]["resourceVersion"].clone(),
        );
        match (method, held) {
            (&Method::POST, Some(_)) => return refused(409, "AlreadyExists"),
            (&Method::PUT, None) => return refused(404, "NotFound"),
            (&Method::PUT, Some(held)) if held != given => return refused(409, "Conflict"),
            // As in kube-apiserver, an update without changes keeps the resource version.
            (&Method::PUT, Some(_)) if state.lease.as_ref() == Some(&lease) => {
                return (StatusCode::OK, lease);
            }
            _ => {}
        }
        state.version += 1;
        lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.lease = Some(lease.clone());
        (StatusCode::OK, lease)
    }
}

impl Machine {
    pub(super) fn change(&self, change: impl FnOnce(&mut MachineState)) {
        change(&mut self.state.lock());
    }

    pub(super) fn pause(&self, duration: Duration) {
        self.change(|state| state.paused_until = Instant::now() + duration);
    }

    pub(super) fn cut_off(&self, duration: Duration) {
        self.change(|state| state.cut_until = Instant::now() + duration);
    }

    pub(super) fn lose_responses(&self, duration: Duration) {
        self.change(|state| state.responses_lost_until = Instant::now() + duration);
    }

    pub(super) fn refuse(&self, duration: Duration) {
        self.change(|state| state.refused_until = Instant::now() + duration);
    }

    pub(super) fn slow_down(&self, longest: Duration) {
        self.change(|state| state.slowness = longest);
    }

    pub(super) fn clock(&self) -> Clock {
        let (state, real) = (Arc::clone(&self.state), Clock::starting_at(epoch()));
        Clock::new(move || {
            let state = state.lock();
            state.frozen.unwrap_or_else(|| real.now() + state.skew)
        })
    }

    pub(super) fn client(&self) -> Client {
        let machine = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let machine = machine.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
                // Requests in flight arrive even if the client has timed out.
                let trip =
                    tokio::spawn(async move { machine.trip(&parts.method, parts.uri.path(), &body).await });
                let (code, value) = trip.await.map_err(std::io::Error::other)?;
                let body = Body::from(value.to_string().into_bytes());
                Response::builder().status(code).body(body).map_err(std::io::Error::other)
            }
        });
        Client::new(service, "shop")
    }

    /// Latency of request and response.
    async fn trip(&self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
        self.way().await;
        if self.state.lock().cut_until > Instant::now() {
            std::future::pending::<()>().await;
        }
        if self.state.lock().refused_until > Instant::now() {
            return (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({"kind": "Status", "code": 500, "message": "planned"}),
            );
        }
        let answer = self.server.answer(method, path, body);
        self.way().await;
        let silent_until = {
            let state = self.state.lock();
            state.cut_until.max(state.responses_lost_until)
        };
        if silent_until > Instant::now() {
            std::future::pending::<()>().await;
        }
        answer
    }

    async fn way(&self) {
        let duration = {
            let state = self.state.lock();
            state.slowness.mul_f64(state.random.unit())
        };
        if !duration.is_zero() {
            sleep(duration).await;
        }
    }

    pub(super) fn election(&self) -> LeaderElectionBuilder {
        let seed = self.name.bytes().map(u64::from).sum();
        LeaderElection::builder(self.client(), "work")
            .identity(self.name.clone())
            .clock(self.clock())
            .random(Random::seeded(seed))
            .metrics(&ElectionMetrics::new())
    }

    /// Runs a future on this machine: it is not polled while the machine is suspended.
    pub(super) fn run<T>(&self, work: impl Future<Output = T> + Send + 'static) -> Gated<T> {
        Gated { machine: self.clone(), work: Box::pin(work), wake: None }
    }

    /// Acquires the lease over and over, acts every 200 ms while leading, and releases it after a while.
    pub(super) async fn operate(self, lead_for: Duration) {
        let election = self.election().build().unwrap();
        loop {
            let (leadership, renewing) = election.acquire_unspawned().await;
            let handle = leadership.handle();
            self.server.began(&self.name, handle.clone());
            let work = async {
                let begun = Instant::now();
                while begun.elapsed() < lead_for {
                    if handle.is_leader() {
                        self.server.act(&self.name);
                    }
                    tokio::select! {
                        biased;
                        () = handle.ended() => break,
                        () = sleep(Duration::from_millis(200)) => {}
                    }
                }
                drop(leadership);
            };
            futures::future::join(renewing.run(), work).await;
        }
    }
}

pub(super) struct Gated<T> {
    machine: Machine,
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    wake: Option<Pin<Box<Sleep>>>,
}

impl<T> Future for Gated<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let paused = self.machine.state.lock().paused_until;
        if paused > Instant::now() {
            let mut wake = Box::pin(tokio::time::sleep_until(paused));
            if wake.as_mut().poll(cx).is_pending() {
                self.wake = Some(wake);
                return Poll::Pending;
            }
        }
        self.wake = None;
        self.work.as_mut().poll(cx)
    }
}
