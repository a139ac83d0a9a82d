//! Replays recordings of a real kube-controller-manager against the built-in controllers, in process, in
//! virtual time and in parallel.
//!
//! The replay is the API server's (see its `tests/golden/judge.rs`); here each scenario runs in a cluster
//! with all controllers and no nodes.

#[path = "../../../kubewright-apiserver/tests/golden/compare.rs"]
mod compare;
#[path = "../../../kubewright-apiserver/tests/golden/judge.rs"]
mod judge;
#[path = "../../../kubewright-apiserver/tests/golden/ordered.rs"]
mod ordered;
#[path = "../../../kubewright-apiserver/tests/golden/scenario.rs"]
mod scenario;

use std::path::Path;

use kubewright_cluster::Cluster;
use scenario::Scenario;

#[test]
fn recorded_scenarios_replay_as_listed() {
    if std::env::var_os("RUST_LOG").is_some() {
        let environment = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(environment).with_test_writer().init();
    }
    let replay = async |scenario: &Scenario| {
        let start = "2026-08-01T00:00:00Z".parse().expect("a time");
        let cluster = Cluster::builder().server(scenario.server()).virtual_time(start).start().await;
        scenario.replay(cluster.expect("a cluster starts").server()).await
    };
    judge::judge(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), replay, &[]);
}
