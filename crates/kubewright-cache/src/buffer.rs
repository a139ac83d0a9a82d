//! The events that a handler has not taken yet: at most one change and one deletion per object.
//!
//! A handler that is slower than the cluster does not get every state that an object went through; it gets the
//! newest, and never misses that an object is gone. So what waits for it is bounded by the number of objects, not by
//! the number of changes.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{event::Event, object::Lazy};
use kubewright_core::ObjectKey;

pub(super) struct Buffer<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    pending: HashMap<ObjectKey, Pending<K>, FixedState>,
    queue: VecDeque<ObjectKey>,
    /// Objects of the initial list that the handler is not done with.
    initial: usize,
    closed: bool,
}

/// What a handler must still be told of one object, in this order.
struct Pending<K> {
    /// The object that the handler knows is gone; or, with nothing known, one it was about to hear of.
    deleted: Option<(Lazy<K>, bool)>,
    /// What there is now, and what the handler knows of it.
    upsert: Option<Upsert<K>>,
    initial: bool,
}

struct Upsert<K> {
    old: Option<Lazy<K>>,
    new: Lazy<K>,
}

/// An event in a handler's hands.
pub(super) struct Delivery<K> {
    pub(super) event: Event<K>,
    initial: bool,
}

impl<K> Buffer<K> {
    pub(super) fn new() -> Self {
        let state = State { pending: HashMap::default(), queue: VecDeque::new(), initial: 0, closed: false };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn push(&self, events: impl IntoIterator<Item = Event<K>>) {
        let mut state = self.state.lock();
        events.into_iter().for_each(|event| state.push(event));
        drop(state);
        self.changed.notify_one();
    }

    /// The next event; None when the informer has stopped and everything was taken.
    pub(super) async fn next(&self) -> Option<Delivery<K>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                if let Some(delivery) = state.pop() {
                    return Some(delivery);
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The handler is done with an event.
    pub(super) fn done(&self, delivery: &Delivery<K>) {
        if delivery.initial {
            self.state.lock().initial -= 1;
        }
    }

    /// Whether the handler is done with everything that was there when it began.
    pub(super) fn initial_done(&self) -> bool {
        self.state.lock().initial == 0
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_waiters();
        // The one consumer may be between its check and its wait only on another thread; a permit covers that.
        self.changed.notify_one();
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().queue.len()
    }
}

impl<K> State<K> {
    fn push(&mut self, event: Event<K>) {
        let key = event.key();
        let queue = &mut self.queue;
        let pending = self.pending.entry(key).or_insert_with_key(|key| {
            queue.push_back(key.clone());
            Pending { deleted: None, upsert: None, initial: false }
        });
        if matches!(event, Event::Added { is_in_initial_list: true, .. }) && !pending.initial {
            pending.initial = true;
            self.initial += 1;
        }
        pending.merge(event);
    }

    fn pop(&mut self) -> Option<Delivery<K>> {
        let key = self.queue.front()?.clone();
        let pending = self.pending.get_mut(&key)?;
        let deleted = pending.deleted.take();
        let last = deleted.is_none() || pending.upsert.is_none();
        let event = match deleted {
            Some((object, final_state_unknown)) => Event::Deleted { object, final_state_unknown },
            None => pending.upsert.take()?.into_event(pending.initial),
        };
        let initial = last && pending.initial;
        if last {
            self.queue.pop_front();
            self.pending.remove(&key);
        }
        Some(Delivery { event, initial })
    }
}

impl<K> Upsert<K> {
    fn into_event(self, is_in_initial_list: bool) -> Event<K> {
        match self.old {
            Some(old) => Event::Updated { old, new: self.new },
            None => Event::Added { object: self.new, is_in_initial_list },
        }
    }
}

impl<K> Pending<K> {
    fn merge(&mut self, event: Event<K>) {
        match event {
            Event::Added { object, .. } => self.upsert = Some(Upsert { old: None, new: object }),
            Event::Updated { old, new } => match &mut self.upsert {
                Some(upsert) => upsert.new = new,
                None => self.upsert = Some(Upsert { old: Some(old), new }),
            },
            Event::Deleted { object, final_state_unknown } => {
                let heard_of_it = self.upsert.take().is_none_or(|upsert| upsert.old.is_some());
                // A successor that the handler never heard of goes silently; what it did hear of must not.
                if heard_of_it || self.deleted.is_none() {
                    self.deleted = Some((object, final_state_unknown));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, uid: &str, version: u32) -> Lazy<ConfigMap> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.metadata.uid = Some(uid.into());
        map.metadata.resource_version = Some(version.to_string());
        Lazy::new(map, &()).unwrap()
    }

    fn added(uid: &str, version: u32) -> Event<ConfigMap> {
        Event::Added { object: object("x", uid, version), is_in_initial_list: false }
    }

    fn updated(uid: &str, from: u32, to: u32) -> Event<ConfigMap> {
        Event::Updated { old: object("x", uid, from), new: object("x", uid, to) }
    }

    fn deleted(uid: &str, version: u32) -> Event<ConfigMap> {
        Event::Deleted { object: object("x", uid, version), final_state_unknown: false }
    }

    fn drain(buffer: &Buffer<ConfigMap>) -> Vec<String> {
        std::iter::from_fn(|| buffer.next().now_or_never().flatten())
            .map(|delivery| {
                buffer.done(&delivery);
                match delivery.event {
                    Event::Added { object, .. } => format!("+{}{}", object.uid(), object.resource_version()),
                    Event::Updated { old, new } => {
                        format!(
                            "{}{}>{}{}",
                            old.uid(),
                            old.resource_version(),
                            new.uid(),
                            new.resource_version()
                        )
                    }
                    Event::Deleted { object, .. } => {
                        format!("-{}{}", object.uid(), object.resource_version())
                    }
                }
            })
            .collect()
    }

    #[test]
    fn changes_that_wait_are_merged_and_deletions_stay() {
        for (events, told) in [
            (vec![added("a", 1), updated("a", 1, 2)], vec!["+a2"]),
            (vec![updated("a", 1, 2), updated("a", 2, 3)], vec!["a1>a3"]),
            (vec![added("a", 1), deleted("a", 2)], vec!["-a2"]),
            (vec![updated("a", 1, 2), deleted("a", 3)], vec!["-a3"]),
            (vec![deleted("a", 1), added("b", 2)], vec!["-a1", "+b2"]),
            (vec![deleted("a", 1), added("b", 2), updated("b", 2, 3)], vec!["-a1", "+b3"]),
            (vec![deleted("a", 1), added("b", 2), deleted("b", 3)], vec!["-a1"]),
            (vec![deleted("a", 1), added("b", 2), deleted("b", 3), added("c", 4)], vec!["-a1", "+c4"]),
        ] {
            let buffer = Buffer::new();
            let trail: Vec<_> = events.iter().map(|event| format!("{event:?}")).collect();
            buffer.push(events);
            assert_eq!(drain(&buffer), told, "{trail:?}");
            assert_eq!(buffer.len(), 0);
        }
    }

    #[test]
    fn a_hundred_thousand_changes_of_one_object_wait_as_one() {
        let buffer = Buffer::new();
        buffer.push([updated("a", 0, 1)]);
        for version in 1..100_000 {
            buffer.push([updated("a", version, version + 1)]);
        }
        assert_eq!(buffer.len(), 1);
        assert_eq!(drain(&buffer), ["a0>a100000"]);
    }

    #[test]
    fn the_initial_list_is_done_when_the_handler_is_done_with_each_of_it() {
        let buffer = Buffer::new();
        buffer.push([Event::Added { object: object("x", "a", 1), is_in_initial_list: true }]);
        buffer.push([updated("a", 1, 2)]);
        let delivery = buffer.next().now_or_never().flatten().unwrap();
        assert!(matches!(delivery.event, Event::Added { is_in_initial_list: true, .. }));
        assert!(!buffer.initial_done());
        buffer.done(&delivery);
        assert!(buffer.initial_done());
    }

    #[test]
    fn an_initial_object_that_goes_and_comes_again_still_counts_once() {
        let buffer = Buffer::new();
        buffer.push([Event::Added { object: object("x", "a", 1), is_in_initial_list: true }]);
        buffer.push([deleted("a", 2), added("b", 3)]);
        assert_eq!(drain(&buffer), ["-a2", "+b3"]);
        assert!(buffer.initial_done());
    }
}
