//! Task that writes events one after the other.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::Event;
use kube::{
    Resource as _,
    api::{Patch, PatchParams, PostParams, Request},
    client::Body,
    core::request,
};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Reference,
    correlator::{Correlated, Correlator},
    metrics::{EventMetrics, Outcome},
};
use kubewright_client::{
    ApiError, Refusal as _, Transport,
    rest::{check, decode, read_all},
};
use kubewright_core::Random;

/// Attempts to write an event.
const ATTEMPTS: u32 = 12;
/// Wait between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Time-out of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Writer {
    pub(super) transport: Transport,
    pub(super) correlator: Correlator,
    pub(super) random: Random,
    pub(super) metrics: EventMetrics,
    /// Once cancelled, events get one attempt each.
    pub(super) stop: CancellationToken,
}

/// Outcome of one attempt.
enum Attempt {
    Written,
    Refused(ApiError),
    Retriable { error: String, retry_after: Option<Duration> },
}

impl Writer {
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled(), if !events.is_closed() => {
                    events.close();
                    continue;
                }
                event = events.recv() => event,
            };
            let Some(event) = event else { return };
            let source = event.source.as_ref().and_then(|source| source.component.clone());
            let outcome = self.write(event).await;
            self.metrics.count(&source.unwrap_or_default(), outcome);
        }
    }

    async fn write(&mut self, event: Event) -> Outcome {
        let Some(mut correlated) = self.correlator.correlate(event) else { return Outcome::Filtered };
        let object = Reference(correlated.event.involved_object.clone());
        for tries in 1..=ATTEMPTS {
            let (what, retry_after) = match self.attempt(&mut correlated).await {
                Attempt::Written => return Outcome::Written,
                Attempt::Refused(error) => {
                    let what = error.to_string();
                    if error.is_namespace_terminating() {
                        tracing::debug!(%object, what, "no events in a namespace that is being deleted");
                    } else {
                        tracing::error!(%object, what, "the server refused an event");
                    }
                    return Outcome::Refused;
                }
                Attempt::Retriable { error, retry_after } => (error, retry_after),
            };
            if self.stop.is_cancelled() || tries == ATTEMPTS {
                tracing::error!(%object, what, tries, "an event could not be written");
                return Outcome::Abandoned;
            }
            tracing::warn!(%object, what, tries, "an event could not be written yet");
            // The first wait is random, so that clients that failed together do not retry together.
            let pause = if tries == 1 { RETRY_INTERVAL.mul_f64(self.random.unit()) } else { RETRY_INTERVAL };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(retry_after.unwrap_or(pause)) => {}
            }
        }
        Outcome::Abandoned
    }

    async fn attempt(&self, correlated: &mut Correlated) -> Attempt {
        let event = &correlated.event;
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let events = Request::new(Event::url_path(&(), Some(namespace)));
        if correlated.repeat {
            let name = event.metadata.name.clone().unwrap_or_default();
            let patch = json!({
                "count": event.count,
                "lastTimestamp": event.last_timestamp,
                "message": event.message,
            });
            let patch = events.patch(&name, &PatchParams::default(), &Patch::Strategic(&patch));
            match self.send(patch).await {
                // The event was deleted, as after an hour, or was never created.
                Err(Some(error)) if error.is_not_found() => correlated.repeat = false,
                outcome => return classify(outcome),
            }
        }
        let create = serde_json::to_vec(&correlated.event)
            .map_err(request::Error::SerializeBody)
            .and_then(|event| events.create(&PostParams::default(), event));
        match self.send(create).await {
            // An attempt whose response was lost has created it.
            Err(Some(error)) if error.is_already_exists() => Attempt::Written,
            outcome => classify(outcome),
        }
    }

    /// Sends a request; `Err(None)` is a time-out. The response is not needed beyond its status.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<(), Option<ApiError>> {
        let request = request.map_err(|error| {
            Some(ApiError::Request { operation: "write an event".to_owned(), reason: error.to_string() })
        })?;
        let operation = format!("{} {}", request.method(), request.uri().path());
        let creating = request.method() == Method::POST;
        let outcome = async {
            let answer = self.transport.send(request.map(Body::from)).await;
            let answer = answer.map_err(|error| ApiError::transport(&operation, error))?;
            let answer = check(&operation, creating, answer).await?;
            decode::<IgnoredAny>(&operation, &read_all(&operation, answer.into_body()).await?)
        };
        match tokio::time::timeout(REQUEST_TIMEOUT, outcome).await {
            Ok(outcome) => outcome.map(drop).map_err(Some),
            Err(_) => Err(None),
        }
    }
}

fn classify(outcome: Result<(), Option<ApiError>>) -> Attempt {
    let error = match outcome {
        Ok(()) => return Attempt::Written,
        Err(None) => {
            return Attempt::Retriable {
                error: format!("no answer within {REQUEST_TIMEOUT:?}"),
                retry_after: None,
            };
        }
        Err(Some(error)) => error,
    };
    let retriable = match error.status() {
        Some(status) => matches!(status.code, 408 | 429 | 500..),
        // Building the request and decoding the response fail again with every retry.
        None => !matches!(error, ApiError::Decode { .. } | ApiError::Request { .. }),
    };
    if retriable {
        Attempt::Retriable { error: error.to_string(), retry_after: error.retry_after() }
    } else {
        Attempt::Refused(error)
    }
}
