//! Log of the demo: events of the cluster and state changes of objects.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use app_status::{
    Row,
    show::{Change, What, mark},
    terminal::{Ink, Line},
};
use k8s_openapi::api::core::v1::Event;
use kubewright::cache::{Event as Seen, InformerFactory, Registration};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of lines.
const KEPT: usize = 200;

/// Lines with the time since the start. Clones share the log.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Mutex<Lines>>,
    started: Instant,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<Line>,
    /// The number of lines written in all.
    written: u64,
}

impl Log {
    /// Creates an empty log that starts now.
    pub fn new() -> Self {
        Self { shared: Arc::default(), started: Instant::now() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Adds a message of the demo itself.
    pub fn say(&self, text: impl Into<String>) {
        self.push(Line::new().cell(Ink::Blue, "demo", 8).then(Ink::Plain, text));
    }

    fn push(&self, line: Line) {
        let seconds = self.elapsed().as_secs_f64();
        let stamped = Line::new().then(Ink::Dim, format!("{seconds:>7.2}s  ")).and(line);
        let mut lines = self.shared.lock();
        lines.kept.push_back(stamped);
        lines.written += 1;
        if lines.kept.len() > KEPT {
            lines.kept.pop_front();
        }
    }

    /// The newest lines, oldest first.
    pub fn last(&self, count: usize) -> Vec<Line> {
        let lines = self.shared.lock();
        lines.kept.iter().skip(lines.kept.len().saturating_sub(count)).cloned().collect()
    }

    /// The lines since the last call with the same `seen`.
    pub fn since(&self, seen: &mut u64) -> Vec<Line> {
        let new = usize::try_from(self.shared.lock().written.saturating_sub(*seen)).unwrap_or(KEPT);
        let lines = self.last(new);
        *seen += new as u64;
        lines
    }

    /// Logs state changes and deletions of objects.
    pub fn changes(&self, changes: &[Change], states: &mut BTreeMap<String, &'static str>) {
        for Change { change, row } in changes {
            let (name, word) = (name(row), row.health.state.word());
            if *change == What::Removed {
                states.remove(&name);
                self.push(Line::new().cell(Ink::Dim, "gone", 8).then(Ink::Plain, name));
            } else if states.insert(name.clone(), word) != Some(word) {
                let (sign, ink) = mark(row.health.state);
                let line =
                    Line::new().cell(ink, "object", 8).then(Ink::Plain, name).then(Ink::Dim, " is now ");
                self.push(line.then(ink, format!("{sign} {word}")));
            }
        }
    }

    /// Logs the events that are recorded in the cluster while the guard lives and the factory runs.
    pub fn events(&self, factory: &InformerFactory) -> Registration {
        let log = self.clone();
        factory.informer::<Event>().on_event(move |seen| {
            // An updated event has only a higher count.
            if let Seen::Added { object, .. } = seen
                && let Ok(event) = object.load()
            {
                log.push(line(&event));
            }
        })
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("written", &self.shared.lock().written).finish_non_exhaustive()
    }
}

/// `Kind namespace/name`, as the operators name expected objects.
pub fn name(row: &Row) -> String {
    format!("{} {}", row.kind, row.path())
}

fn line(event: &Event) -> Line {
    let regarding = &event.involved_object;
    let (kind, name) = (regarding.kind.as_deref().unwrap_or("?"), regarding.name.as_deref().unwrap_or("?"));
    let ink = if event.type_.as_deref() == Some("Warning") { Ink::Yellow } else { Ink::Cyan };
    let message = event.message.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
    Line::new()
        .cell(ink, "event", 8)
        .then(Ink::Plain, format!("{kind} {name} "))
        .then(ink, event.reason.clone().unwrap_or_default())
        .then(Ink::Dim, format!("  {message}"))
}
