//! Workloads of API servers over TLS, ours and a real one. One JSON line per workload.
//!
//! `compare servers ours|real [--starts N] [--creates N] [--lists N] [--changes N]`. Ours is the `kubewright` program that lies
//! beside this one; real is etcd (without fsync, as envtest runs it) and kube-apiserver.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright_envtest::{Binaries, ControlPlane};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    arguments::Arguments,
    load::Load,
    measure::{Line, cpu_of, memory_of},
    objects::Kind,
};

const IN_FLIGHT: usize = 64;
const WATCHERS: usize = 1000;
const LISTED: usize = 1000;

/// Runs every workload against one server.
pub async fn run(which: &str, arguments: &Arguments) {
    start(which, arguments.get("starts", 5)).await;
    let server = Server::start(which).await;
    create(&server, arguments.get("creates", 5_000)).await;
    list(&server, arguments.get("lists", 50)).await;
    fan_out(&server, arguments.get("changes", 10)).await;
    server.stop().await;
}

enum Server {
    Ours(Box<Child>, Box<Config>),
    Real(Box<ControlPlane>),
}

impl Server {
    async fn start(which: &str) -> Self {
        match which {
            "ours" => {
                let program =
                    std::env::current_exe().expect("this program is a file").with_file_name("kubewright");
                let kubeconfig =
                    tempfile::NamedTempFile::new().expect("there is room for a file").into_temp_path();
                let mut child = Command::new(program)
                    .args(["up", "--bind", "127.0.0.1:0", "--kubeconfig-out"])
                    .arg(&kubeconfig)
                    .stdout(Stdio::piped())
                    .kill_on_drop(true)
                    .spawn()
                    .expect("the kubewright program lies beside this one");
                let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
                let line = lines.next_line().await.expect("it says when it is ready").unwrap_or_default();
                assert!(line.contains("ready"), "it did not start");
                let config = Kubeconfig::read_from(&kubeconfig).expect("it was written before the line");
                let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
                Self::Ours(Box::new(child), Box::new(config.expect("it is a good one")))
            }
            "real" => {
                let binaries = Binaries::find().expect("`make real` has built them");
                Self::Real(Box::new(ControlPlane::builder().start(&binaries).await.expect("it starts")))
            }
            _ => panic!("usage: compare servers ours|real"),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Ours(..) => "kubewright",
            Self::Real(..) => "kube-apiserver + etcd",
        }
    }

    fn config(&self) -> Config {
        match self {
            Self::Ours(_, config) => config.as_ref().clone(),
            Self::Real(plane) => plane.config(),
        }
    }

    fn client(&self) -> Client {
        Client::try_from(self.config()).expect("it is a good configuration")
    }

    fn processes(&self) -> Vec<u32> {
        match self {
            Self::Ours(child, ..) => child.id().into_iter().collect(),
            Self::Real(plane) => plane.processes().map(|(_, process)| process).collect(),
        }
    }

    fn resident(&self) -> u64 {
        self.processes().iter().map(|process| memory_of(&process.to_string()).0).sum()
    }

    fn cpu(&self) -> f64 {
        self.processes().iter().map(|process| cpu_of(*process)).sum()
    }

    async fn stop(self) {
        if let Self::Ours(mut child, ..) = self {
            let _ = child.kill().await;
        }
    }
}

/// Starts the server until its first response, and measures its memory.
async fn start(which: &str, starts: usize) {
    let mut walls = Vec::new();
    let (mut resident, mut cpu) = (Vec::new(), Vec::new());
    let mut name = "";
    // The first start reads the programs from disk.
    Server::start(which).await.stop().await;
    for _ in 0..starts {
        let began = Instant::now();
        let server = Server::start(which).await;
        server.client().apiserver_version().await.expect("it answers");
        walls.push(began.elapsed().as_secs_f64());
        tokio::time::sleep(Duration::from_millis(500)).await;
        resident.push(server.resident());
        cpu.push(server.cpu());
        name = server.name();
        server.stop().await;
    }
    walls.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    resident.sort_unstable();
    let line = Line::default().with("n", starts).with("wall_s", walls[starts / 2]);
    line.with("cpu_s", cpu[starts / 2])
        .with("steady_bytes", resident[starts / 2])
        .print("server: start to ready", name);
}

async fn send(client: &Client, request: Request<Bytes>) {
    let response = client.send(request.map(Body::from)).await.expect("the server answers");
    let status = response.status();
    let body = response.into_body().collect().await.expect("it comes whole").to_bytes();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
}

fn post(path: &str, body: &Value) -> Request<Bytes> {
    let request = Request::post(path).header("content-type", "application/json");
    request.body(body.to_string().into()).expect("the path is one")
}

/// Returns the request that creates Pod `i`.
fn pod(i: usize, namespace: &str) -> Request<Bytes> {
    let mut pod = Kind::Pods.object(i);
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("status");
    }
    let metadata = pod["metadata"].as_object_mut().expect("a pod has metadata");
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    metadata.insert("namespace".to_owned(), namespace.into());
    post(&format!("/api/v1/namespaces/{namespace}/pods"), &pod)
}

/// Creates Pods on 64 connections, and measures the memory per Pod.
async fn create(server: &Server, count: usize) {
    let mut load = Load::connect(&server.config(), IN_FLIGHT).await;
    let namespaces = (0..50).map(|n| format!("team-{n}")).chain(["listed".to_owned(), "watched".to_owned()]);
    let namespaces = namespaces.map(|name| post("/api/v1/namespaces", &json!({"metadata": {"name": name}})));
    load.send_all(namespaces.collect()).await;
    // Warms the server up.
    load.send_all((0..LISTED).map(|i| pod(i, "listed")).collect()).await;
    let requests = (0..count).map(|i| pod(i, &format!("team-{}", i % 50))).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (resident, cpu, began) = (server.resident(), server.cpu(), Instant::now());
    load.send_all(requests).await;
    let wall = began.elapsed();
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let cpu_each = (server.cpu() - cpu) * 1e6 / count as f64;
    Line::default()
        .timed(count, wall)
        .with("server_cpu_us_each", cpu_each)
        .print("server: create a Pod", server.name());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let grown = server.resident().saturating_sub(resident);
    Line::default()
        .with("n", count)
        .with("bytes_each", grown / count as u64)
        .print("server: hold a Pod that was created", server.name());
}

/// Lists 1,000 Pods repeatedly.
async fn list(server: &Server, count: usize) {
    let client = server.client();
    let get = || Request::get("/api/v1/namespaces/listed/pods").body(Bytes::new()).expect("the path is one");
    send(&client, get()).await;
    let (cpu, began) = (server.cpu(), Instant::now());
    for _ in 0..count {
        send(&client, get()).await;
    }
    let wall = began.elapsed();
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let cpu_each = (server.cpu() - cpu) * 1e6 / count as f64;
    Line::default()
        .timed(count, wall)
        .with("server_cpu_us_each", cpu_each)
        .print("server: list 1,000 Pods", server.name());
}

/// Delivers a change to a thousand watchers.
async fn fan_out(server: &Server, changes: usize) {
    let client = server.client();
    let (told, mut heard) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let request = Request::get("/api/v1/namespaces/watched/configmaps?watch=true&resourceVersion=0")
            .body(Body::empty())
            .expect("the path is one");
        let mut body = client.send(request).await.expect("the server answers").into_body();
        let told = told.clone();
        watchers.spawn(async move {
            let mut tail = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                let Some(data) = frame.data_ref() else { continue };
                tail.extend_from_slice(data);
                if tail.ends_with(b"\n") {
                    let is_ours = tail.windows(7).any(|text| text == b"fan-out");
                    tail.clear();
                    if is_ours && told.send(()).is_err() {
                        return;
                    }
                }
            }
        });
    }
    let mut walls = Vec::new();
    let cpu = server.cpu();
    for change in 0..changes {
        let object = json!({"metadata": {"name": format!("fan-out-{change}")}, "data": {"change": change.to_string()}});
        let began = Instant::now();
        send(&client, post("/api/v1/namespaces/watched/configmaps", &object)).await;
        for _ in 0..WATCHERS {
            heard.recv().await.expect("the watchers live");
        }
        walls.push(began.elapsed().as_secs_f64());
    }
    walls.sort_by(f64::total_cmp);
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let cpu_each = (server.cpu() - cpu) * 1e6 / changes as f64;
    Line::default()
        .with("n", changes)
        .with("wall_s", walls[changes / 2])
        .with("server_cpu_us_each", cpu_each)
        .print("server: a change to 1,000 watchers", server.name());
    watchers.abort_all();
}
