//! Requests of one candidate: acquires, renews and releases the Lease.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, api::PostParams};
use tokio::time::Instant;

use super::{
    elector::Settings,
    record::{Observation, Times, holder},
};
use kubewright_client::{Refusal as _, error::plain_text};

/// Error of one attempt; the next one may succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", plain_text(.0))]
    Refused(#[from] kube::Error),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("the Lease has no {0}")]
    Malformed(&'static str),
}

impl Fault {
    fn is(&self, predicate: impl Fn(&kube::Error) -> bool) -> bool {
        matches!(self, Self::Refused(error) if predicate(error))
    }
}

/// A lease that this candidate holds.
#[derive(Debug)]
pub(super) struct Held {
    /// The object as last read, to be replaced.
    lease: Lease,
    acquired: MicroTime,
    pub(super) transitions: i32,
    /// When the write that acquired or renewed the lease was sent.
    pub(super) sent: Instant,
}

/// Outcome of a renewal.
pub(super) enum Renewal {
    Renewed,
    /// Another candidate holds the Lease.
    Taken,
}

pub(super) struct Candidate {
    api: Api<Lease>,
    settings: Arc<Settings>,
    times: Times,
    seen: Option<Observation>,
    /// Specs that were sent without a response: they may have been written, or may be yet.
    unanswered: Vec<LeaseSpec>,
}

impl Candidate {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        let api = Api::namespaced(settings.client.clone(), &settings.namespace);
        Self {
            api,
            settings: Arc::clone(settings),
            times: Times::default(),
            seen: None,
            unanswered: Vec::new(),
        }
    }

    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The identity of the current leader, as last observed.
    pub(super) fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|seen| holder(&seen.spec))
    }

    /// Acquires the lease if it is free.
    pub(super) async fn try_acquire(&mut self) -> Result<Option<Held>, Fault> {
        let ours = self.settings.lease_duration;
        let Some(lease) = self.get().await? else {
            // Deleting the Lease does not stop its holder: wait for its lease duration.
            if self.seen.as_ref().is_some_and(|seen| seen.is_held(ours)) {
                return Ok(None);
            }
            let before = self.seen.as_ref().and_then(|seen| seen.spec.lease_transitions);
            return self.create(before.map_or(0, next_transitions)).await.map(Some);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let mine = self.is_unanswered(&spec);
        Observation::observe(&mut self.seen, &spec);
        if !mine && self.seen.as_ref().is_some_and(|seen| seen.is_held(ours)) {
            return Ok(None);
        }
        let transitions = spec.lease_transitions.unwrap_or_default();
        // An earlier write without a response has acquired the lease already: keep its acquire time and
        // transitions.
        let (acquired, transitions) =
            if mine { (spec.acquire_time, transitions) } else { (None, next_transitions(transitions)) };
        self.replace(lease, acquired, transitions).await.map(Some)
    }

    /// Renews the lease.
    pub(super) async fn renew(&mut self, held: &mut Held) -> Result<Renewal, Fault> {
        match self.replace(held.lease.clone(), Some(held.acquired.clone()), held.transitions).await {
            Ok(renewed) => {
                *held = renewed;
                return Ok(Renewal::Renewed);
            }
            Err(fault) => {
                tracing::debug!(%fault, lease = %self.settings, "reading the lease before the next write");
            }
        }
        self.settings.metrics.slow_path(&self.settings.name);
        let Some(lease) = self.get().await? else {
            let created = self.create(held.transitions).await?;
            *held = created;
            return Ok(Renewal::Renewed);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let mine = held.lease.spec.as_ref() == Some(&spec) || self.is_unanswered(&spec);
        Observation::observe(&mut self.seen, &spec);
        if !mine && holder(&spec).is_some() {
            return Ok(Renewal::Taken);
        }
        *held = self.replace(lease, Some(held.acquired.clone()), held.transitions).await?;
        Ok(Renewal::Renewed)
    }

    /// Empties the lease, so that the next leader need not wait for it to expire. The work must have stopped.
    pub(super) async fn release(&mut self, mut held: Held) -> Result<(), Fault> {
        loop {
            let now = self.times.next(&self.settings.clock);
            let mut lease = held.lease.clone();
            lease.spec = Some(LeaseSpec {
                // As client-go writes it, for candidates that look at the duration only.
                lease_duration_seconds: Some(1),
                lease_transitions: Some(held.transitions),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                ..LeaseSpec::default()
            });
            match self.put(&lease).await {
                Ok(_) => return Ok(()),
                Err(fault) if fault.is(kube::Error::is_conflict) => {}
                Err(fault) if fault.is(kube::Error::is_not_found) => return Ok(()),
                Err(fault) => return Err(fault),
            }
            // The Lease was changed by a renewal of ours still in flight, by a new label, or by a new leader.
            let Some(lease) = self.get().await? else { return Ok(()) };
            let spec = lease.spec.clone().unwrap_or_default();
            let mine = holder(&spec) == Some(&*self.settings.identity)
                && spec.acquire_time.as_ref() == Some(&held.acquired);
            if !mine {
                return Ok(());
            }
            held.lease = lease;
        }
    }

    fn is_unanswered(&self, spec: &LeaseSpec) -> bool {
        self.unanswered.contains(spec)
    }

    fn spec(&mut self, acquired: Option<MicroTime>, transitions: i32) -> LeaseSpec {
        let now = self.times.next(&self.settings.clock);
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(self.settings.lease_seconds),
            acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    async fn create(&mut self, transitions: i32) -> Result<Held, Fault> {
        let metadata = ObjectMeta {
            name: Some(self.settings.name.clone()),
            namespace: Some(self.settings.namespace.clone()),
            ..ObjectMeta::default()
        };
        let spec = self.spec(None, transitions);
        let lease = Lease { metadata, spec: Some(spec.clone()) };
        let sent = self.sending(spec);
        let api = self.api.clone();
        let created = self.limit(api.create(&PostParams::default(), &lease)).await;
        self.answered(created, sent)
    }

    async fn replace(
        &mut self,
        mut lease: Lease,
        acquired: Option<MicroTime>,
        transitions: i32,
    ) -> Result<Held, Fault> {
        let spec = self.spec(acquired, transitions);
        lease.spec = Some(spec.clone());
        let sent = self.sending(spec);
        let replaced = self.put(&lease).await;
        self.answered(replaced, sent)
    }

    /// Notes a spec as sent: from here on it may be written, whatever the response.
    fn sending(&mut self, spec: LeaseSpec) -> Instant {
        // Many are outstanding only while no request gets through; the oldest have been superseded.
        if self.unanswered.len() == 16 {
            self.unanswered.remove(0);
        }
        self.unanswered.push(spec);
        Instant::now()
    }

    fn answered(&mut self, answer: Result<Lease, Fault>, sent: Instant) -> Result<Held, Fault> {
        let lease = answer?;
        // Updates carry a resource version: what was sent before this one can no longer be written.
        self.unanswered.clear();
        let spec = lease.spec.clone().unwrap_or_default();
        let acquired = spec.acquire_time.clone().ok_or(Fault::Malformed("acquireTime"))?;
        let transitions = spec.lease_transitions.unwrap_or_default();
        self.seen = Some(Observation::new(spec));
        Ok(Held { lease, acquired, transitions, sent })
    }

    async fn get(&self) -> Result<Option<Lease>, Fault> {
        match self.limit(self.api.get(&self.settings.name)).await {
            Ok(lease) if lease.metadata.resource_version.is_none() => {
                Err(Fault::Malformed("resourceVersion"))
            }
            Ok(lease) => Ok(Some(lease)),
            Err(fault) if fault.is(kube::Error::is_not_found) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn put(&self, lease: &Lease) -> Result<Lease, Fault> {
        self.limit(self.api.replace(&self.settings.name, &PostParams::default(), lease)).await
    }

    async fn limit<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Fault> {
        let limit = self.settings.request_timeout;
        Ok(tokio::time::timeout(limit, request).await.map_err(|_| Fault::TimedOut(limit))??)
    }
}

/// The next value of `leaseTransitions`.
fn next_transitions(transitions: i32) -> i32 {
    transitions.max(0).saturating_add(1)
}
