//! Targets of the comparison.

/// A limit on the ratio of our number to a peer's, or on our number itself.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    workload: &'static str,
    number: &'static str,
    /// Whose number ours is divided by; none where the limit is on ours alone.
    peer: Option<&'static str>,
    limit: Limit,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
}

impl Limit {
    /// Whether a value keeps to it.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "≤ {limit}"),
            Self::AtLeast(limit) => write!(f, "≥ {limit}"),
        }
    }
}

const fn at_most(workload: &'static str, number: &'static str, peer: &'static str, limit: f64) -> Target {
    Target { workload, number, peer: Some(peer), limit: Limit::AtMost(limit) }
}

const fn at_least(workload: &'static str, number: &'static str, peer: &'static str, limit: f64) -> Target {
    Target { workload, number, peer: Some(peer), limit: Limit::AtLeast(limit) }
}

const fn own(workload: &'static str, number: &'static str, limit: f64) -> Target {
    Target { workload, number, peer: None, limit: Limit::AtMost(limit) }
}

const SERVER: &str = "kube-apiserver + etcd";

/// By the beginning of the workload's name. Memory is compared where there is enough of it to see the objects.
const TARGETS: &[Target] = &[
    at_most("sync of 10,000 Pods", "cpu_s", "client-go", 0.6),
    at_most("sync of 10,000 Pods", "cpu_s", "kube-rs", 0.2),
    at_most("sync of 30,000 Pods", "cpu_s", "client-go", 0.6),
    at_most("sync of 30,000 Pods", "cpu_s", "kube-rs", 0.2),
    at_most("sync of 30,000 Pods", "steady_bytes", "client-go", 0.06),
    at_most("sync of 30,000 Pods", "steady_bytes", "kube-rs", 0.025),
    at_most("sync of 100,000 Pods", "cpu_s", "client-go", 0.6),
    at_most("sync of 100,000 Pods", "cpu_s", "kube-rs", 0.2),
    at_most("sync of 100,000 Pods", "steady_bytes", "client-go", 0.06),
    at_most("sync of 100,000 Pods", "steady_bytes", "kube-rs", 0.025),
    at_most("sync of 10,000 mixed", "cpu_s", "client-go", 0.4),
    at_most("sync of 10,000 mixed", "steady_bytes", "client-go", 0.1),
    at_most("sync of 30,000 mixed", "cpu_s", "client-go", 0.4),
    at_most("sync of 30,000 mixed", "steady_bytes", "client-go", 0.1),
    at_most("sync of 100,000 small", "cpu_s", "client-go", 0.6),
    at_most("sync of 100,000 small", "cpu_s", "kube-rs", 0.2),
    own("growth", "exponent", 1.1),
    own("alone, cluster-scale growth", "exponent", 1.1),
    own("alone, cluster-scale 10000", "cpu_us_each", 1500.0),
    own("relist", "peak_to_steady", 1.3),
    at_most("watch", "cpu_us_each", "client-go", 0.5),
    at_least("queue", "per_s", "client-go", 1.5),
    at_most("sample-controller", "cpu_s", "client-go", 0.5),
    at_most("sample-controller", "cpu_s", "controller-runtime", 0.5),
    at_most("sample-controller", "requests", "client-go", 1.0),
    at_most("sample-controller", "requests", "controller-runtime", 1.0),
    at_most("server: start", "wall_s", SERVER, 0.01),
    at_least("server: create", "per_s", SERVER, 10.0),
    at_most("server: hold", "bytes_each", SERVER, 0.15),
];

/// The limit on our number divided by this peer's.
pub fn against(workload: &str, number: &str, peer: &str) -> Option<Limit> {
    find(workload, number, Some(peer))
}

/// The limit on our number itself.
pub fn alone(workload: &str, number: &str) -> Option<Limit> {
    find(workload, number, None)
}

fn find(workload: &str, number: &str, peer: Option<&str>) -> Option<Limit> {
    let fits = |target: &&Target| {
        workload.starts_with(target.workload) && target.number == number && target.peer == peer
    };
    TARGETS.iter().find(fits).map(|target| target.limit)
}
