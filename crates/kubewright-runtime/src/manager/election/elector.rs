//! Acquires a Lease.

use std::{fmt, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::time::Instant;

use super::{
    candidate::Candidate,
    identity::default_identity,
    leadership::{Leadership, LeadershipHandle, Renewing},
    metrics::ElectionMetrics,
};
use crate::events::{Recorder, Reference};
use kubewright_core::{Clock, Random};

/// Upper limit of the jitter added to the retry period, as a fraction of it.
const JITTER: f64 = 1.2;

/// Invalid settings of an election.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The lease duration is not a positive number of whole seconds.
    #[error("the lease duration of {0:?} must be a whole number of seconds, and at least one")]
    LeaseDuration(Duration),
    /// The renew deadline is not shorter than the lease duration, so two replicas could lead at once.
    #[error("the renew deadline of {deadline:?} must be shorter than the lease duration of {lease:?}")]
    RenewDeadline {
        /// The renew deadline.
        deadline: Duration,
        /// The lease duration.
        lease: Duration,
    },
    /// The retry period leaves no time for a second attempt before the renew deadline.
    #[error(
        "the retry period of {retry:?} must be above zero, and 1.2 times of it below the renew deadline of {deadline:?}"
    )]
    RetryPeriod {
        /// The retry period.
        retry: Duration,
        /// The renew deadline.
        deadline: Duration,
    },
    /// The identity is empty.
    #[error("the identity is empty: leave it out for a unique one, or give each candidate its own")]
    NoIdentity,
    /// The name of the Lease is empty.
    #[error("the Lease has no name: give all candidates for the same work the same one")]
    NoName,
}

/// Error of [`LeaderElection::lead`]: the lease was lost and the work dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the lease {lease} was lost and the work under it stopped; restart to become a candidate again")]
#[non_exhaustive]
pub struct LeaseLost {
    /// Namespace and name of the Lease.
    pub lease: String,
}

pub(super) struct Settings {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) lease_duration: Duration,
    pub(super) lease_seconds: i32,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) request_timeout: Duration,
    pub(super) release_on_cancel: bool,
    pub(super) metrics: ElectionMetrics,
    pub(super) clock: Clock,
    random: Random,
    recorder: Option<Recorder>,
    on_new_leader: Option<OnNewLeader>,
}

type OnNewLeader = Arc<dyn Fn(&str) + Send + Sync>;

impl Settings {
    /// Records an event about the Lease.
    pub(super) fn record_event(&self, what: &str) {
        if let Some(recorder) = &self.recorder {
            let lease = Reference::from(ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                namespace: Some(self.namespace.clone()),
                name: Some(self.name.clone()),
                ..ObjectReference::default()
            });
            recorder.normal(&lease, "LeaderElection", format!("{} {what}", self.identity));
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Candidate for a Lease. Clones share the identity and must not acquire the Lease at the same time.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Method, Request, Response};
/// # use http_body_util::BodyExt as _;
/// # use kubewright::kube::{Client, client::Body};
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     let (parts, body) = request.into_parts();
/// #     let mut lease: serde_json::Value = match parts.method {
/// #         Method::GET => {
/// #             let gone = r#"{"kind":"Status","code":404,"reason":"NotFound","status":"Failure","message":"no"}"#;
/// #             return Ok(Response::builder().status(404).body(Body::from(gone.as_bytes().to_vec())).unwrap());
/// #         }
/// #         _ => serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap(),
/// #     };
/// #     lease["metadata"]["resourceVersion"] = "1".into();
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(lease.to_string().into_bytes())))
/// # });
/// # let client = Client::new(server, "default");
/// use kubewright::manager::election::LeaderElection;
///
/// let election = LeaderElection::builder(client, "sample-controller").identity("replica-1").build()?;
/// let leadership = election.acquire().await;            // waits while another candidate leads
/// let handle = leadership.handle();
/// assert!(handle.is_leader());
/// leadership.release().await;                           // the next leader need not wait for it to expire
/// assert!(!handle.is_leader());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LeaderElection {
    settings: Arc<Settings>,
}

impl LeaderElection {
    /// Creates a builder for the Lease of this name, in the namespace of the client.
    pub fn builder(client: Client, name: impl Into<String>) -> LeaderElectionBuilder {
        let random = Random::from_entropy();
        LeaderElectionBuilder {
            namespace: client.default_namespace().to_owned(),
            client,
            name: name.into(),
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_cancel: true,
            metrics: ElectionMetrics::global().clone(),
            clock: Clock::system(),
            random,
            recorder: None,
            on_new_leader: None,
        }
    }

    /// The identity of this candidate.
    pub fn identity(&self) -> &str {
        &self.settings.identity
    }

    /// Waits until this candidate leads. Errors are logged and retried.
    ///
    /// Cancel safe, but if the Lease was just being acquired it may name this candidate all the same, and
    /// others wait for it to expire.
    pub async fn acquire(&self) -> Leadership {
        let (leadership, renewing) = self.acquire_unspawned().await;
        leadership.spawn(renewing)
    }

    /// [`acquire`](Self::acquire) for callers that drive the renewal themselves.
    pub(super) async fn acquire_unspawned(&self) -> (Leadership, Renewing) {
        let settings = &self.settings;
        settings.metrics.leading(&settings.name, false);
        tracing::info!(lease = %settings, identity = settings.identity, "waiting to become leader");
        let mut candidate = Candidate::new(settings);
        let mut reported = None;
        loop {
            let attempt = candidate.try_acquire().await;
            let leader = candidate.leader().map(str::to_owned);
            if leader != reported {
                self.report(leader.as_deref().unwrap_or_default());
                reported = leader;
            }
            match attempt {
                // A response that arrives after the renew deadline is too late: the lease is lost by then.
                Ok(Some(held)) if Instant::now() < held.sent + settings.renew_deadline => {
                    return Leadership::begin(candidate, held);
                }
                Ok(_) => {}
                Err(fault) => tracing::warn!(lease = %settings, %fault, "could not stand for election"),
            }
            let wait = settings.retry_period.mul_f64(1.0 + JITTER * settings.random.unit());
            tokio::time::sleep(wait).await;
        }
    }

    fn report(&self, leader: &str) {
        tracing::info!(lease = %self.settings, leader, "new leader");
        if let Some(on_new_leader) = &self.settings.on_new_leader {
            on_new_leader(leader);
        }
    }

    /// Waits until this candidate leads, runs `work`, then releases the lease.
    ///
    /// When the lease is lost, the work is dropped before another candidate can lead. Use
    /// [`acquire`](Self::acquire) to stop it gracefully; tasks that the work has spawned stop themselves by
    /// the [`LeadershipHandle`].
    pub async fn lead<T, F>(&self, work: impl FnOnce(LeadershipHandle) -> F) -> Result<T, LeaseLost>
    where
        F: Future<Output = T>,
    {
        let leadership = self.acquire().await;
        let handle = leadership.handle();
        let outcome = tokio::select! {
            biased;
            () = handle.ended() => None,
            done = work(handle.clone()) => Some(done),
        };
        leadership.release().await;
        outcome.ok_or_else(|| LeaseLost { lease: self.settings.to_string() })
    }
}

impl fmt::Debug for LeaderElection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElection")
            .field("lease", &self.settings.to_string())
            .field("identity", &self.settings.identity)
            .finish_non_exhaustive()
    }
}

/// Builder of a [`LeaderElection`]. The defaults are client-go's.
#[must_use = "call build() to get the election"]
pub struct LeaderElectionBuilder {
    client: Client,
    namespace: String,
    name: String,
    identity: Option<String>,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    release_on_cancel: bool,
    metrics: ElectionMetrics,
    clock: Clock,
    random: Random,
    recorder: Option<Recorder>,
    on_new_leader: Option<OnNewLeader>,
}

impl LeaderElectionBuilder {
    /// Sets the namespace of the Lease. Default: the namespace of the client, in a Pod its own.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the identity, which must be unique among all candidates, past ones included. Default: the host
    /// name and a random UUID.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets how long a Lease must be unchanged before another candidate takes it over. Default: 15 s.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long after the last successful renewal was sent this candidate stops leading. The rest of the
    /// lease duration is the time in which its work can stop. Default: 10 s.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the wait between attempts. Candidates add up to 120 % jitter, so that they do not retry together.
    /// Default: 2 s.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Whether to empty the Lease when the [`Leadership`] is dropped, which lets the next leader start at
    /// once. Default: true. Set it to false if work may outlive the guard.
    pub fn release_on_cancel(mut self, release: bool) -> Self {
        self.release_on_cancel = release;
        self
    }

    /// Uses these metrics instead of the global ones.
    pub fn metrics(mut self, metrics: &ElectionMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Sets the clock for the timestamps in the Lease. They are informational and never compared.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of jitter and of the default identity.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Records events about the Lease when this candidate starts and stops leading.
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Sets a callback for changes of the leader, this candidate included. The name is empty when there is no
    /// leader. Must not block.
    pub fn on_new_leader(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(callback));
        self
    }

    /// Validates the settings and creates the election.
    pub fn build(self) -> Result<LeaderElection, ElectionError> {
        let (lease, deadline, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let lease_seconds = i32::try_from(lease.as_secs())
            .ok()
            .filter(|seconds| *seconds > 0 && lease.subsec_nanos() == 0)
            .ok_or(ElectionError::LeaseDuration(lease))?;
        if deadline >= lease {
            return Err(ElectionError::RenewDeadline { deadline, lease });
        }
        if retry.is_zero() || retry >= deadline || retry.mul_f64(JITTER) >= deadline {
            return Err(ElectionError::RetryPeriod { retry, deadline });
        }
        if self.name.is_empty() {
            return Err(ElectionError::NoName);
        }
        let identity = self.identity.unwrap_or_else(|| default_identity(&self.random));
        if identity.is_empty() {
            return Err(ElectionError::NoIdentity);
        }
        let settings = Arc::new(Settings {
            client: self.client,
            namespace: self.namespace,
            name: self.name,
            identity,
            lease_duration: lease,
            lease_seconds,
            renew_deadline: deadline,
            retry_period: retry,
            request_timeout: deadline / 2,
            release_on_cancel: self.release_on_cancel,
            metrics: self.metrics,
            clock: self.clock,
            random: self.random,
            recorder: self.recorder,
            on_new_leader: self.on_new_leader,
        });
        Ok(LeaderElection { settings })
    }
}

impl fmt::Debug for LeaderElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElectionBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
