//! Initial state from a watch with initial events; client-go's `watchList`.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Follower;
use crate::{
    list_watch::{ListWatchError, WatchEvent},
    request::ListWatchErrorKind,
    turns::Budget,
    watch::EventStream,
};

/// How long the stream may be idle before falling back to a list.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the stream may fail before falling back to a list.
const MAX_ATTEMPTS: u32 = 3;
/// Number of objects passed to the store at a time.
const CHUNK: usize = 256;

impl Follower {
    /// Opens a watch with initial events and stores them; `None` to fall back to a list.
    pub(super) async fn watch_list(&mut self) -> Option<EventStream> {
        let mut attempts = 0;
        loop {
            let failed = match self.list_watch.open_watch(&self.watch_request(true)).await {
                Ok(mut stream) => match self.read_initial_events(&mut stream).await {
                    Ok(true) => {
                        self.version_unavailable = false;
                        return Some(stream);
                    }
                    Ok(false) => None,
                    Err(error) => Some(error),
                },
                Err(error) => Some(error),
            };
            attempts += 1;
            match failed {
                Some(error) if error.is_connection_refused() || error.is_too_many_requests() => {
                    attempts = 0;
                    self.wait_after(error).await;
                }
                Some(error) if error.is_expired() || error.is_too_large_version() => {
                    self.version_unavailable = true;
                    self.report(error);
                }
                // An error status or a timeout is final; an interruption may be temporary.
                Some(error)
                    if matches!(
                        error.kind,
                        ListWatchErrorKind::Status { .. } | ListWatchErrorKind::Timeout(_)
                    ) =>
                {
                    self.report(error);
                    return None;
                }
                Some(error) if attempts < MAX_ATTEMPTS => self.wait_after(error).await,
                Some(error) => {
                    self.report(error);
                    return None;
                }
                None if attempts < MAX_ATTEMPTS => {
                    let wait = self.backoff.next(&self.random);
                    sleep(wait).await;
                }
                None => return None,
            }
            if attempts >= MAX_ATTEMPTS {
                return None;
            }
        }
    }

    /// Reads up to the bookmark that ends the initial events. Returns `false` if the stream ends before it.
    async fn read_initial_events(&mut self, stream: &mut EventStream) -> Result<bool, ListWatchError> {
        let mut replacement = self.store.begin_replace();
        let (mut chunk, mut budget) = (Vec::new(), Budget::default());
        loop {
            let store = &self.store;
            let Ok(batch) = timeout(IDLE_TIMEOUT, stream.next_batch(&|key| store.known(key))).await else {
                return Err(self.list_watch.timed_out("watch", IDLE_TIMEOUT));
            };
            let Some(mut batch) = batch else { return Ok(false) };
            let events = batch.len();
            while let Some(event) = batch.pop_front() {
                match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => chunk.push(object),
                    WatchEvent::Deleted(object) => {
                        self.report_index_error(replacement.page(std::mem::take(&mut chunk)));
                        self.report_index_error(replacement.remove(object));
                    }
                    WatchEvent::Bookmark { resource_version, initial_events_end: true } => {
                        self.report_index_error(replacement.page(chunk));
                        self.report_index_error(replacement.commit());
                        self.set_resource_version(&resource_version);
                        stream.put_back(batch);
                        return Ok(true);
                    }
                    WatchEvent::Bookmark { .. } | WatchEvent::Skipped { .. } => {}
                }
                if chunk.len() >= CHUNK {
                    self.report_index_error(replacement.page(std::mem::take(&mut chunk)));
                }
            }
            budget.spend_events(events).await;
        }
    }
}
