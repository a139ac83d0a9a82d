//! Load test of many concurrent watchers and writers: watchers that read get all events, slow ones expire
//! without blocking others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::{
    ApiServer,
    authn::{MASTERS, User},
    http::{ApiBody, ApiService},
};
use kubewright_storage::Retention;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt;

#[derive(Clone, Copy)]
struct Load {
    watchers: usize,
    /// Every n-th watcher does not read until all writes are done.
    slow: usize,
    writers: usize,
    objects: usize,
    namespaces: usize,
    history: usize,
}

async fn send(service: &ApiService, request: Request<Full<Bytes>>) -> (u16, ApiBody) {
    let response = service.clone().oneshot(request).await.unwrap();
    (response.status().as_u16(), response.into_body())
}

async fn read(body: ApiBody) -> Value {
    serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
}

fn post(path: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("content-type", "application/json")
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

/// Lines of a watch.
struct Lines {
    body: ApiBody,
    text: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if self.text.ends_with(b"\n") {
                let line = std::mem::take(&mut self.text);
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.text.extend_from_slice(self.body.frame().await?.unwrap().data_ref().unwrap());
        }
    }
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

async fn watch(service: &ApiService, namespace: usize, from: u64) -> Lines {
    let path = format!("/api/v1/namespaces/ns-{namespace}/configmaps?watch=true&resourceVersion={from}");
    let (code, body) = send(service, Request::get(path).body(Full::default()).unwrap()).await;
    assert_eq!(code, 200);
    Lines { body, text: Vec::new() }
}

/// Reads until it has seen `objects` objects, relisting when it was too slow; returns the number of relists.
async fn follow(service: ApiService, namespace: usize, mut from: u64, objects: usize) -> usize {
    let (mut seen, mut cut_off) = (0, 0);
    let mut lines = watch(&service, namespace, from).await;
    while seen < objects {
        let line = lines.next().await.unwrap();
        if line["type"] == "ADDED" {
            assert!(version(&line["object"]) > from, "out of order or twice");
            from = version(&line["object"]);
            seen += 1;
            continue;
        }
        assert_eq!(line["object"]["code"], 410, "{line}");
        assert!(lines.next().await.is_none(), "something after the end");
        cut_off += 1;
        let path = format!("/api/v1/namespaces/ns-{namespace}/configmaps");
        let list = read(send(&service, Request::get(path).body(Full::default()).unwrap()).await.1).await;
        seen = list["items"].as_array().unwrap().len();
        from = version(&list);
        lines = watch(&service, namespace, from).await;
    }
    assert_eq!(seen, objects);
    cut_off
}

/// Runs the load; returns how often a reading watcher expired.
async fn run(load: Load) -> usize {
    let retention = Retention::default().with_events(load.history);
    let server = ApiServer::builder().seed(1).retention(retention).in_process().unwrap();
    let admin = User { name: "a".into(), groups: vec![MASTERS.into()], ..User::default() };
    let service = server.service().for_peer(admin);
    for n in 0..load.namespaces {
        let namespace = json!({"metadata": {"name": format!("ns-{n}")}});
        assert_eq!(send(&service, post("/api/v1/namespaces", &namespace)).await.0, 201);
    }
    let path = "/api/v1/configmaps";
    let start =
        version(&read(send(&service, Request::get(path).body(Full::default()).unwrap()).await.1).await);

    let each = load.objects / load.namespaces;
    let (mut fast, mut slow) = (JoinSet::new(), Vec::new());
    for watcher in 0..load.watchers {
        let namespace = watcher % load.namespaces;
        if watcher % load.slow == 0 {
            slow.push(watch(&service, namespace, start).await);
        } else {
            fast.spawn(follow(service.clone(), namespace, start, each));
        }
    }
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..load.writers {
        let (service, next) = (service.clone(), Arc::clone(&next));
        writers.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= load.objects {
                    break;
                }
                let path = format!("/api/v1/namespaces/ns-{}/configmaps", n % load.namespaces);
                let map = json!({"metadata": {"name": format!("m{n}")}, "data": {"k": "v".repeat(100)}});
                assert_eq!(send(&service, post(&path, &map)).await.0, 201);
                // Yields, as a connection does between two requests.
                tokio::task::yield_now().await;
            }
        });
    }
    writers.join_all().await;
    let cut_off = fast.join_all().await.into_iter().sum();
    for mut lines in slow {
        let first = lines.next().await.unwrap();
        assert_eq!((&first["type"], &first["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert!(lines.next().await.is_none());
    }
    cut_off
}

#[tokio::test]
async fn readers_get_all_events_and_slow_watchers_expire_without_blocking_others() {
    let load = Load { watchers: 60, slow: 6, writers: 20, objects: 1200, namespaces: 6, history: 400 };
    assert_eq!(run(load).await, 0);
}

#[tokio::test]
async fn readers_that_fall_behind_relist_and_miss_nothing() {
    // The history is shorter than the number of writes while a watcher is scheduled.
    let load = Load { watchers: 12, slow: 6, writers: 20, objects: 600, namespaces: 2, history: 8 };
    assert!(run(load).await > 0);
}

#[ignore = "sized for a release build, where it takes ten seconds: `make load`"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_two_hundred_writers_and_a_hundred_thousand_objects() {
    let load =
        Load { watchers: 1000, slow: 10, writers: 200, objects: 100_000, namespaces: 100, history: 10_000 };
    let began = std::time::Instant::now();
    let cut_off = run(load).await;
    eprintln!("{:?}; {cut_off} times a watcher that reads was cut off and listed again", began.elapsed());
}
