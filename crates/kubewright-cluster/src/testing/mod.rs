//! What `#[kubewright_cluster::test]` expands to: one test, from its cluster to what is printed when it fails.
//!
//! Use the attribute; [`Setup`] is here for macros of your own that build on it.

#[cfg(feature = "real")]
mod real;

use std::{any::Any, fmt::Debug, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use jiff::Timestamp;
use kubewright_apiserver::ApiServer;

use crate::{Cluster, Controllers, harness::Witness};

/// When the time of a test begins, unless it says otherwise.
const START: &str = "2026-01-01T00:00:00Z";
/// What generated names and uids are made from.
const SEED: u64 = 2026;
/// How many nodes a test has, unless it says otherwise.
const NODES: u32 = 3;
/// A test that has not ended by then never will: something in it waits for what does not come.
const LIMIT: Duration = Duration::from_hours(30 * 24);

#[cfg(feature = "real")]
const REAL_LIMIT: Duration = Duration::from_mins(5);

/// What a test may return.
pub trait Outcome: sealed::Sealed {
    /// Whether it says that the test has failed.
    fn has_failed(&self) -> bool;
    /// What a test returns that has nothing to say.
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

/// The cluster of one test.
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
    /// All controllers, three nodes, and time from the first of January 2026.
    pub fn new(name: &'static str) -> Self {
        Self { name, controllers: Controllers::All, nodes: None, start: START, limit: LIMIT }
    }

    /// Which of the built-in controllers run. Without them there are no nodes either, unless a number is named.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// How many nodes there are.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// When the cluster's time begins; RFC 3339.
    pub fn starting_at(mut self, start: &'static str) -> Self {
        self.start = start;
        self
    }

    /// Runs a test in a cluster of its own, in virtual time.
    ///
    /// # Panics
    /// When the cluster does not start, and when the test panics.
    pub fn run<T: Outcome>(self, test: impl AsyncFnOnce(Cluster) -> T) -> T {
        self.judge(test, tell)
    }

    fn judge<T: Outcome>(self, test: impl AsyncFnOnce(Cluster) -> T, tell: impl FnOnce(&str)) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("there is no runtime for the test: {error}"));
        runtime.block_on(async {
            let cluster = self.cluster().await;
            self.judge_in(cluster, virtual_time(self.limit), test, tell).await
        })
    }

    async fn judge_in<T: Outcome>(
        &self,
        cluster: Cluster,
        limit: impl Future<Output = Duration>,
        test: impl AsyncFnOnce(Cluster) -> T,
        tell: impl FnOnce(&str),
    ) -> T {
        let witness = Witness::of(&cluster);
        let ended = contained(test(cluster), limit).await;
        if ended.as_ref().map_or(true, Outcome::has_failed) {
            tell(&format!("{} has failed; {}", self.name, witness.report().await));
        }
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs a test on a real kube-apiserver with a real kube-controller-manager, and with simulated nodes in place of
    /// kubelets. Where the programs are missing it says so, and the test passes. The time of the operator and of the nodes
    /// can be [hurried](Cluster::advance); that of the programs cannot.
    ///
    /// # Panics
    /// When the control plane does not start, when it cannot be emptied of what an earlier test left in it, and when the
    /// test panics.
    #[cfg(feature = "real")]
    pub fn run_on_a_real_control_plane<T: Outcome>(self, test: impl AsyncFnOnce(Cluster) -> T) -> T {
        let name = self.name;
        let ran = real::take_turns(async |client, plane| {
            if let Some(plane) = plane
                && let Err(error) = plane.clean(&client).await
            {
                panic!("the control plane is not as new for {name}: {error}");
            }
            let nodes = self.nodes.unwrap_or(NODES);
            let attached = Cluster::builder().nodes(nodes).hurried().attach(client).await;
            let cluster = attached
                .unwrap_or_else(|error| panic!("the nodes of {name} do not join the control plane: {error}"));
            self.judge_in(cluster, real_time(REAL_LIMIT), test, tell).await
        });
        ran.unwrap_or_else(|| {
            tell(&format!(
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
            // The same names and uids in every run.
            .server(ApiServer::builder().seed(SEED))
            .virtual_time(start)
            .controllers(self.controllers)
            .nodes(self.nodes.unwrap_or(nodes))
            .start()
            .await
            .unwrap_or_else(|error| panic!("the cluster of {} does not start: {error}", self.name))
    }
}

/// The result of a test, or what it panicked with.
async fn contained<T>(
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

/// The world's time: that of the runtime may be hurried.
#[cfg(feature = "real")]
async fn real_time(limit: Duration) -> Duration {
    let began = std::time::Instant::now();
    while let Some(left) = limit.checked_sub(began.elapsed()) {
        tokio::time::sleep(left).await;
    }
    limit
}

/// To where the test program shows what a failed test has printed.
#[expect(clippy::print_stderr, reason = "what a failed test prints is its output")]
fn tell(report: &str) {
    eprintln!("\n{report}");
}

#[cfg(test)]
mod tests;
