//! How time passes in a cluster.
//!
//! A cluster in the process lives in the time of its runtime, which is paused in tests: an hour is a moment. The programs of
//! a real control plane live in the world's. What a test brings along, its operator and the simulated nodes, lives in the
//! runtime's time there too, and that can be hurried: it jumps second by second, and between two jumps everybody has the
//! time to do what has come due. Decision 0028.

use std::time::Duration;

#[cfg(feature = "real")]
use k8s_openapi::api::core::v1::Namespace;

use crate::Cluster;

/// How far hurried time jumps at once. Leases are renewed every two seconds: nobody loses one between two jumps.
#[cfg(feature = "real")]
const JUMP: Duration = Duration::from_secs(1);
/// How long everybody has between two jumps, besides an answer of the server.
#[cfg(feature = "real")]
const BREATH: Duration = Duration::from_millis(15);

impl Cluster {
    /// Lets time pass: every timer that comes due on the way does what it should, in order.
    ///
    /// On a real control plane this is the time of the operator, of the simulated nodes and of [`clock`](Self::clock). Under
    /// the attribute it is hurried, and the test goes on when what came due has been done: say some seconds more than a
    /// moment that matters, for time does not stand still at the end of it. Server and controllers notice nothing: what they
    /// write carries the world's time, and what they wait for comes no sooner. Without the attribute a second is a second.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use kubewright_cluster::Cluster;
    ///
    /// async fn an_hour_passes(cluster: Cluster) {
    ///     let before = cluster.clock().now();
    ///     cluster.advance(Duration::from_hours(1)).await;
    ///     assert!(cluster.clock().now().duration_since(before).as_hours() >= 1);
    /// }
    /// # kubewright_cluster::testing::Setup::new("doc").run(an_hour_passes);
    /// ```
    pub async fn advance(&self, time: Duration) {
        match self.plan().hurried {
            #[cfg(feature = "real")]
            true => self.hurry(time).await,
            _ => tokio::time::sleep(time).await,
        }
    }

    #[cfg(feature = "real")]
    async fn hurry(&self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                break;
            }
            tokio::time::pause();
            tokio::time::advance(left.min(JUMP)).await;
            tokio::time::resume();
            tokio::time::sleep(BREATH).await;
            // Whoever asked the server for something asked before this: a slow one slows time down. What it answers is not
            // the question, and who cannot reach it will hear so from the test's own requests.
            let _ = self.find::<Namespace>("default").await;
        }
        // A cluster that never rests is not a question of time either.
        let _ = self.settled().await;
    }
}
