//! The task that writes events, one after the other.

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
    metrics::{EventMetrics, Fate},
};
use kubewright_client::{
    ApiError, Refusal as _, Transport,
    rest::{check, decode, read_all},
};
use kubewright_core::Random;

const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);
/// A server that does not answer is as good as none.
const REQUEST: Duration = Duration::from_secs(30);

pub(super) struct Writer {
    pub(super) transport: Transport,
    pub(super) correlator: Correlator,
    pub(super) random: Random,
    pub(super) metrics: EventMetrics,
    /// From then on there is no time for retries.
    pub(super) stop: CancellationToken,
}

/// How one try ended.
enum Try {
    Written,
    Refused(ApiError),
    Trouble { what: String, wait: Option<Duration> },
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
            let fate = self.write(event).await;
            self.metrics.count(&source.unwrap_or_default(), fate);
        }
    }

    async fn write(&mut self, event: Event) -> Fate {
        let Some(mut correlated) = self.correlator.correlate(event) else { return Fate::Filtered };
        let object = Reference(correlated.event.involved_object.clone());
        for tries in 1..=TRIES {
            let (what, wait) = match self.attempt(&mut correlated).await {
                Try::Written => return Fate::Written,
                Try::Refused(error) => {
                    let what = error.to_string();
                    if is_terminating(&error) {
                        tracing::debug!(%object, what, "no events in a namespace that is being deleted");
                    } else {
                        tracing::error!(%object, what, "the server refused an event");
                    }
                    return Fate::Refused;
                }
                Try::Trouble { what, wait } => (what, wait),
            };
            if self.stop.is_cancelled() || tries == TRIES {
                tracing::error!(%object, what, tries, "an event could not be written");
                return Fate::Abandoned;
            }
            tracing::warn!(%object, what, tries, "an event could not be written yet");
            // The first wait differs, so that all who noticed the trouble do not come back at the same moment.
            let pause = if tries == 1 { PAUSE.mul_f64(self.random.unit()) } else { PAUSE };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(wait.unwrap_or(pause)) => {}
            }
        }
        Fate::Abandoned
    }

    async fn attempt(&self, correlated: &mut Correlated) -> Try {
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
                // It was forgotten: events live for an hour. Or it never came to be.
                Err(Some(error)) if error.is_not_found() => correlated.repeat = false,
                outcome => return judge(outcome),
            }
        }
        let create = serde_json::to_vec(&correlated.event)
            .map_err(request::Error::SerializeBody)
            .and_then(|event| events.create(&PostParams::default(), event));
        match self.send(create).await {
            // A try that we took for lost has written it.
            Err(Some(error)) if error.is_already_exists() => Try::Written,
            outcome => judge(outcome),
        }
    }

    /// The outcome of a request; without an error if there was no outcome in time. Nobody reads the event that comes back.
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
        match tokio::time::timeout(REQUEST, outcome).await {
            Ok(outcome) => outcome.map(drop).map_err(Some),
            Err(_) => Err(None),
        }
    }
}

fn judge(outcome: Result<(), Option<ApiError>>) -> Try {
    let error = match outcome {
        Ok(()) => return Try::Written,
        Err(None) => return Try::Trouble { what: format!("no answer within {REQUEST:?}"), wait: None },
        Err(Some(error)) => error,
    };
    let trouble = match error.status() {
        Some(status) => matches!(status.code, 408 | 429 | 500..),
        // What could not be built or read will be no better next time.
        None => !matches!(error, ApiError::Decode { .. } | ApiError::Request { .. }),
    };
    if trouble {
        Try::Trouble { what: error.to_string(), wait: error.retry_after() }
    } else {
        Try::Refused(error)
    }
}

/// The namespace is on its way out and takes nothing new.
fn is_terminating(error: &ApiError) -> bool {
    let causes = error.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
    causes.is_some_and(|causes| causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
}
