//! What a failed test prints: the objects that it changed, the events, the last reconciles; all in cluster time.
//!
//! It answers the three questions that people ask next, without a second run: how does it look, what did the cluster say
//! about it, and who did what. Objects that every cluster has are left out, and so is all data: a Secret is named, not
//! shown.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client, api::ListParams};
use kubewright::{
    Clock,
    controller::{Ended, Journal, Reconciled},
};

use super::{
    changes::Changes,
    seen::Seen,
    table::{Table, short},
};
use crate::Cluster;

/// How many of each are printed.
const OBJECTS: usize = 40;
const EVENTS: usize = 25;
const RECONCILES: usize = 30;
/// The longest text in a table.
const TEXT: usize = 240;

/// What the controllers of a cluster have done lately: the operators' and, apart from them because there are so many, the
/// built-in ones'.
#[derive(Debug, Clone)]
pub(crate) struct Journals {
    pub(crate) operators: Journal,
    pub(crate) controllers: Journal,
}

impl Default for Journals {
    fn default() -> Self {
        Self { operators: Journal::of(RECONCILES), controllers: Journal::of(20 * RECONCILES) }
    }
}

/// Somebody who can tell about a cluster after a test has dropped it.
pub(crate) struct Witness {
    changes: Changes,
    client: Client,
    clock: Clock,
    journals: Journals,
    /// When the test began.
    began: Timestamp,
}

impl Witness {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self {
            changes: cluster.changes().clone(),
            client: cluster.client(),
            clock: cluster.clock().clone(),
            journals: cluster.journals().clone(),
            began: cluster.began(),
        }
    }

    pub(crate) async fn report(&self) -> Report {
        let mut objects = self.changes.objects(4 * OBJECTS).await;
        objects.retain(|seen| !seen.is_furniture());
        let (operators, controllers) = (&self.journals.operators, &self.journals.controllers);
        Report {
            began: self.began,
            now: self.clock.now(),
            objects,
            events: self.events().await,
            operators: operators.last(RECONCILES),
            controllers: told(controllers),
        }
    }

    async fn events(&self) -> Vec<Event> {
        let listed = Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await;
        // Whoever fails to tell of a failure keeps quiet about it: the failure itself is printed.
        let mut events = listed.map(|list| list.items).unwrap_or_default();
        events.retain(|event| {
            event.type_.as_deref() == Some("Warning") || event.involved_object.kind.as_deref() != Some("Node")
        });
        events.sort_by_key(|event| (last_seen(event), event.metadata.resource_version.clone()));
        events
    }
}

/// The reconciles of the built-in controllers but for those that every heartbeat of a node causes.
fn told(journal: &Journal) -> Vec<Reconciled> {
    let mut entries = journal.last(usize::MAX);
    entries.retain(|one| {
        let failed = matches!(one.ended, Ended::Failed(_) | Ended::GaveUp(_));
        failed || !matches!(&*one.controller, "node-lifecycle" | "ttl")
    });
    entries.split_off(entries.len().saturating_sub(RECONCILES))
}

/// When an event happened last.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    series.map(|time| time.0).or(last).or_else(|| event.event_time.as_ref().map(|time| time.0))
}

/// The state of a cluster, for people.
pub(crate) struct Report {
    began: Timestamp,
    now: Timestamp,
    objects: Vec<Seen>,
    events: Vec<Event>,
    operators: Vec<Reconciled>,
    controllers: Vec<Reconciled>,
}

/// The newest of a list, and how a heading says how many there are.
fn newest<T>(all: &[T], limit: usize) -> (&[T], String) {
    let left_out = all.len().saturating_sub(limit);
    let counted =
        if left_out == 0 { all.len().to_string() } else { format!("the newest {limit} of {}", all.len()) };
    (&all[left_out..], counted)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = (self.now.duration_since(self.began).as_secs_f64() * 1000.0).round() / 1000.0;
        writeln!(f, "the cluster at {}, {passed} s after the test began", moment(self.now))?;

        let (objects, counted) = newest(&self.objects, OBJECTS);
        writeln!(f, "\nobjects that changed, newest last ({counted}):")?;
        for seen in objects {
            seen.fmt(f)?;
        }

        let (events, counted) = newest(&self.events, EVENTS);
        writeln!(f, "\nevents ({counted}):")?;
        let mut table = Table::new();
        for event in events {
            let about = &event.involved_object;
            let name = about.name.as_deref().unwrap_or_default();
            let about = [
                about.kind.as_deref().unwrap_or_default(),
                " ",
                &namespaced(about.namespace.as_deref(), name),
            ]
            .concat();
            let series = event.series.as_ref().and_then(|series| series.count);
            let times = series.or(event.count).filter(|count| *count > 1);
            let times = times.map(|count| format!(" (×{count})")).unwrap_or_default();
            let message = event.message.as_deref().unwrap_or_default();
            table.row([
                last_seen(event).map(moment).unwrap_or_default(),
                event.type_.clone().unwrap_or_default(),
                event.reason.clone().unwrap_or_default(),
                about,
                format!("{}{times}", short(&message, TEXT)),
            ]);
        }
        table.write(f, "  ")?;

        for (whose, all) in [("operators", &self.operators), ("built-in controllers", &self.controllers)] {
            if all.is_empty() {
                continue;
            }
            writeln!(f, "\nlast reconciles of the {whose}, newest last:")?;
            let mut table = Table::new();
            for one in all {
                let tried = if one.retries > 0 { format!(" (retry {})", one.retries) } else { String::new() };
                table.row([
                    moment(one.at),
                    one.controller.to_string(),
                    one.key.to_string(),
                    format!("{} {}{tried}", one.source, one.cause),
                    format!("{:?}", one.took),
                    short(&one.ended, TEXT),
                ]);
            }
            table.write(f, "  ")?;
        }
        Ok(())
    }
}

fn namespaced(namespace: Option<&str>, name: &str) -> String {
    namespace.filter(|namespace| !namespace.is_empty()).map_or(name.to_owned(), |ns| format!("{ns}/{name}"))
}

/// A time to the millisecond: enough to tell what came first, short enough for a column.
fn moment(time: Timestamp) -> String {
    format!("{time:.3}")
}

impl Cluster {
    /// What a failed test prints: the objects that have changed since the cluster started (status and conditions), the
    /// events, and the last reconciles. For a look in between, and for tests that are not made by the attribute.
    pub async fn report(&self) -> String {
        Witness::of(self).report().await.to_string()
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
