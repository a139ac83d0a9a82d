//! Which events are the same, similar, or too many.

use std::{hash::BuildHasher, time::Duration};

use foldhash::fast::FixedState;
use indexmap::IndexSet;
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Time};
use tokio::time::Instant;

use super::{lru::Lru, recorder::event_name};
use kubewright_core::Random;

/// The numbers of the correlator. The defaults are client-go's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlation {
    /// How many events of a component about an object may come at once (25).
    pub burst: u32,
    /// How long it takes until another may come (5 minutes).
    pub refill: Duration,
    /// From the how-manieth different message on similar events are combined (10).
    pub similar: usize,
    /// After how long without any similar event the count of them starts over (10 minutes).
    pub within: Duration,
    /// How many objects are kept in mind (4096).
    pub memory: usize,
}

impl Default for Correlation {
    fn default() -> Self {
        Self {
            burst: 25,
            refill: Duration::from_mins(5),
            similar: 10,
            within: Duration::from_mins(10),
            memory: 4096,
        }
    }
}

/// What to write.
#[derive(Debug)]
pub(super) struct Correlated {
    pub(super) event: Event,
    /// It is a repeat of one that should be there: raise its count.
    pub(super) repeat: bool,
}

pub(super) struct Correlator {
    numbers: Correlation,
    random: Random,
    similar: Lru<Similar>,
    known: Lru<Known>,
    buckets: Lru<Bucket>,
    /// The time in the last name that was given: two events of one object must not get the same.
    last_name: i128,
}

/// The different messages that were similar lately.
struct Similar {
    messages: IndexSet<String>,
    last: Instant,
}

/// An event that was written, or should have been.
#[derive(Default)]
struct Known {
    count: i32,
    name: Option<String>,
    first: Option<Time>,
}

impl Correlator {
    pub(super) fn new(numbers: Correlation, random: Random) -> Self {
        let memory = numbers.memory;
        Self {
            numbers,
            random,
            similar: Lru::new(memory),
            known: Lru::new(memory),
            buckets: Lru::new(memory),
            last_name: 0,
        }
    }

    /// What to write for an event; nothing if there have been too many.
    pub(super) fn correlate(&mut self, event: Event) -> Option<Correlated> {
        let now = Instant::now();
        let (event, key) = self.combine(event, now);
        let (event, repeat) = self.count(event, &key);
        let Correlation { burst, refill, .. } = self.numbers;
        let bucket = self.buckets.entry(&spam_key(&event), || Bucket { tokens: burst, since: now });
        bucket.take(now, burst, refill).then_some(Correlated { event, repeat })
    }

    /// The event, or the one that stands for all that are similar, and the key under which it is counted.
    fn combine(&mut self, event: Event, now: Instant) -> (Event, String) {
        let group = group_key(&event);
        let message = event.message.clone().unwrap_or_default();
        let similar = self.similar.entry(&group, || Similar { messages: IndexSet::new(), last: now });
        if now.duration_since(similar.last) > self.numbers.within {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.clone());
        if similar.messages.len() < self.numbers.similar {
            let key = format!("{group}\0{message}");
            return (event, key);
        }
        // One makes room, or the set would grow for as long as messages keep coming.
        similar.messages.shift_remove_index(0);
        let mut combined = event;
        combined.message = Some(format!("(combined from similar events): {message}"));
        (combined, group)
    }

    /// The event with the count it has by now.
    fn count(&mut self, mut event: Event, key: &str) -> (Event, bool) {
        let known = self.known.entry(key, Known::default);
        let repeat = known.count > 0;
        if repeat {
            event.metadata.name.clone_from(&known.name);
            event.first_timestamp.clone_from(&known.first);
        } else {
            let object = event.involved_object.name.as_deref().unwrap_or_default();
            let time = event.last_timestamp.as_ref().map_or(0, |time| time.0.as_nanosecond());
            self.last_name = time.max(self.last_name + 1);
            let component = event.source.as_ref().and_then(|source| source.component.as_deref());
            let moment = self.last_name ^ apart(component.unwrap_or_default());
            let name = event_name(object, moment, &self.random);
            known.name = Some(name.clone());
            event.metadata.name = Some(name);
            known.first.clone_from(&event.first_timestamp);
        }
        known.count = known.count.saturating_add(1);
        event.count = Some(known.count);
        (event, repeat)
    }
}

/// Tokens that come back one by one.
struct Bucket {
    tokens: u32,
    /// Since when the next token is coming.
    since: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant, burst: u32, refill: Duration) -> bool {
        if refill.is_zero() {
            return true;
        }
        let passed = now.duration_since(self.since).as_nanos() / refill.as_nanos();
        let whole = u32::try_from(passed).unwrap_or(u32::MAX);
        if self.tokens.saturating_add(whole) >= burst {
            (self.tokens, self.since) = (burst, now);
        } else {
            self.tokens += whole;
            self.since += refill * whole;
        }
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }
}

/// Component, host, object and type: who is filtered.
fn spam_key(event: &Event) -> String {
    let (source, object) = (event.source.as_ref(), &event.involved_object);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        source.map(|source| text(&source.component)).unwrap_or_default(),
        source.map(|source| text(&source.host)).unwrap_or_default(),
        text(&object.kind),
        text(&object.namespace),
        text(&object.name),
        text(&object.uid),
        text(&object.api_version),
        text(&event.type_),
    ]
    .join("\0")
}

/// And the reason, and the field: which are similar.
fn group_key(event: &Event) -> String {
    let field = event.involved_object.field_path.as_deref().unwrap_or_default();
    format!("{}\0{field}\0{}", spam_key(event), event.reason.as_deref().unwrap_or_default())
}

/// Less than a millisecond, another one for each component: two of them may speak at the same moment of objects of the
/// same name, a Deployment and what has made it. Where time is virtual they do.
fn apart(component: &str) -> i128 {
    i128::from(FixedState::default().hash_one(component) & 0xF_FFFF)
}
