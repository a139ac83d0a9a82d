//! Aggregates, counts and rate-limits events.

use std::{hash::BuildHasher, time::Duration};

use foldhash::fast::FixedState;
use indexmap::IndexSet;
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Time};
use tokio::time::Instant;

use super::{lru::Lru, recorder::event_name};
use kubewright_core::Random;

/// Options of the event correlator, as client-go's `CorrelatorOptions`. The defaults are client-go's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorrelatorOptions {
    /// Events of a component about an object that may be recorded at once (25).
    pub burst: u32,
    /// Time until another event may be recorded (5 minutes).
    pub refill_interval: Duration,
    /// Number of different messages from which on similar events are aggregated (10).
    pub max_similar: usize,
    /// Time without a similar event after which aggregation starts over (10 minutes).
    pub aggregation_interval: Duration,
    /// Number of objects in each cache (4096).
    pub cache_size: usize,
}

impl Default for CorrelatorOptions {
    fn default() -> Self {
        Self {
            burst: 25,
            refill_interval: Duration::from_mins(5),
            max_similar: 10,
            aggregation_interval: Duration::from_mins(10),
            cache_size: 4096,
        }
    }
}

/// An event to be written.
#[derive(Debug)]
pub(super) struct Correlated {
    pub(super) event: Event,
    /// Whether it repeats an event that was written, whose count is to be raised.
    pub(super) repeat: bool,
}

pub(super) struct Correlator {
    options: CorrelatorOptions,
    random: Random,
    similar: Lru<Aggregate>,
    logged: Lru<Logged>,
    buckets: Lru<Bucket>,
    /// The timestamp of the last name: two events of one object must not get the same name.
    last_name: i128,
}

/// The recent messages of similar events.
struct Aggregate {
    messages: IndexSet<String>,
    last: Instant,
}

/// An event that was written, or should have been.
#[derive(Default)]
struct Logged {
    count: i32,
    name: Option<String>,
    first: Option<Time>,
}

impl Correlator {
    pub(super) fn new(options: CorrelatorOptions, random: Random) -> Self {
        let cache_size = options.cache_size;
        Self {
            options,
            random,
            similar: Lru::new(cache_size),
            logged: Lru::new(cache_size),
            buckets: Lru::new(cache_size),
            last_name: 0,
        }
    }

    /// Returns the event to write, or `None` if the rate limit is exceeded.
    pub(super) fn correlate(&mut self, event: Event) -> Option<Correlated> {
        let now = Instant::now();
        let (event, key) = self.aggregate(event, now);
        let (event, repeat) = self.count(event, &key);
        let CorrelatorOptions { burst, refill_interval, .. } = self.options;
        let bucket = self.buckets.entry(&spam_key(&event), || Bucket { tokens: burst, since: now });
        bucket.take(now, burst, refill_interval).then_some(Correlated { event, repeat })
    }

    /// Returns the event, or the aggregate of similar ones, and the key under which it is counted.
    fn aggregate(&mut self, event: Event, now: Instant) -> (Event, String) {
        let aggregate_key = aggregate_key(&event);
        let message = event.message.clone().unwrap_or_default();
        let similar =
            self.similar.entry(&aggregate_key, || Aggregate { messages: IndexSet::new(), last: now });
        if now.duration_since(similar.last) > self.options.aggregation_interval {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.clone());
        if similar.messages.len() < self.options.max_similar {
            let key = format!("{aggregate_key}\0{message}");
            return (event, key);
        }
        // The oldest message is evicted, or the set would grow without limit.
        similar.messages.shift_remove_index(0);
        let mut combined = event;
        combined.message = Some(format!("(combined from similar events): {message}"));
        (combined, aggregate_key)
    }

    /// Sets the count and name of the event.
    fn count(&mut self, mut event: Event, key: &str) -> (Event, bool) {
        let logged = self.logged.entry(key, Logged::default);
        let repeat = logged.count > 0;
        if repeat {
            event.metadata.name.clone_from(&logged.name);
            event.first_timestamp.clone_from(&logged.first);
        } else {
            let object = event.involved_object.name.as_deref().unwrap_or_default();
            let time = event.last_timestamp.as_ref().map_or(0, |time| time.0.as_nanosecond());
            self.last_name = time.max(self.last_name + 1);
            let component = event.source.as_ref().and_then(|source| source.component.as_deref());
            let moment = self.last_name ^ component_offset(component.unwrap_or_default());
            let name = event_name(object, moment, &self.random);
            logged.name = Some(name.clone());
            event.metadata.name = Some(name);
            logged.first.clone_from(&event.first_timestamp);
        }
        logged.count = logged.count.saturating_add(1);
        event.count = Some(logged.count);
        (event, repeat)
    }
}

/// Token bucket with one token per refill interval.
struct Bucket {
    tokens: u32,
    /// When the last whole token was added.
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

/// Key of the rate limit: component, host, object and type.
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

/// Key of aggregation: that of the rate limit, the field path and the reason.
fn aggregate_key(event: &Event) -> String {
    let field = event.involved_object.field_path.as_deref().unwrap_or_default();
    format!("{}\0{field}\0{}", spam_key(event), event.reason.as_deref().unwrap_or_default())
}

/// Offset of less than a millisecond by component: in virtual time, two components record events about
/// objects of one name at the same moment, such as a Deployment and its owner.
fn component_offset(component: &str) -> i128 {
    i128::from(FixedState::default().hash_one(component) & 0xF_FFFF)
}
