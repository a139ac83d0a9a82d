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

use super::super::{Builder, ElectionMetrics, LeaderElection, Term};
use kubewright_core::{Clock, Random};

/// The server: one Lease, optimistic concurrency, and a list of all terms that ever began.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    lease: Option<Value>,
    terms: Vec<(String, Term)>,
    acts: Vec<(Duration, String)>,
    requests: Vec<String>,
    start: Option<Instant>,
}

/// A machine: its clock, its network, and whether it runs at all.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) name: String,
    server: Server,
    state: Arc<Mutex<MachineState>>,
}

pub(super) struct MachineState {
    /// How wrong the time of day is here.
    pub(super) skew: SignedDuration,
    /// The time of day stands still at this.
    pub(super) frozen: Option<Timestamp>,
    /// Until when the process does not run.
    paused_until: Instant,
    /// Until when nothing gets through.
    cut_until: Instant,
    /// Until when requests arrive and answers do not.
    deaf_until: Instant,
    /// Until when the server has trouble with us.
    refused_until: Instant,
    /// The longest that one way takes.
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
                deaf_until: now,
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

    /// Somebody else writes the Lease.
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

    /// Somebody changes a label, and with it the version.
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

    /// A term has begun.
    pub(super) fn began(&self, who: &str, term: Term) {
        self.0.lock().terms.push((who.to_owned(), term));
        self.check();
    }

    /// Whoever acts must be alone.
    pub(super) fn act(&self, who: &str) {
        self.check();
        let mut state = self.0.lock();
        let at = state.start.unwrap().elapsed();
        state.acts.push((at, who.to_owned()));
    }

    /// At no moment do two hold, running or not.
    pub(super) fn check(&self) {
        let state = self.0.lock();
        let holding: Vec<&str> =
            state.terms.iter().filter(|(_, term)| term.holds()).map(|(who, _)| &**who).collect();
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
            // As the real one: a write that changes nothing leaves the version alone.
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

    pub(super) fn deafen(&self, duration: Duration) {
        self.change(|state| state.deaf_until = Instant::now() + duration);
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
                // What is on its way arrives, even if whoever sent it has lost patience.
                let trip =
                    tokio::spawn(async move { machine.trip(&parts.method, parts.uri.path(), &body).await });
                let (code, value) = trip.await.map_err(std::io::Error::other)?;
                let body = Body::from(value.to_string().into_bytes());
                Response::builder().status(code).body(body).map_err(std::io::Error::other)
            }
        });
        Client::new(service, "shop")
    }

    /// There, and back.
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
            state.cut_until.max(state.deaf_until)
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

    pub(super) fn election(&self) -> Builder {
        let seed = self.name.bytes().map(u64::from).sum();
        LeaderElection::builder(self.client(), "work")
            .identity(self.name.clone())
            .clock(self.clock())
            .random(Random::seeded(seed))
            .metrics(&ElectionMetrics::new())
    }

    /// Runs something on this machine: it stands still while the machine does.
    pub(super) fn run<T>(&self, work: impl Future<Output = T> + Send + 'static) -> Gated<T> {
        Gated { machine: self.clone(), work: Box::pin(work), wake: None }
    }

    /// Stands for election over and over, and acts every 200 ms while it holds. Gives each term back after a
    /// while.
    pub(super) async fn operate(self, patience: Duration) {
        let election = self.election().build().unwrap();
        loop {
            let (leadership, renewing) = election.campaign().await;
            let term = leadership.term();
            self.server.began(&self.name, term.clone());
            let work = async {
                let begun = Instant::now();
                while begun.elapsed() < patience {
                    if term.holds() {
                        self.server.act(&self.name);
                    }
                    tokio::select! {
                        biased;
                        () = term.ended() => break,
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
