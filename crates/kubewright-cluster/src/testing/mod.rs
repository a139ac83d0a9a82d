//! Runtime of `#[kubewright_cluster::test]`: runs a test in a cluster of its own and prints a report when it
//! fails.
//!
//! Use the attribute; [`Setup`] is public for macros that build on it.

#[cfg(feature = "real")]
mod real;

use std::{any::Any, fmt::Debug, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use jiff::Timestamp;
use kubewright_apiserver::ApiServer;

use crate::{Cluster, Controllers, harness::Reporter};

/// Default start of a test's time.
const START: &str = "2026-01-01T00:00:00Z";
/// Seed of generated names and uids.
const SEED: u64 = 2026;
/// Default number of nodes.
const NODES: u32 = 3;
/// Time-out of a test in virtual time.
const TIME_LIMIT: Duration = Duration::from_hours(30 * 24);

#[cfg(feature = "real")]
const REAL_TIME_LIMIT: Duration = Duration::from_mins(5);

/// Return types of tests.
pub trait Outcome: sealed::Sealed {
    /// Whether the test has failed.
    fn has_failed(&self) -> bool;
    /// The value of a passed test.
    fn passed() -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<E> Sealed for Result<(), E> {}
}

impl Outcome for () {
    fn has_failed(&self) -> bool {
        false
    }

    fn passed() -> Self {}
}

impl<E: Debug> Outcome for Result<(), E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }

    fn passed() -> Self {
        Ok(())
    }
}

/// Configuration of a test's cluster.
#[derive(Debug, Clone)]
#[must_use = "a test does nothing until it runs"]
pub struct Setup {
    name: &'static str,
    controllers: Controllers,
    nodes: Option<u32>,
    start: &'static str,
    limit: Duration,
}

impl Setup {
    /// Creates a setup with all controllers, three nodes, and time from 2026-01-01.
    pub fn new(name: &'static str) -> Self {
        Self { name, controllers: Controllers::All, nodes: None, start: START, limit: TIME_LIMIT }
    }

    /// Selects the built-in controllers. Without them there are no nodes, unless their number is set.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// Sets the number of nodes.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Sets the start of the cluster's time, in RFC 3339.
    pub fn starting_at(mut self, start: &'static str) -> Self {
        self.start = start;
        self
    }

    /// Runs a test in a cluster of its own, in virtual time.
    ///
    /// # Panics
    /// If the cluster does not start or the test panics.
    pub fn run<T: Outcome>(self, test: impl AsyncFnOnce(Cluster) -> T) -> T {
        self.run_and_report(test, print_report)
    }

    fn run_and_report<T: Outcome>(
        self,
        test: impl AsyncFnOnce(Cluster) -> T,
        report: impl FnOnce(&str),
    ) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("there is no runtime for the test: {error}"));
        runtime.block_on(async {
            let cluster = self.cluster().await;
            self.run_in(cluster, virtual_time(self.limit), test, report).await
        })
    }

    async fn run_in<T: Outcome>(
        &self,
        cluster: Cluster,
        limit: impl Future<Output = Duration>,
        test: impl AsyncFnOnce(Cluster) -> T,
        report: impl FnOnce(&str),
    ) -> T {
        let reporter = Reporter::new(&cluster);
        let ended = catch_panic(test(cluster), limit).await;
        if ended.as_ref().map_or(true, Outcome::has_failed) {
            report(&format!("{} has failed; {}", self.name, reporter.report().await));
        }
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs a test on a real kube-apiserver and kube-controller-manager, with simulated nodes in place of
    /// kubelets. The test is skipped if the programs are missing. The time of the operator and of the nodes
    /// can be [advanced](Cluster::advance), that of the programs cannot.
    ///
    /// # Panics
    /// If the control plane does not start or cannot be cleaned up after an earlier test, or the test panics.
    #[cfg(feature = "real")]
    pub fn run_on_real_control_plane<T: Outcome>(self, test: impl AsyncFnOnce(Cluster) -> T) -> T {
        let name = self.name;
        let ran = real::with_control_plane(async |client, plane| {
            if let Some(plane) = plane
                && let Err(error) = plane.clean(&client).await
            {
                panic!("the control plane is not as new for {name}: {error}");
            }
            let nodes = self.nodes.unwrap_or(NODES);
            let attached = Cluster::builder().nodes(nodes).fast_forward().attach(client).await;
            let cluster = attached
                .unwrap_or_else(|error| panic!("the nodes of {name} do not join the control plane: {error}"));
            self.run_in(cluster, real_time(REAL_TIME_LIMIT), test, print_report).await
        });
        ran.unwrap_or_else(|| {
            print_report(&format!(
                "{name} is skipped: etcd, kube-apiserver and kube-controller-manager are not on this machine; \
                 `make real` builds them, or name their folder in KUBEBUILDER_ASSETS"
            ));
            T::passed()
        })
    }

    async fn cluster(&self) -> Cluster {
        let start: Timestamp = self.start.parse().unwrap_or_else(|error| {
            panic!("`start = {:?}` of {} is no time such as {START:?}: {error}", self.start, self.name)
        });
        let nodes = match self.controllers {
            Controllers::All => NODES,
            Controllers::None => 0,
        };
        Cluster::builder()
            // Equal names and uids in every run.
            .server(ApiServer::builder().seed(SEED))
            .virtual_time(start)
            .controllers(self.controllers)
            .nodes(self.nodes.unwrap_or(nodes))
            .start()
            .await
            .unwrap_or_else(|error| panic!("the cluster of {} does not start: {error}", self.name))
    }
}

/// Returns the result of the test, or its panic.
async fn catch_panic<T>(
    test: impl Future<Output = T>,
    limit: impl Future<Output = Duration>,
) -> Result<T, Box<dyn Any + Send>> {
    let limited = async {
        tokio::select! {
            biased;
            ended = test => ended,
            waited = limit => panic!("the test has not ended after {waited:?}"),
        }
    };
    AssertUnwindSafe(limited).catch_unwind().await
}

async fn virtual_time(limit: Duration) -> Duration {
    tokio::time::sleep(limit).await;
    limit
}

/// Waits in real time: the runtime's time may be fast-forwarded.
#[cfg(feature = "real")]
async fn real_time(limit: Duration) -> Duration {
    let began = std::time::Instant::now();
    while let Some(left) = limit.checked_sub(began.elapsed()) {
        tokio::time::sleep(left).await;
    }
    limit
}

/// Prints to the output that the test harness captures.
#[expect(clippy::print_stderr, reason = "what a failed test prints is its output")]
fn print_report(report: &str) {
    eprintln!("\n{report}");
}

#[cfg(test)]
mod tests;
