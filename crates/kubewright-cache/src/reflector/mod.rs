//! Reflector: keeps a store in sync with the API server.
//!
//! A reflector lists a kind into a [`ReflectorStore`], applies the changes of a watch, and relists when the
//! watch cannot be resumed. It decides when to relist, from which version, and the back-off:
//!
//! | event | action |
//! |---|---|
//! | start | lists at version 0, from the server's watch cache |
//! | …with [`streaming`](ListWatch::streaming) | watches with initial events; falls back to the list |
//! | the watch ends, or is interrupted | watches from the last version |
//! | …within a second and without an event | backs off, relists |
//! | the version has expired (410) | backs off, relists at the last version, and if that has expired too, at the newest |
//! | the version is unknown to the server | relists at the newest version |
//! | connection refused, 429 | backs off (at least `Retry-After`), watches again |
//! | other errors | backs off, relists |
//!
//! The back-off grows from 0.8 s to 30 s and is reset after two minutes without a failure.
//!
//! Pitfall: a `kube::Client` retries 429, 503 and 504 by itself unless its configuration says otherwise,
//! which hides them from the reflector. Clients made by [`kubewright_client`] do not.

mod list;
mod watch_list;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use kube::Resource;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::{
    fault::Fault,
    list_watch::{ListWatch, ListWatchError, ListerWatcher, WatchEvent, WatchRequest},
    object::{Lazy, Untyped},
    reflector_store::{ReflectorStore, Typed},
    request::ListWatchErrorKind,
    running::Running,
    thread_safe_store::StoreError,
    turns::Budget,
    watch::EventStream,
};
use kubewright_core::{Backoff, Random};

/// Watches time out after this to twice this time, so that connections are balanced over servers.
const WATCH_TIMEOUT: Duration = Duration::from_mins(5);
/// How long after its timeout a watch may stay open before the connection is considered dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this without an event is a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Reflects one kind into one store.
///
/// ```no_run
/// # async fn example(client: kube::Client) {
/// use kubewright::cache::{Indexer, ListWatch, Reflector};
/// use kubewright::k8s_openapi::api::core::v1::Pod;
///
/// let pods = Indexer::<Pod>::with_metadata_key();
/// let _running = Reflector::new(ListWatch::new(client), pods.clone()).start();
/// # }
/// ```
pub struct Reflector<K> {
    follower: Follower,
    kind: PhantomData<fn() -> K>,
}

/// A reflector, whatever kind it is of.
pub(super) struct Follower {
    list_watch: ListerWatcher,
    store: Arc<dyn ReflectorStore<Lazy<Untyped>>>,
    pub(super) backoff: Backoff,
    pub(super) random: Random,
    resync: Option<Duration>,
    page_size: Option<u32>,
    /// Whether the server has rejected a stream of initial events.
    streaming_rejected: bool,
    /// Whether a list at version 0 was paginated, so that the server does not serve it from the watch cache.
    paginated: bool,
    /// Whether the server has rejected the last version.
    version_unavailable: bool,
    pub(super) position: Position,
}

/// The progress of a reflector. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Position(Arc<Mutex<String>>);

impl Position {
    /// Returns the last resource version passed to the store; empty before the first list.
    pub fn resource_version(&self) -> String {
        self.0.lock().clone()
    }

    fn set(&self, resource_version: &str) {
        resource_version.clone_into(&mut self.0.lock());
    }

    /// Returns whether this version is older than the current one.
    fn is_past(&self, resource_version: &str) -> bool {
        match (self.0.lock().parse::<u64>(), resource_version.parse::<u64>()) {
            (Ok(here), Ok(there)) => there < here,
            _ => false,
        }
    }
}

/// Action after the end of a watch.
enum Next {
    Watch,
    Relist,
}

impl<K: Resource> Reflector<K> {
    /// Creates a reflector of `list_watch` into `store`.
    pub fn new(list_watch: ListWatch<K>, store: impl ReflectorStore<Lazy<K>> + 'static) -> Self
    where
        K: 'static,
    {
        let follower = Follower::new(list_watch.into_lister_watcher(), Arc::new(Typed::of(store)));
        Self { follower, kind: PhantomData }
    }

    /// Calls [`ReflectorStore::resync`] in this interval. It costs no request.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.follower.resync = Some(interval).filter(|interval| !interval.is_zero());
        self
    }

    /// How long to wait after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.follower.backoff = backoff;
        self
    }

    /// Where jitter and time-outs come from.
    #[must_use]
    pub fn random(mut self, random: Random) -> Self {
        self.follower.random = random;
        self
    }

    /// Always lists in pages of this size. By default large lists come in pages only where the server does not
    /// answer them from memory.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.follower.page_size = Some(objects).filter(|objects| *objects > 0);
        self
    }

    /// How far the reflector has come, readable while it runs.
    pub fn position(&self) -> Position {
        self.follower.position.clone()
    }

    /// Follows on a task of its own, until the guard is dropped.
    pub fn start(self) -> Running {
        self.follower.start()
    }

    /// Follows for ever. Stop it by dropping the future.
    pub async fn run(self) {
        self.follower.run().await;
    }
}

impl Follower {
    pub(super) fn new(list_watch: ListerWatcher, store: Arc<dyn ReflectorStore<Lazy<Untyped>>>) -> Self {
        Self {
            list_watch,
            store,
            backoff: Backoff::reflector(),
            random: Random::default(),
            resync: None,
            page_size: None,
            streaming_rejected: false,
            paginated: false,
            version_unavailable: false,
            position: Position::default(),
        }
    }

    fn report(&self, error: ListWatchError) {
        self.list_watch.faults().report(&Fault::ListWatch(error));
    }

    fn report_index_error(&self, stored: Result<(), StoreError>) {
        if let Err(StoreError::Index(error)) = stored {
            self.list_watch.faults().report(&Fault::Index(error));
        }
    }
}

impl Follower {
    fn start(self) -> Running {
        Running::spawn(|stopped| async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = self.run() => {}
            }
        })
    }

    pub(super) async fn run(mut self) {
        let resync = {
            let (store, interval) = (Arc::clone(&self.store), self.resync);
            async move {
                let Some(interval) = interval else { return std::future::pending().await };
                loop {
                    sleep(interval).await;
                    // Stores report their errors to their own consumer.
                    let _ = store.resync();
                }
            }
        };
        tokio::select! {
            biased;
            () = self.run_loop() => {}
            () = resync => {}
        }
    }

    async fn run_loop(&mut self) {
        loop {
            if let Err(error) = self.list_and_watch().await {
                self.report(error);
            }
            let wait = self.backoff.next(&self.random);
            sleep(wait).await;
        }
    }

    /// Lists, and watches until a relist is necessary.
    async fn list_and_watch(&mut self) -> Result<(), ListWatchError> {
        let mut stream = None;
        if self.list_watch.streaming && !self.streaming_rejected {
            stream = self.watch_list().await;
            self.streaming_rejected = stream.is_none();
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
            match self.handle_watch(watch).await? {
                Next::Watch => {}
                Next::Relist => return Ok(()),
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

    fn set_resource_version(&self, resource_version: &str) {
        self.position.set(resource_version);
        self.store.update_resource_version(resource_version);
    }

    /// Applies the events of one watch until it ends.
    async fn handle_watch(&mut self, mut watch: EventStream) -> Result<Next, ListWatchError> {
        let started = Instant::now();
        let longest = WATCH_TIMEOUT * 2 + WATCH_GRACE;
        let (mut received_any, mut budget) = (false, Budget::default());
        let ended = loop {
            let Ok(batch) = timeout(longest, watch.next_batch(&|_| None)).await else {
                break Some(self.list_watch.timed_out("watch", longest));
            };
            let Some(batch) = batch else { break None };
            let events = batch.len();
            if let Some(error) = self.apply_events(batch, &mut received_any) {
                break Some(error);
            }
            budget.spend_events(events).await;
        };
        match ended {
            Some(error) if error.is_expired() => {
                self.report(error);
                Ok(Next::Relist)
            }
            Some(error) if error.is_too_many_requests() => {
                self.wait_after(error).await;
                Ok(Next::Watch)
            }
            Some(error) if matches!(error.kind, ListWatchErrorKind::Status { .. }) => Err(error),
            // Interrupted: same as ended, the next watch resumes from the last version.
            broken => {
                let too_short = !received_any && started.elapsed() < SHORT_WATCH;
                if let Some(error) = broken {
                    self.report(error);
                }
                Ok(if too_short { Next::Relist } else { Next::Watch })
            }
        }
    }

    /// Applies events to the store. Returns the error that ends the watch, if any.
    fn apply_events(
        &self,
        batch: std::collections::VecDeque<Result<WatchEvent<Untyped>, ListWatchError>>,
        received_any: &mut bool,
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
            *received_any = true;
            match event.resource_version() {
                // An older bookmark adds nothing.
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
                WatchEvent::Added(object) => self.report_index_error(self.store.add(object)),
                WatchEvent::Modified(object) => self.report_index_error(self.store.update(object)),
                WatchEvent::Deleted(object) => self.report_index_error(self.store.delete(object)),
                WatchEvent::Bookmark { .. } | WatchEvent::Skipped { .. } => {}
            }
        }
        if let Some(version) = version {
            self.store.update_resource_version(&version);
        }
        ended
    }
}
