//! Spans on their way to an OpenTelemetry collector.

use std::{env, fmt};

use opentelemetry::trace::{Status, TracerProvider as _};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use tokio::{runtime::Handle, sync::oneshot};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::http_client::RuntimeClient;

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There is nobody to send them.
    #[error("spans are sent by a tokio runtime, and there is none: begin the export inside of one")]
    NoRuntime,
    /// The environment asks for another exporter.
    #[error("OTEL_TRACES_EXPORTER={0} is not known here: say otlp or none")]
    Exporter(String),
    /// The environment says something else that makes no sense.
    #[error("the OTEL_EXPORTER_OTLP_… variables cannot be used: {0}")]
    Settings(#[from] ExporterBuildError),
}

/// Sends spans to an OpenTelemetry collector, as the environment says. For a subscriber of one's own:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::telemetry::SpanExport;
/// use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};
///
/// let export = SpanExport::from_env("sample-controller")?;       // none, if the environment names no collector
/// let spans = export.as_ref().map(SpanExport::layer);
/// tracing_subscriber::registry().with(spans).with(tracing_subscriber::fmt::layer()).init();
/// // … run the manager …
/// if let Some(export) = export {
///     export.shutdown().await;
/// }
/// # Ok(()) }
/// ```
#[must_use = "end with shutdown(), or the last spans are lost"]
pub struct SpanExport {
    provider: SdkTracerProvider,
}

impl SpanExport {
    /// An export as the `OTEL_…` variables say; none if they name no collector, or say not to.
    ///
    /// `service` is the name of the program unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` have another.
    pub fn from_env(service: &str) -> Result<Option<Self>, ExportError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        if !is_wanted(variable)? {
            return Ok(None);
        }
        let runtime = Handle::try_current().map_err(|_| ExportError::NoRuntime)?;
        let client = RuntimeClient::new(runtime, variable);
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build()?;
        let mut resource = Resource::builder();
        if !names_service(variable) {
            resource = resource.with_service_name(service.to_owned());
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider }))
    }

    /// The layer that takes spans out of `tracing`.
    pub fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("kubewright")).with_threads(false)
    }

    /// Sends the spans that have ended so far, and no more after that. Takes five seconds at most.
    pub async fn shutdown(self) {
        let (done, finished) = oneshot::channel();
        // It blocks until the spans are sent, over this very runtime: so not on one of its threads.
        let blocking = std::thread::Builder::new().name("last spans".to_owned());
        let started = blocking.spawn(move || {
            // Nobody hears it when the program did not wait.
            let _ = done.send(self.provider.shutdown());
        });
        let ended = match started {
            Ok(_) => finished.await.map_err(|_| "the thread that sends them panicked".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let fault = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(fault) => fault,
        };
        tracing::warn!(fault, "not all spans could be exported");
    }
}

impl fmt::Debug for SpanExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanExport").finish_non_exhaustive()
    }
}

/// Whether the environment asks for an export. By the specification it would without a word, to a collector on this
/// machine; programs without one would then complain every few seconds.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> Result<bool, ExportError> {
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    match variable("OTEL_TRACES_EXPORTER").as_deref() {
        Some("none") => Ok(false),
        Some("otlp") => Ok(true),
        Some(other) => Err(ExportError::Exporter(other.to_owned())),
        None => Ok(["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
            .iter()
            .any(|name| variable(name).is_some())),
    }
}

fn names_service(variable: impl Fn(&str) -> Option<String>) -> bool {
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    variable("OTEL_SERVICE_NAME").is_some()
        || attributes.split(',').any(|attribute| attribute.trim_start().starts_with("service.name="))
}

/// Says in the span of a reconcile that it failed, where traces are searched for that.
pub(crate) fn mark_failed(span: &tracing::Span, error: &crate::Error) {
    if !span.is_disabled() {
        span.set_status(Status::error(error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'e>(set: &'e [(&'e str, &'e str)]) -> impl Fn(&str) -> Option<String> + 'e {
        |name| set.iter().find(|(held, _)| *held == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn spans_are_exported_only_where_the_environment_asks_for_it() {
        let wanted = |set: &[(&str, &str)]| is_wanted(environment(set)).ok();
        assert_eq!(wanted(&[]), Some(false));
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(wanted(&[endpoint]), Some(true));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/v1/traces")]), Some(true));
        assert_eq!(wanted(&[("OTEL_TRACES_EXPORTER", "otlp")]), Some(true));
        assert_eq!(wanted(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Some(false));
        assert_eq!(wanted(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Some(false));
        let refused = is_wanted(environment(&[("OTEL_TRACES_EXPORTER", "zipkin")])).unwrap_err();
        assert!(refused.to_string().contains("zipkin"), "{refused}");
    }

    #[test]
    fn the_environment_may_name_the_service() {
        assert!(!names_service(environment(&[("OTEL_RESOURCE_ATTRIBUTES", "team=shop")])));
        assert!(names_service(environment(&[("OTEL_RESOURCE_ATTRIBUTES", "team=shop, service.name=x")])));
        assert!(names_service(environment(&[("OTEL_SERVICE_NAME", "x")])));
    }
}
