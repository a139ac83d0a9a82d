//! The API server: `server start | create | create-tls | create-durable | list | fan-out`, or `server goals` for all of
//! them. Beside the lines for machines it says on stderr which goals are met.
//!
//! What needs a process of its own (`start`, `create-tls`, `create-durable`) runs the `kubewright` program that lies
//! beside this one; the rest is in process.
#![allow(clippy::print_stderr, reason = "notes beside the lines that are measured")]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright::ObjectKey;
use kubewright_apiserver::{
    ApiServer,
    authn::{MASTERS, User},
    http::ApiService,
};
use kubewright_bench::{
    pods,
    report::{Measured, Report, resident_bytes},
};
use kubewright_storage::Expect;
use mimalloc::MiMalloc;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::ServiceExt as _;

/// The allocator of `kubewright up`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const IN_FLIGHT: usize = 64;
const WATCHERS: usize = 1000;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.get(1).and_then(|count| count.parse().ok());
    match arguments.first().map(String::as_str) {
        Some("start") => start(),
        Some("create") => create(count.unwrap_or(40_000)).await,
        Some("create-tls") => create_tls(count.unwrap_or(20_000), false).await,
        Some("create-durable") => create_tls(count.unwrap_or(20_000), true).await,
        Some("list") => list(count.unwrap_or(30_000)).await,
        Some("fan-out") => fan_out(count.unwrap_or(20)).await,
        Some("goals") => {
            start();
            // Before the others: memory that those have freed would be used again, and not be seen to grow.
            list(30_000).await;
            create(40_000).await;
            create_tls(20_000, false).await;
            create_tls(20_000, true).await;
            fan_out(20).await;
        }
        _ => {
            panic!("usage: server start | create | create-tls | create-durable | list | fan-out [N] | goals")
        }
    }
}

/// Says whether a goal is met, beside the lines for machines. A number that must be reached is one per second; where the
/// machine does other things at the same time, what it would be with both cores to itself is told too.
fn goal(what: &str, met: bool, wanted: &str, got: &str) {
    eprintln!("{:<8} {what}: {got} (goal: {wanted})", if met { "met" } else { "NOT MET" });
}

fn rate_goal(what: &str, wanted: f64, measured: Measured, cpu_us_each: f64) {
    const CORES: f64 = 2.0;
    let got = format!(
        "{:.0}/s; {cpu_us_each:.0} µs of CPU each, which is {:.0}/s on two cores of one's own",
        measured.per_s,
        CORES * 1e6 / cpu_us_each
    );
    goal(what, measured.per_s >= wanted, &format!("at least {wanted}/s"), &got);
}

/// `kubewright up` in a process of its own.
struct Up {
    child: Child,
    kubeconfig: tempfile::TempPath,
}

impl Up {
    fn start(arguments: &[&str]) -> Self {
        let program = std::env::current_exe().expect("this program is a file").with_file_name("kubewright");
        let kubeconfig = tempfile::NamedTempFile::new().expect("there is room for a file").into_temp_path();
        let mut child = Command::new(program)
            .args(["up", "--bind", "127.0.0.1:0", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the kubewright program lies beside this one");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says when it is ready");
        assert!(line.contains("ready"), "it did not start");
        Self { child, kubeconfig }
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    fn resident(&self) -> u64 {
        self.proc("statm").split_whitespace().nth(1).and_then(|p| p.parse::<u64>().ok()).unwrap_or(0) * 4096
    }

    /// The time that its threads were on a core so far, in microseconds.
    fn cpu(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten();
        let nanos = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(|task| nanos(task.path())).sum::<u64>() / 1000
    }

    async fn client(&self) -> kube::Client {
        client(Kubeconfig::read_from(&self.kubeconfig).expect("it was written before the line")).await
    }
}

async fn client(kubeconfig: Kubeconfig) -> kube::Client {
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("it is a good one");
    kube::Client::try_from(config).expect("it is a good one")
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the start of the process to the line that says that it is ready, and what it holds then.
fn start() {
    const STARTS: usize = 20;
    let (mut resident, mut cpu) = (0, 0);
    // The first start reads the program from disk.
    drop(Up::start(&[]));
    let report = Report::start("server: start to ready", "kubewright", None);
    for _ in 0..STARTS {
        let up = Up::start(&[]);
        cpu += up.cpu();
        resident += up.resident();
    }
    let measured = report
        .with("resident_bytes_each", resident, STARTS)
        .with("server_cpu_us_each", cpu, STARTS)
        .finish(STARTS);
    let (wall, cpu) = (1e3 / measured.per_s, per(cpu, STARTS) / 1e3);
    let resident = per(resident, STARTS) / 1e6;
    goal("ready", wall <= 25.0, "at most 25 ms", &format!("{wall:.1} ms, {cpu:.1} ms of CPU"));
    goal("resident when idle", resident <= 25.0, "at most 25 MB", &format!("{resident:.1} MB"));
}

#[allow(clippy::cast_precision_loss)] // bytes and microseconds are far below 2^52
fn per(total: u64, n: usize) -> f64 {
    total as f64 / n as f64
}

/// What a controller sends to make pod `i`, and where.
fn request(i: usize) -> Request<Full<Bytes>> {
    let mut pod: Value = serde_json::from_str(&pods::pod(i)).expect("it is JSON");
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("status");
    }
    let metadata = pod["metadata"].as_object_mut().expect("a pod has metadata");
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    post(&format!("/api/v1/namespaces/team-{}/pods", i % 50), &pod)
}

/// A pod as `kubectl run` makes it.
fn small_request(i: usize) -> Request<Full<Bytes>> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("small-{i}"), "labels": {"run": "small"}},
        "spec": {"containers": [{"name": "app", "image": "nginx"}]},
    });
    post(&format!("/api/v1/namespaces/team-{}/pods", i % 50), &pod)
}

fn post(path: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("content-type", "application/json")
        .header("user-agent", "bench/1.0")
        .body(Full::new(body.to_string().into()))
        .expect("the path is one")
}

fn namespaces() -> impl Iterator<Item = Request<Full<Bytes>>> {
    (0..50).map(|n| {
        let namespace = json!({"metadata": {"name": format!("team-{n}")}});
        post("/api/v1/namespaces", &namespace)
    })
}

fn admin(server: &ApiServer) -> ApiService {
    server.service().for_peer(User { name: "admin".into(), groups: vec![MASTERS.into()], ..User::default() })
}

/// Sends requests with so many in flight; all must create something.
async fn send_all<F: Future<Output = StatusCode> + Send + 'static>(
    requests: Vec<Request<Full<Bytes>>>,
    send: impl Fn(Request<Full<Bytes>>) -> F + Clone + Send + 'static,
) {
    let requests: Arc<Vec<_>> = Arc::new(requests);
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (requests, next, send) = (Arc::clone(&requests), Arc::clone(&next), send.clone());
        workers.spawn(async move {
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                assert_eq!(send(request.clone()).await, StatusCode::CREATED);
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.expect("no request fails");
    }
}

/// Creates in process.
async fn create(count: usize) {
    let server = ApiServer::builder().in_process().expect("nothing can be missing");
    let service = admin(&server);
    let send = move |request| {
        let service = service.clone();
        async move {
            let response = service.oneshot(request).await.unwrap_or_else(|never| match never {});
            let status = response.status();
            let _ = response.into_body().collect().await;
            status
        }
    };
    send_all(namespaces().collect(), send.clone()).await;
    let requests: Vec<_> = (0..count).map(small_request).collect();
    let report = Report::start("server: create small pod, in process", "kubewright", None);
    send_all(requests, send.clone()).await;
    let small = report.finish(count);
    let requests: Vec<_> = (0..count).map(request).collect();
    let report = Report::start("server: create pod, in process", "kubewright", None);
    send_all(requests, send).await;
    let large = report.finish(count);
    rate_goal("create a pod as kubectl run makes it, in process", 20_000.0, small, small.cpu_us_each);
    rate_goal("create a pod of 5 KB, in process", 20_000.0, large, large.cpu_us_each);
}

/// Creates over TLS, against a process of its own. The client shares the machine.
async fn create_tls(count: usize, is_durable: bool) {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let path = directory.path().to_str().expect("names of temporary directories are text");
    let (durable, arguments) =
        if is_durable { (", on disk", &["--data-dir", path][..]) } else { ("", &[][..]) };
    let up = Up::start(arguments);
    let client = up.client().await;
    let send = move |request: Request<Full<Bytes>>| {
        let client = client.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
            let response = client.send(request).await.expect("the server answers");
            let status = response.status();
            let _ = response.into_body().collect().await;
            status
        }
    };
    send_all(namespaces().collect(), send.clone()).await;
    for (name, make) in
        [("small pod", small_request as fn(usize) -> Request<Full<Bytes>>), ("pod", request as _)]
    {
        let requests: Vec<_> = (0..count).map(make).collect();
        let before = up.cpu();
        let report = Report::start(&format!("server: create {name}, TLS{durable}"), "kubewright", None);
        send_all(requests, send.clone()).await;
        let cpu = up.cpu() - before;
        let measured = report.with("server_cpu_us_each", cpu, count).finish(count);
        let both = per(cpu, count) + measured.cpu_us_each;
        rate_goal(
            &format!("create a {name}, TLS{durable}, client on the same cores"),
            5000.0,
            measured,
            both,
        );
    }
}

/// Fills a server with so many pods of 9.5 KB.
fn fill(server: &ApiServer, count: usize) {
    let ty = server.registry().resolve("", "v1", "pods").expect("pods are served");
    for i in 0..count {
        let pod: Value = serde_json::from_str(&pods::pod(i)).expect("it is JSON");
        let pod = pod.as_object().expect("it is an object");
        let metadata = &pod["metadata"];
        let key = ObjectKey::namespaced(
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap_or_default(),
        );
        server.registry().storage.put(&ty.storage, &key, Expect::Absent, ty.draft(pod)).expect("it is new");
    }
}

/// Lists everything, in process and over TLS, beside a plain copy of as many bytes through a socket.
async fn list(count: usize) {
    const ROUNDS: usize = 5;
    let running =
        ApiServer::builder().bind(([127, 0, 0, 1], 0).into()).start().await.expect("a port is free");
    let before = resident_bytes();
    let report = Report::start("server: hold a pod of 9.5 KB", "kubewright", None);
    fill(running.server(), count);
    let resident = resident_bytes().saturating_sub(before);
    report.with("resident_bytes_each", resident, count).finish(count);
    let each = per(resident, count) / 1e3;
    goal("resident per pod of 9.5 KB", each <= 12.0, "at most 12 KB", &format!("{each:.1} KB"));

    let get = || Request::get("/api/v1/pods").body(Full::<Bytes>::default()).expect("the path is one");
    let mut bytes = 0;
    let report = Report::start("server: list, in process (MB)", "kubewright", None);
    for _ in 0..ROUNDS {
        let response = admin(running.server()).oneshot(get()).await.unwrap_or_else(|never| match never {});
        let mut body = response.into_body();
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    }
    let in_process = report.finish(bytes / 1_000_000);

    let kubeconfig = Kubeconfig::from_yaml(&running.kubeconfig()).expect("it is a good one");
    let client = client(kubeconfig).await;
    let mut read = 0;
    let report = Report::start("server: list, TLS (MB)", "kubewright", None);
    for _ in 0..ROUNDS {
        let request =
            Request::get("/api/v1/pods").body(kube::client::Body::empty()).expect("the path is one");
        let mut body = client.send(request).await.expect("the server answers").into_body();
        while let Some(frame) = body.frame().await {
            read += frame.expect("it comes whole").data_ref().map_or(0, Bytes::len);
        }
    }
    assert_eq!(read, bytes, "the same list");
    let over_tls = report.finish(bytes / 1_000_000);
    let plain = copy(bytes / ROUNDS, ROUNDS).await;
    let share = 100.0 * in_process.cpu_us_each / over_tls.cpu_us_each;
    let got = format!(
        "{:.0} MB/s, {:.0} in process, {:.0} for a copy through a socket without TLS; writing the list is {share:.0} % \
         of the CPU time over TLS",
        over_tls.per_s, in_process.per_s, plain.per_s
    );
    goal("list 30,000 pods", share <= 33.0, "bounded by the socket: at most a third of the CPU", &got);
}

/// The same number of bytes through a socket, in pieces of the size that a list has.
async fn copy(bytes: usize, rounds: usize) -> Measured {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let report = Report::start("server: list, in process (MB)", "socket", None);
    let writer = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("the reader comes");
        let piece = vec![b'x'; 64 * 1024];
        let mut left = bytes * rounds;
        while left > 0 {
            let now = left.min(piece.len());
            socket.write_all(&piece[..now]).await.expect("the reader reads");
            left -= now;
        }
    });
    let mut socket = tokio::net::TcpStream::connect(address).await.expect("the writer listens");
    let mut buffer = vec![0; 64 * 1024];
    let mut read = 0;
    while read < bytes * rounds {
        read += socket.read(&mut buffer).await.expect("the writer writes");
    }
    writer.await.expect("it wrote all");
    report.finish(read / 1_000_000)
}

/// One change, until a thousand watchers have it.
async fn fan_out(rounds: usize) {
    let server = ApiServer::builder().in_process().expect("nothing can be missing");
    fill(&server, 100);
    let service = admin(&server);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..WATCHERS {
        let request = Request::get("/api/v1/pods?watch=true&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
            .body(Full::<Bytes>::default())
            .expect("the path is one");
        let response = service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        let (mut body, told) = (response.into_body(), told.clone());
        tokio::spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                if frame.data_ref().is_some_and(|data| data.ends_with(b"\n")) {
                    let _ = told.send(());
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ty = server.registry().resolve("", "v1", "pods").expect("pods are served");
    let pods: Vec<Value> =
        (1000..1000 + rounds).map(|i| serde_json::from_str(&pods::pod(i)).expect("it is JSON")).collect();
    let report = Report::start("server: one change to 1,000 watchers", "kubewright", None);
    for pod in &pods {
        let pod = pod.as_object().expect("it is an object");
        let key = ObjectKey::namespaced("team", pod["metadata"]["name"].as_str().unwrap_or_default());
        server.registry().storage.put(&ty.storage, &key, Expect::Absent, ty.draft(pod)).expect("it is new");
        for _ in 0..WATCHERS {
            heard.recv().await.expect("the watchers live");
        }
    }
    let measured = report.finish(rounds);
    let wall = 1e3 / measured.per_s;
    let got = format!("{wall:.1} ms, {:.1} ms of CPU", measured.cpu_us_each / 1e3);
    goal("one change to 1,000 watchers", wall <= 20.0, "at most 20 ms", &got);
}
