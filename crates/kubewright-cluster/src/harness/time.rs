//! Time in a cluster.
//!
//! A cluster in the process follows the time of its runtime, which is paused in tests: an hour is a moment.
//! The programs of a real control plane follow real time. The operator and the simulated nodes follow the
//! runtime's time there too, which can be fast-forwarded: it jumps second by second, and between two jumps
//! tasks have the time to run. See decision 0028.

use std::time::Duration;

#[cfg(feature = "real")]
use k8s_openapi::api::core::v1::Namespace;

use crate::Cluster;

/// Step of fast-forwarding. Leases are renewed every two seconds, so none expires within a step.
#[cfg(feature = "real")]
const STEP: Duration = Duration::from_secs(1);
/// Real time between two steps, besides the server's response.
#[cfg(feature = "real")]
const STEP_PAUSE: Duration = Duration::from_millis(15);

impl Cluster {
    /// Advances time; timers fire in order.
    ///
    /// On a real control plane this is the time of the operator, of the simulated nodes and of
    /// [`clock`](Self::clock). Under the attribute it is fast-forwarded, and the method returns when the work
    /// that came due is done: add some seconds to a point in time that matters, because time does not stop
    /// there. Server and controllers are not affected: their timestamps and timers follow real time. Without
    /// the attribute the method sleeps.
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
        match self.options().fast_forward {
            #[cfg(feature = "real")]
            true => self.fast_forward(time).await,
            _ => tokio::time::sleep(time).await,
        }
    }

    #[cfg(feature = "real")]
    async fn fast_forward(&self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                break;
            }
            tokio::time::pause();
            tokio::time::advance(left.min(STEP)).await;
            tokio::time::resume();
            tokio::time::sleep(STEP_PAUSE).await;
            // Requests sent before this one are answered first, so a slow server slows time down. The
            // response is not needed; an unreachable server fails the test's own requests.
            let _ = self.find::<Namespace>("default").await;
        }
        // A cluster that does not settle is no error here.
        let _ = self.settled().await;
    }
}
