//! The cluster in a process: `cluster start | rollout | operator | throughput | fork | hour [N]`, and
//! `cluster scale [PODS/NODES…]`. Without arguments all of them, each so often that the median means something.
//!
//! | workload | one operation |
//! |---|---|
//! | `start` | a cluster with all controllers and three nodes; stopped outside of the measured time |
//! | `rollout` | a test: start, a Deployment of three, all pods ready, end |
//! | `operator` | a test: start, an operator for `ConfigMap`s that keeps a Deployment for each, all pods ready, end |
//! | `throughput` | the same as `operator`, on two threads at once |
//! | `fork` | a second cluster that begins where one with a thousand `ConfigMap`s is |
//! | `hour` | an hour of cluster time with nothing to do but heartbeats |
//! | `scale` | Deployments of 1,000 Pods on 100 nodes, 2,500 on 250 and 10,000 on 1,000, until all Pods run: CPU per Pod |
//!
//! Times are of the wall; a cluster's own time is virtual, but for `scale`, which runs on two threads as `kubewright up` does.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node},
};
use kube::api::{ListParams, PostParams};
use kubewright::{
    Result,
    controller::{Action, Context, Controller},
    manager::{Manager, ManagerBuilder},
};
use kubewright_bench::report::Report;
use kubewright_cluster::Cluster;
use serde_json::json;

const WORKLOADS: [&str; 7] = ["start", "rollout", "operator", "throughput", "fork", "hour", "scale"];
/// Pods and nodes of `scale`.
const SIZES: [(usize, u32); 3] = [(1_000, 100), (2_500, 250), (10_000, 1_000)];
/// The Deployments that the Pods of `scale` belong to.
const DEPLOYMENTS: usize = 25;
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
";
const SHOP: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, labels: {runs: web}}, data: {replicas: '3'}}";
const THREADS: usize = 2;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let workloads: Vec<String> = match arguments.next() {
        None => WORKLOADS.map(Into::into).to_vec(),
        Some(one) => vec![one],
    };
    if workloads == ["scale"] {
        let sizes: Vec<(usize, u32)> = arguments.filter_map(|size| parse_size(&size)).collect();
        return scale(if sizes.is_empty() { &SIZES } else { &sizes });
    }
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(50);
    for workload in workloads {
        match workload.as_str() {
            "start" => each("cluster-start", count, started),
            "rollout" => each("cluster-rollout", count, rollout),
            "operator" => each("cluster-operator", count, operator),
            "throughput" => throughput(4 * count),
            "fork" => each("cluster-fork", count, forked),
            "hour" => each("cluster-hour", count.div_ceil(10), hour),
            "scale" => scale(&SIZES),
            other => panic!("no workload {other:?}: use one of {WORKLOADS:?}"),
        }
    }
}

/// A runtime as tests have it.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("there is a runtime").block_on(test)
}

async fn cluster() -> Cluster {
    let start = "2026-01-01T00:00:00Z".parse().expect("a time");
    Cluster::builder().virtual_time(start).nodes(3).start().await.expect("the cluster starts")
}

/// Runs one operation after the other; each says how long its part took that is measured.
#[allow(clippy::cast_possible_truncation)] // microseconds of a benchmark
fn each(bench: &str, count: usize, operation: fn() -> Duration) {
    // The first one fills tables that live as long as the program.
    operation();
    let report = Report::start(bench, "kubewright", None);
    let mut times: Vec<Duration> = (0..count).map(|_| operation()).collect();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_micros() as u64;
    report.with("median_us", at(50), 1).with("p90_us", at(90), 1).with("worst_us", at(100), 1).finish(count);
}

fn started() -> Duration {
    run(async {
        let before = Instant::now();
        let cluster = cluster().await;
        let took = before.elapsed();
        drop(cluster);
        took
    })
}

/// Waits until all pods of the Deployment are ready.
async fn ready(cluster: &Cluster) {
    let told = cluster.eventually("three ready pods", async |cluster| {
        let found: Option<Deployment> = cluster.find("default/web").await?;
        Ok(found.filter(|web| web.status.as_ref().and_then(|status| status.ready_replicas) == Some(3)))
    });
    told.await.expect("the pods become ready");
}

fn rollout() -> Duration {
    let before = Instant::now();
    run(async {
        let cluster = cluster().await;
        cluster.apply(WEB).await.expect("it is applied");
        ready(&cluster).await;
    });
    before.elapsed()
}

/// Keeps a Deployment for every labelled `ConfigMap`.
fn shops() -> ManagerBuilder {
    let shops = Controller::of::<ConfigMap>().named("shops").owns::<Deployment>().reconcile(reconcile);
    Manager::builder("shops").controller(shops)
}

async fn reconcile(cx: Context<ConfigMap>) -> Result<Action> {
    let Some(shop) = cx.object()? else { return Ok(Action::done()) };
    let Some(name) = shop.metadata.labels.as_ref().and_then(|labels| labels.get("runs")) else {
        return Ok(Action::done());
    };
    let replicas: Option<i32> = shop.data.as_ref().and_then(|data| data.get("replicas")?.parse().ok());
    cx.create_or_update(name, |web: &mut Deployment| {
        web.spec = serde_json::from_value(json!({
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        }))
        .expect("it is a Deployment");
    })
    .controlled_by(&*shop)
    .await?;
    Ok(Action::done())
}

fn operator() -> Duration {
    let before = Instant::now();
    run(async {
        let cluster = cluster().await;
        let _operator = cluster.run(shops()).await.expect("the operator runs");
        cluster.apply(SHOP).await.expect("it is applied");
        ready(&cluster).await;
    });
    before.elapsed()
}

fn throughput(count: usize) {
    let (report, next) = (Report::start("cluster-throughput", "kubewright", None), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    operator();
                }
            });
        }
    });
    report.finish(count);
}

fn forked() -> Duration {
    run(async {
        let prepared = Cluster::start().await.expect("the cluster starts");
        let maps =
            (0..1000).map(|i| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m-{i}}}}}"));
        prepared.apply(maps).await.expect("they are applied");
        let before = Instant::now();
        let fork = prepared.fork().await.expect("it forks");
        let took = before.elapsed();
        drop(fork);
        took
    })
}

fn hour() -> Duration {
    run(async {
        let cluster = cluster().await;
        let before = Instant::now();
        cluster.advance(Duration::from_hours(1)).await;
        before.elapsed()
    })
}

fn parse_size(text: &str) -> Option<(usize, u32)> {
    let (pods, nodes) = text.split_once('/')?;
    Some((pods.parse().ok()?, nodes.parse().ok()?))
}

/// CPU per Pod from Deployment to Running at each size, and the exponent with which the whole grows.
#[allow(clippy::cast_precision_loss)] // thousands of Pods
#[allow(clippy::print_stdout)] // the line is what the program is for
fn scale(sizes: &[(usize, u32)]) {
    let mut points = Vec::new();
    for (pods, nodes) in sizes {
        let each = deploy(*pods, *nodes);
        points.push((*pods as f64, each * *pods as f64));
    }
    if points.len() > 1 {
        println!(
            "{}",
            json!({"bench": "cluster-scale growth", "impl": "kubewright", "exponent": slope(&points)})
        );
    }
}

/// Deploys Pods to a cluster and waits until all run. Returns the microseconds of CPU per Pod.
fn deploy(pods: usize, nodes: u32) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("there is a runtime").block_on(async {
        let cluster = Cluster::builder().nodes(nodes).start().await.expect("the cluster starts");
        let all = kube::Api::<Node>::all(cluster.client());
        // A node takes Pods when its taint is lifted.
        wait(async || {
            let nodes = all.list(&ListParams::default()).await.expect("nodes are listed");
            let tainted = |node: &&Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
            nodes.items.len() - nodes.items.iter().filter(tainted).count()
        }, usize::try_from(nodes).unwrap_or(usize::MAX)).await;
        let each = pods / DEPLOYMENTS;
        let deployments = kube::Api::<Deployment>::namespaced(cluster.client(), "default");
        let report = Report::start(&format!("cluster-scale {pods} Pods on {nodes} nodes"), "kubewright", None);
        for number in 0..DEPLOYMENTS {
            let app = format!("web-{number}");
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app},
                "spec": {
                    "replicas": each, "selector": {"matchLabels": {"app": app}},
                    "template": {
                        "metadata": {"labels": {"app": app}},
                        "spec": {"containers": [{
                            "name": "c", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                        }]},
                    },
                },
            });
            let deployment = serde_json::from_value(deployment).expect("it is a Deployment");
            deployments.create(&PostParams::default(), &deployment).await.expect("it is created");
        }
        wait(async || {
            let found = deployments.list(&ListParams::default()).await.expect("Deployments are listed");
            let ready = found.items.iter().filter_map(|one| one.status.as_ref()?.ready_replicas);
            ready.filter_map(|ready| usize::try_from(ready).ok()).sum()
        }, each * DEPLOYMENTS).await;
        let measured = report.finish(each * DEPLOYMENTS);
        cluster.stop().await;
        measured.cpu_us_each
    })
}

/// Waits until a number is reached; it is asked for seldom, as that costs CPU too.
async fn wait(mut number: impl AsyncFnMut() -> usize, wanted: usize) {
    while number().await < wanted {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The slope of the line through the logarithms of points.
#[allow(clippy::cast_precision_loss)] // a few points
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let mean = |value: fn(&(f64, f64)) -> f64| logs.iter().map(value).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let rise: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let run: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    rise / run
}
