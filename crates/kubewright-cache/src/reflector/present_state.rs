//! The present state as the beginning of a watch.

use std::time::Duration;

use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::Reflector;
use crate::{
    list_watch::{ListWatchError, WatchEvent, WatchStream},
    request::Failure,
    turns::Turns,
};

/// How long a stream of the present state may be silent before a list is tried instead.
const INITIAL_SILENCE: Duration = Duration::from_secs(30);
/// How often a stream of the present state may end early before a list is tried instead.
const INITIAL_ATTEMPTS: u32 = 3;
/// Objects of a stream of the present state that are handed over at a time.
const CHUNK: usize = 256;

impl<K: Resource + DeserializeOwned> Reflector<K> {
    /// The present state as a stream that goes on with the changes; None when a list must do.
    pub(super) async fn stream_present_state(&mut self) -> Option<WatchStream<K>> {
        let mut attempts = 0;
        loop {
            let failed = match self.list_watch.open_watch(&self.watch_request(true)).await {
                Ok(mut stream) => match self.take_present_state(&mut stream).await {
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
                // A refusal is an answer, and so is silence; a stream that breaks may be bad luck.
                Some(error) if matches!(error.failure, Failure::Refused { .. } | Failure::Silent(_)) => {
                    self.report(error);
                    return None;
                }
                Some(error) if attempts < INITIAL_ATTEMPTS => self.wait_after(error).await,
                Some(error) => {
                    self.report(error);
                    return None;
                }
                None if attempts < INITIAL_ATTEMPTS => {
                    let wait = self.backoff.next(&self.random);
                    sleep(wait).await;
                }
                None => return None,
            }
            if attempts >= INITIAL_ATTEMPTS {
                return None;
            }
        }
    }

    /// Reads up to the bookmark that ends the present state. False when the stream ends before it.
    async fn take_present_state(&mut self, stream: &mut WatchStream<K>) -> Result<bool, ListWatchError> {
        let mut replacement = self.store.replacing();
        let (mut chunk, mut turns) = (Vec::new(), Turns::default());
        loop {
            let store = &self.store;
            let Ok(batch) = timeout(INITIAL_SILENCE, stream.next_batch(&|key| store.known(key))).await else {
                return Err(self.list_watch.silent("watch", INITIAL_SILENCE));
            };
            let Some(mut batch) = batch else { return Ok(false) };
            let events = batch.len();
            while let Some(event) = batch.pop_front() {
                match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => chunk.push(object),
                    WatchEvent::Deleted(object) => {
                        self.settle(replacement.page(std::mem::take(&mut chunk)));
                        self.settle(replacement.remove(object));
                    }
                    WatchEvent::Bookmark { resource_version, initial_events_end: true } => {
                        self.settle(replacement.page(chunk));
                        self.settle(replacement.commit());
                        self.come_to(&resource_version);
                        stream.put_back(batch);
                        return Ok(true);
                    }
                    WatchEvent::Bookmark { .. } | WatchEvent::PassedOver { .. } => {}
                }
                if chunk.len() >= CHUNK {
                    self.settle(replacement.page(std::mem::take(&mut chunk)));
                }
            }
            turns.end_of_events(events).await;
        }
    }
}
