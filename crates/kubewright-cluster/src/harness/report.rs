//! Report of a failed test: changed objects, events and the last reconciles, in cluster time.
//!
//! Objects that every cluster has are left out, and so is all data: a Secret is named, not shown.

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
    seen::ChangedObject,
    table::{Table, short},
};
use crate::Cluster;

/// Maximum numbers of rows.
const OBJECTS: usize = 40;
const EVENTS: usize = 25;
const RECONCILES: usize = 30;
/// Maximum length of a text in a table.
const TEXT: usize = 240;

/// Journals of the operators' controllers and, separately because there are so many entries, of the built-in
/// ones.
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

/// Reports on a cluster, even after the test has dropped it.
pub(crate) struct Reporter {
    changes: Changes,
    client: Client,
    clock: Clock,
    journals: Journals,
    /// When the test started.
    began: Timestamp,
}

impl Reporter {
    pub(crate) fn new(cluster: &Cluster) -> Self {
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
        objects.retain(|object| !object.is_cluster_default());
        let (operators, controllers) = (&self.journals.operators, &self.journals.controllers);
        Report {
            began: self.began,
            now: self.clock.now(),
            objects,
            events: self.events().await,
            operators: operators.last(RECONCILES),
            controllers: recent_reconciles(controllers),
        }
    }

    async fn events(&self) -> Vec<Event> {
        let listed = Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await;
        // Errors are ignored here: the failure of the test itself is printed.
        let mut events = listed.map(|list| list.items).unwrap_or_default();
        events.retain(|event| {
            event.type_.as_deref() == Some("Warning") || event.involved_object.kind.as_deref() != Some("Node")
        });
        events.sort_by_key(|event| (last_seen(event), event.metadata.resource_version.clone()));
        events
    }
}

/// The last reconciles of the built-in controllers without those caused by heartbeats of nodes.
fn recent_reconciles(journal: &Journal) -> Vec<Reconciled> {
    let mut entries = journal.last(usize::MAX);
    entries.retain(|one| {
        let failed = matches!(one.ended, Ended::Failed(_) | Ended::GaveUp(_));
        failed || !matches!(&*one.controller, "node-lifecycle" | "ttl")
    });
    entries.split_off(entries.len().saturating_sub(RECONCILES))
}

/// When an event was last observed.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    series.map(|time| time.0).or(last).or_else(|| event.event_time.as_ref().map(|time| time.0))
}

/// State of a cluster, in human-readable form.
pub(crate) struct Report {
    began: Timestamp,
    now: Timestamp,
    objects: Vec<ChangedObject>,
    events: Vec<Event>,
    operators: Vec<Reconciled>,
    controllers: Vec<Reconciled>,
}

/// The newest items, and their number for the heading.
fn newest<T>(all: &[T], limit: usize) -> (&[T], String) {
    let left_out = all.len().saturating_sub(limit);
    let counted =
        if left_out == 0 { all.len().to_string() } else { format!("the newest {limit} of {}", all.len()) };
    (&all[left_out..], counted)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = (self.now.duration_since(self.began).as_secs_f64() * 1000.0).round() / 1000.0;
        writeln!(f, "the cluster at {}, {passed} s after the test began", format_time(self.now))?;

        let (objects, counted) = newest(&self.objects, OBJECTS);
        writeln!(f, "\nobjects that changed, newest last ({counted}):")?;
        for object in objects {
            object.fmt(f)?;
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
                last_seen(event).map(format_time).unwrap_or_default(),
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
                    format_time(one.at),
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

/// A time in milliseconds.
fn format_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

impl Cluster {
    /// Returns the report of a failed test: the objects that have changed since the cluster started (status
    /// and conditions), the events, and the last reconciles. For tests without the attribute.
    pub async fn report(&self) -> String {
        Reporter::new(self).report().await.to_string()
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
