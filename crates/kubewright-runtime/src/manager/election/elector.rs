//! Standing for election.

use std::{fmt, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::time::Instant;

use super::{
    candidate::Candidate,
    identity::default_identity,
    leadership::{Leadership, Renewing, Term},
    metrics::ElectionMetrics,
};
use crate::events::{Recorder, Reference};
use kubewright_core::{Clock, Random};

/// How much longer than the retry period a candidate waits at most, as a share of it.
const JITTER: f64 = 1.2;

/// Why there can be no election with these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The Lease holds whole seconds.
    #[error("the lease duration of {0:?} must be a whole number of seconds, and at least one")]
    LeaseDuration(Duration),
    /// A leader must notice that it is none before others act.
    #[error("the renew deadline of {deadline:?} must be shorter than the lease duration of {lease:?}")]
    RenewDeadline {
        /// The renew deadline.
        deadline: Duration,
        /// The lease duration.
        lease: Duration,
    },
    /// There must be time for a second try.
    #[error(
        "the retry period of {retry:?} must be above zero, and 1.2 times of it below the renew deadline of {deadline:?}"
    )]
    RetryPeriod {
        /// The retry period.
        retry: Duration,
        /// The renew deadline.
        deadline: Duration,
    },
    /// Nobody can lead without a name.
    #[error("the identity is empty: leave it out for a unique one, or give each candidate its own")]
    NoIdentity,
    /// The Lease has no name.
    #[error("the Lease has no name: give all candidates for the same work the same one")]
    NoName,
}

/// The lease is lost, and what ran under it was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the lease {lease} was lost and the work under it stopped; start anew to stand for election again")]
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
    /// Says in an event of the Lease what became of us.
    pub(super) fn announce(&self, what: &str) {
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

/// A candidate for a Lease. Clones are the same candidate and should not stand at the same time.
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
/// let leadership = election.acquire().await;            // waits for as long as somebody else leads
/// let term = leadership.term();
/// assert!(term.holds());
/// leadership.release().await;                           // the next one need not wait
/// assert!(!term.holds());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LeaderElection {
    settings: Arc<Settings>,
}

impl LeaderElection {
    /// Begins a candidacy for the Lease of this name, in the namespace of the client.
    pub fn builder(client: Client, name: impl Into<String>) -> Builder {
        let random = Random::from_entropy();
        Builder {
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

    /// The name under which we stand.
    pub fn identity(&self) -> &str {
        &self.settings.identity
    }

    /// Waits until we lead. What goes wrong meanwhile is logged and tried again.
    ///
    /// Dropping the future ends the candidacy. If it was just about to succeed, the Lease may name us all the same,
    /// and the others wait for it to run out.
    pub async fn acquire(&self) -> Leadership {
        let (leadership, renewing) = self.campaign().await;
        leadership.spawn(renewing)
    }

    /// [`acquire`](Self::acquire) for those who drive the renewal themselves.
    pub(super) async fn campaign(&self) -> (Leadership, Renewing) {
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
                // An answer that took too long to arrive is as good as none: the term would have ended.
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
        if let Some(tell) = &self.settings.on_new_leader {
            tell(leader);
        }
    }

    /// Waits until we lead, then runs `work`. When it ends, the lease is given back.
    ///
    /// When the lease is lost first, the work is dropped where it stands, before anybody else can act. Work that wants
    /// to stop in its own way uses [`acquire`](Self::acquire); tasks that the work has spawned stop themselves by the
    /// [`Term`].
    pub async fn lead<T, F>(&self, work: impl FnOnce(Term) -> F) -> Result<T, LeaseLost>
    where
        F: Future<Output = T>,
    {
        let leadership = self.acquire().await;
        let term = leadership.term();
        let outcome = tokio::select! {
            biased;
            () = term.ended() => None,
            done = work(term.clone()) => Some(done),
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

/// Sets the terms of an election. The defaults are client-go's.
#[must_use = "call build() to stand for election"]
pub struct Builder {
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

impl Builder {
    /// Where the Lease is. Default: the namespace of the client, in a Pod its own.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The name under which we stand. Must be unique among the candidates, and best among all that ever were. Default:
    /// the name of the host and a random UUID.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// How long others wait, after the last sign of life that they saw, before they take over. Default: 15 s.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// How long after the last renewal that succeeded, from when it was sent, we stop leading. What remains of the lease
    /// duration is the time the work has to wind down. Default: 10 s.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// How long to wait between tries. Candidates wait up to 2.2 times as long, so that they do not come all at once.
    /// Default: 2 s.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Whether to empty the Lease when the [`Leadership`] is dropped. Default: yes. Turn it off where the work cannot be
    /// stopped before: the next leader starts at once.
    pub fn release_on_cancel(mut self, release: bool) -> Self {
        self.release_on_cancel = release;
        self
    }

    /// Counts into this set instead of the one of the process.
    pub fn metrics(mut self, metrics: &ElectionMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Takes the times that are written into the Lease from this clock. They are for people; nothing is decided by them.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Draws waiting times and the default identity from this source.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Says in events of the Lease when we begin and stop to lead.
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Tells who leads whenever that changes, ourselves included; an empty name is nobody. Must not block.
    pub fn on_new_leader(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(tell));
        self
    }

    /// Checks the settings.
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

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
