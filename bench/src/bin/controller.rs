//! Controller from its events to its last reconcile. Prints one JSON line per workload; name workloads to run only
//! those.
//!
//! - `overhead`: an empty reconciler, 8 workers, every one of 100,000 cached objects asked for ten times.
//! - `start`: 100,000 objects listed and reconciled by an empty reconciler; memory before and after.
//! - `overtaking`: the same with a reconciler that takes 100 µs of a processor, and a live change every 5 ms: how long
//!   these wait.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};
use kubewright::{
    controller::{Controller, Requests, source},
    manager::ManagerHandle,
    prelude::*,
};
use kubewright_bench::{
    report::{Report, resident_bytes},
    serve::framed,
};

const WORKLOADS: [&str; 3] = ["overhead", "start", "overtaking"];
const OBJECTS: usize = 100_000;
const ROUNDS: usize = 10;
const WORKERS: usize = 8;
/// Number of keys between two yields, as with tokio's cooperative budget.
const BUDGET: usize = 128;

#[tokio::main]
async fn main() -> Result<()> {
    let mut workloads: Vec<String> = std::env::args().skip(1).collect();
    if workloads.is_empty() {
        workloads = WORKLOADS.map(Into::into).to_vec();
    }
    for workload in workloads {
        match workload.as_str() {
            "overhead" => overhead().await?,
            "start" => start().await?,
            "overtaking" => overtaking().await?,
            other => return Err(Error::message(format!("no workload {other:?}"))),
        }
    }
    Ok(())
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced(&format!("namespace-{}", number % 100), &format!("object-{number}"))
}

fn object(number: usize, version: usize) -> String {
    let key = key(number);
    format!(
        r#"{{"metadata":{{"name":"{}","namespace":"{}","uid":"uid-{number}","resourceVersion":"{version}"}},"data":{{"value":"{version}"}}}}"#,
        key.name(),
        key.namespace().unwrap_or_default(),
    )
}

/// Server with this many objects, and the sender of its watch events.
fn server() -> (Client, mpsc::UnboundedSender<Bytes>) {
    let (changes, watch) = mpsc::unbounded();
    let watch = Arc::new(std::sync::Mutex::new(Some(watch)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let body: UnsyncBoxBody<Bytes, Infallible> = if query.contains("sendInitialEvents") {
            // As servers before 1.32: a list, then a watch.
            let mut refused = Response::new(StreamBody::new(futures::stream::empty()).boxed_unsync());
            *refused.status_mut() = http::StatusCode::UNPROCESSABLE_ENTITY;
            return std::future::ready(Ok::<_, Infallible>(refused));
        } else if query.contains("watch=") {
            let changes = watch.lock().ok().and_then(|mut watch| watch.take());
            let changes = changes.into_iter().map(|changes| changes.map(Frame::data).map(Ok));
            StreamBody::new(futures::stream::iter(changes).flatten().chain(futures::stream::pending()))
                .boxed_unsync()
        } else {
            let items = (0..OBJECTS).map(|number| {
                let comma = if number > 0 { "," } else { "" };
                format!("{comma}{}", object(number, number + 1))
            });
            let head = format!(
                r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{OBJECTS}"}},"items":["#
            );
            let text = std::iter::once(head).chain(items).chain(std::iter::once("]}".to_owned()));
            StreamBody::new(futures::stream::iter(framed(text)).map(Frame::data).map(Ok)).boxed_unsync()
        };
        std::future::ready(Ok(Response::new(body)))
    });
    (Client::new(service, "default"), changes)
}

async fn run(client: Client, controller: Controller) -> Result<ManagerHandle> {
    let manager =
        Manager::builder("bench").client(client).signals(false).controller(controller).build().await?;
    let handle = manager.handle();
    tokio::spawn(manager.run());
    Ok(handle)
}

/// Counts reconciles, and notifies at the expected number.
#[derive(Clone, Default)]
struct Count(Arc<(AtomicUsize, tokio::sync::Notify)>);

impl Count {
    fn one(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }

    async fn reaches(&self, wanted: usize) {
        while self.0.0.load(Ordering::Relaxed) < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn counting(count: &Count) -> impl Reconciler<ConfigMap> {
    let count = count.clone();
    move |_: Context<ConfigMap>| {
        count.one();
        std::future::ready(Ok(Action::done()))
    }
}

async fn overhead() -> Result<()> {
    let (client, _changes) = server();
    let count = Count::default();
    let go = Arc::new(tokio::sync::Notify::new());
    let events = {
        let go = Arc::clone(&go);
        source::function("events", move |requests: Requests| async move {
            let keys: Vec<ObjectKey> = (0..OBJECTS).map(key).collect();
            go.notified().await;
            for _ in 0..ROUNDS {
                for keys in keys.chunks(BUDGET) {
                    for key in keys {
                        requests.add(key.clone());
                    }
                    tokio::task::yield_now().await;
                }
            }
        })
    };
    let controller =
        Controller::of::<ConfigMap>().workers(WORKERS).source(events).reconcile(counting(&count));
    let handle = run(client, controller).await?;
    count.reaches(OBJECTS).await;
    let before = count.0.0.load(Ordering::Relaxed);
    let report = Report::start("controller-overhead", "kubewright", None);
    go.notify_one();
    // Keys that are added again before a worker comes are one: wait until no more come.
    let mut done = before;
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = count.0.0.load(Ordering::Relaxed);
        if now == done && now > before {
            break;
        }
        done = now;
    }
    report.finish(done - before);
    handle.stop();
    Ok(())
}

async fn start() -> Result<()> {
    let (client, _changes) = server();
    let count = Count::default();
    let before = resident_bytes();
    let report = Report::start("controller-start", "kubewright", None);
    let handle =
        run(client, Controller::of::<ConfigMap>().workers(WORKERS).reconcile(counting(&count))).await?;
    let mut peak = 0;
    while count.0.0.load(Ordering::Relaxed) < OBJECTS {
        peak = resident_bytes().max(peak);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let after = resident_bytes();
    report
        .with("peak_bytes_each", peak.saturating_sub(before), OBJECTS)
        .with("resident_bytes_each", after.saturating_sub(before), OBJECTS)
        .finish(OBJECTS);
    handle.stop();
    Ok(())
}

/// Changes that have not been reconciled yet.
type Sent = Arc<std::sync::Mutex<HashMap<ObjectKey, (u64, Instant)>>>;

async fn overtaking() -> Result<()> {
    let (client, changes) = server();
    let (count, sent) = (Count::default(), Sent::default());
    let waits: Arc<std::sync::Mutex<Vec<Duration>>> = Arc::default();
    let reconciler = {
        let (count, sent, waits) = (count.clone(), Arc::clone(&sent), Arc::clone(&waits));
        move |cx: Context<ConfigMap>| {
            let began = Instant::now();
            let version = cx.handle().and_then(kubewright::cache::Lazy::version).unwrap_or(0);
            if version > OBJECTS as u64
                && let (Ok(mut sent), Ok(mut waits)) = (sent.lock(), waits.lock())
                && let Some((_, since)) = sent.remove(cx.key())
            {
                waits.push(since.elapsed());
            }
            while began.elapsed() < Duration::from_micros(100) {
                std::hint::spin_loop();
            }
            count.one();
            std::future::ready(Ok(Action::done()))
        }
    };
    let report = Report::start("controller-overtaking", "kubewright", None);
    let handle = run(client, Controller::of::<ConfigMap>().workers(WORKERS).reconcile(reconciler)).await?;
    count.reaches(1).await;
    let mut changed = 0;
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    while count.0.0.load(Ordering::Relaxed) < OBJECTS {
        ticks.tick().await;
        // From the end of the list: what the backlog would come to last.
        let number = OBJECTS - 1 - changed;
        let version = OBJECTS + 1 + changed;
        if let Ok(mut sent) = sent.lock() {
            sent.insert(key(number), (version as u64, Instant::now()));
        }
        let line = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", object(number, version));
        if changes.unbounded_send(Bytes::from(line)).is_err() {
            return Err(Error::message("nobody watches"));
        }
        changed += 1;
    }
    let mut waits = waits.lock().map(|mut waits| std::mem::take(&mut *waits)).unwrap_or_default();
    waits.sort();
    let micros = |share: usize| {
        let at = (waits.len() * share / 1000).min(waits.len().saturating_sub(1));
        waits.get(at).map_or(0, |wait| u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
    };
    report
        .with("live_changes", waits.len() as u64, 1)
        .with("wait_p50_us", micros(500), 1)
        .with("wait_p99_us", micros(990), 1)
        .with("wait_max_us", micros(1000), 1)
        .finish(OBJECTS);
    handle.stop();
    Ok(())
}
