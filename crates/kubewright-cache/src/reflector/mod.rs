//! Keeping a store in step with the API server, whatever happens on the way.
//!
//! A reflector brings the present state of a kind into a [`ReflectorStore`], then every change, and starts over when
//! it has lost the thread. It decides when to list again, from which version, and how long to wait:
//!
//! | what happens | what it does |
//! |---|---|
//! | start | lists at version 0, from the server's memory |
//! | …with [`streaming`](ListWatch::streaming) | asks for a stream that begins with the present state; falls back to the list |
//! | the watch ends in good order, or in the middle of a line | watches on from the last version |
//! | …within a second and without an event | waits, lists again |
//! | the history is gone (410) | waits, lists at the last version, and if that is gone too, at the newest |
//! | the server does not know our version yet, or any more | lists at the newest version |
//! | connection refused, 429 | waits (as long as the server asked), watches on |
//! | anything else | waits, lists again |
//!
//! Waits grow from 0.8 s to 30 s and start anew after two minutes of peace.
//!
//! Pitfall: a `kube::Client` retries 429, 503 and 504 by itself unless its configuration says otherwise, which hides
//! them from the reflector. Clients made by [`client`](kubewright_client) do not.

mod list;
mod present_state;

use std::{sync::Arc, time::Duration};

use kube::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{
    fault::Fault,
    list_watch::{ListWatch, ListWatchError, WatchEvent, WatchRequest, WatchStream},
    object::Lazy,
    reflector_store::ReflectorStore,
    request::Failure,
    running::Running,
    thread_safe_store::StoreError,
    turns::Turns,
};
use kubewright_core::{Backoff, Random};

/// A watch is asked to end after this time and up to as much again, so that connections move to new servers.
const WATCH_TIMEOUT: Duration = Duration::from_mins(5);
/// What a server may be late in ending a watch before the connection counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this without an event is a fault.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Follows one kind into one store.
///
/// ```no_run
/// # async fn example(client: kube::Client) {
/// use kubewright::cache::{Indexer, ListWatch, Reflector};
/// use kubewright::k8s_openapi::api::core::v1::Pod;
///
/// let pods = Indexer::<Pod>::keyed();
/// let _following = Reflector::new(ListWatch::new(client), pods.clone()).start();
/// # }
/// ```
pub struct Reflector<K: Resource> {
    list_watch: ListWatch<K>,
    store: Arc<dyn ReflectorStore<Lazy<K>>>,
    backoff: Backoff,
    random: Random,
    resync: Option<Duration>,
    page_size: Option<u32>,
    /// The server has refused a stream, and will not do better next time.
    unstreamed: bool,
    /// A list at version 0 came in pages, so the server does not answer from memory: go on asking for pages.
    paginated: bool,
    /// The server has refused the version that we have come to.
    version_unavailable: bool,
    position: Position,
}

/// How far a reflector has come. Clones show the same place.
#[derive(Debug, Clone, Default)]
pub struct Position(Arc<Mutex<String>>);

impl Position {
    /// The last version that the store was told of; empty before the first list.
    pub fn resource_version(&self) -> String {
        self.0.lock().clone()
    }

    fn set(&self, resource_version: &str) {
        resource_version.clone_into(&mut self.0.lock());
    }

    /// Whether this version lies behind the place already come to.
    fn is_past(&self, resource_version: &str) -> bool {
        match (self.0.lock().parse::<u64>(), resource_version.parse::<u64>()) {
            (Ok(here), Ok(there)) => there < here,
            _ => false,
        }
    }
}

/// What to do when a watch is over.
enum Next {
    WatchOn,
    ListAgain,
}

impl<K: Resource> Reflector<K> {
    /// Follows what `list_watch` asks for into `store`.
    pub fn new(list_watch: ListWatch<K>, store: impl ReflectorStore<Lazy<K>> + 'static) -> Self {
        Self {
            list_watch,
            store: Arc::new(store),
            backoff: Backoff::reflector(),
            random: Random::default(),
            resync: None,
            page_size: None,
            unstreamed: false,
            paginated: false,
            version_unavailable: false,
            position: Position::default(),
        }
    }

    /// Calls [`ReflectorStore::resync`] in this interval. It costs no request.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.resync = Some(interval).filter(|interval| !interval.is_zero());
        self
    }

    /// How long to wait after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Where jitter and time-outs come from.
    #[must_use]
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Always lists in pages of this size. By default large lists come in pages only where the server does not
    /// answer them from memory.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = Some(objects).filter(|objects| *objects > 0);
        self
    }

    /// How far the reflector has come, readable while it runs.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    fn report(&self, error: ListWatchError) {
        self.list_watch.faults().report(&Fault::ListWatch(error));
    }

    fn settle(&self, stored: Result<(), StoreError>) {
        if let Err(StoreError::Index(error)) = stored {
            self.list_watch.faults().report(&Fault::Index(error));
        }
    }
}

impl<K: Resource + DeserializeOwned> Reflector<K> {
    /// Follows on a task of its own, until the guard is dropped.
    pub fn start(self) -> Running
    where
        K: Send + Sync + 'static,
        K::DynamicType: Send + Sync,
    {
        Running::spawn(|stopped| async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = self.run() => {}
            }
        })
    }

    /// Follows for ever. Stop it by dropping the future.
    pub async fn run(mut self) {
        let resync = {
            let (store, interval) = (Arc::clone(&self.store), self.resync);
            async move {
                let Some(interval) = interval else { return std::future::pending().await };
                loop {
                    sleep(interval).await;
                    // Stores that can fail here tell their own consumer.
                    let _ = store.resync();
                }
            }
        };
        tokio::select! {
            biased;
            () = self.follow() => {}
            () = resync => {}
        }
    }

    async fn follow(&mut self) {
        loop {
            if let Err(error) = self.list_and_watch().await {
                self.report(error);
            }
            let wait = self.backoff.next(&self.random);
            sleep(wait).await;
        }
    }

    /// Brings the present state in and follows the changes until they cannot be followed any more.
    async fn list_and_watch(&mut self) -> Result<(), ListWatchError> {
        let mut stream = None;
        if self.list_watch.is_streaming() && !self.unstreamed {
            stream = self.stream_present_state().await;
            self.unstreamed = stream.is_none();
        }
        if stream.is_none() {
            self.list().await?;
        }
        loop {
            let watch = match stream.take() {
                Some(watch) => watch,
                None => match self.list_watch.open_watch(&self.watch_request(false)).await {
                    Ok(watch) => watch,
                    Err(error) if error.is_connection_refused() || error.is_too_many_requests() => {
                        self.wait_after(error).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match self.follow_watch(watch).await? {
                Next::WatchOn => {}
                Next::ListAgain => return Ok(()),
            }
        }
    }

    async fn wait_after(&mut self, error: ListWatchError) {
        let wait = self.backoff.next(&self.random).max(error.retry_after().unwrap_or_default());
        self.report(error);
        sleep(wait).await;
    }

    fn watch_request(&self, send_initial_events: bool) -> WatchRequest {
        WatchRequest {
            resource_version: if self.version_unavailable {
                String::new()
            } else {
                self.position.resource_version()
            },
            timeout: WATCH_TIMEOUT.mul_f64(1.0 + self.random.unit()),
            send_initial_events,
        }
    }

    fn come_to(&self, resource_version: &str) {
        self.position.set(resource_version);
        self.store.observed(resource_version);
    }

    /// Follows one watch to its end.
    async fn follow_watch(&mut self, mut watch: WatchStream<K>) -> Result<Next, ListWatchError> {
        let started = Instant::now();
        let longest = WATCH_TIMEOUT * 2 + WATCH_GRACE;
        let (mut seen_any, mut turns) = (false, Turns::default());
        let ended = loop {
            let Ok(batch) = timeout(longest, watch.next_batch(&|_| None)).await else {
                break Some(self.list_watch.silent("watch", longest));
            };
            let Some(batch) = batch else { break None };
            let events = batch.len();
            if let Some(error) = self.take_batch(batch, &mut seen_any) {
                break Some(error);
            }
            turns.end_of_events(events).await;
        };
        match ended {
            Some(error) if error.is_expired() => {
                self.report(error);
                Ok(Next::ListAgain)
            }
            Some(error) if error.is_too_many_requests() => {
                self.wait_after(error).await;
                Ok(Next::WatchOn)
            }
            Some(error) if matches!(error.failure, Failure::Refused { .. }) => Err(error),
            // Broken off: as good as ended, for the next watch goes on where this one stopped.
            broken => {
                let too_short = !seen_any && started.elapsed() < SHORT_WATCH;
                if let Some(error) = broken {
                    self.report(error);
                }
                Ok(if too_short { Next::ListAgain } else { Next::WatchOn })
            }
        }
    }

    /// Hands events on. Returns the error that ends the watch, if one is among them.
    fn take_batch(
        &self,
        batch: std::collections::VecDeque<Result<WatchEvent<K>, ListWatchError>>,
        seen_any: &mut bool,
    ) -> Option<ListWatchError> {
        let mut version = None;
        let mut ended = None;
        for event in batch {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            };
            *seen_any = true;
            match event.resource_version() {
                // A bookmark from the past, or the same once more, says nothing.
                Some(past) if matches!(event, WatchEvent::Bookmark { .. }) && self.position.is_past(past) => {
                    continue;
                }
                Some(newer) => {
                    self.position.set(newer);
                    version = Some(newer.to_owned());
                }
                None => {}
            }
            match event {
                WatchEvent::Added(object) => self.settle(self.store.add(object)),
                WatchEvent::Modified(object) => self.settle(self.store.update(object)),
                WatchEvent::Deleted(object) => self.settle(self.store.delete(object)),
                WatchEvent::Bookmark { .. } | WatchEvent::PassedOver { .. } => {}
            }
        }
        if let Some(version) = version {
            self.store.observed(&version);
        }
        ended
    }
}
