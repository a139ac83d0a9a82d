//! Export of spans to an OpenTelemetry collector.

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

/// Error of setting up the export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There is no tokio runtime.
    #[error("spans are sent by a tokio runtime, and there is none: begin the export inside of one")]
    NoRuntime,
    /// `OTEL_TRACES_EXPORTER` names an unsupported exporter.
    #[error("OTEL_TRACES_EXPORTER={0} is not known here: say otlp or none")]
    Exporter(String),
    /// Another variable is invalid.
    #[error("the OTEL_EXPORTER_OTLP_… variables cannot be used: {0}")]
    Settings(#[from] ExporterBuildError),
}

/// Exports spans to an OpenTelemetry collector as the environment configures it, for a custom subscriber:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright::telemetry::SpanExport;
/// use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};
///
/// let export = SpanExport::from_env("sample-controller")?;       // None if the environment names no collector
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
    /// Creates an export from the `OTEL_…` variables; `None` if they name no collector or disable it.
    ///
    /// `service` is the service name unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` set another.
    pub fn from_env(service: &str) -> Result<Option<Self>, ExportError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        if !is_enabled(variable)? {
            return Ok(None);
        }
        let runtime = Handle::try_current().map_err(|_| ExportError::NoRuntime)?;
        let client = RuntimeClient::new(runtime, variable);
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build()?;
        let mut resource = Resource::builder();
        if !sets_service_name(variable) {
            resource = resource.with_service_name(service.to_owned());
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider }))
    }

    /// The layer that exports the spans of `tracing`.
    pub fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("kubewright")).with_threads(false)
    }

    /// Exports the spans that have ended and stops. Takes five seconds at most.
    pub async fn shutdown(self) {
        let (done, finished) = oneshot::channel();
        // The SDK's shutdown blocks until the spans are sent by this runtime, so it must not block one of its
        // threads.
        let blocking = std::thread::Builder::new().name("last spans".to_owned());
        let started = blocking.spawn(move || {
            // An error means that the caller did not wait.
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

/// Whether the environment enables the export. The specification enables it by default, to a collector on
/// localhost; programs without one would log errors every few seconds.
fn is_enabled(variable: impl Fn(&str) -> Option<String>) -> Result<bool, ExportError> {
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

fn sets_service_name(variable: impl Fn(&str) -> Option<String>) -> bool {
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    variable("OTEL_SERVICE_NAME").is_some()
        || attributes.split(',').any(|attribute| attribute.trim_start().starts_with("service.name="))
}

/// Sets the status of a reconcile's span to error.
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
    fn spans_are_exported_only_if_the_environment_enables_it() {
        let enabled = |set: &[(&str, &str)]| is_enabled(environment(set)).ok();
        assert_eq!(enabled(&[]), Some(false));
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(enabled(&[endpoint]), Some(true));
        assert_eq!(enabled(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/v1/traces")]), Some(true));
        assert_eq!(enabled(&[("OTEL_TRACES_EXPORTER", "otlp")]), Some(true));
        assert_eq!(enabled(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Some(false));
        assert_eq!(enabled(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Some(false));
        let refused = is_enabled(environment(&[("OTEL_TRACES_EXPORTER", "zipkin")])).unwrap_err();
        assert!(refused.to_string().contains("zipkin"), "{refused}");
    }

    #[test]
    fn the_environment_may_set_the_service_name() {
        assert!(!sets_service_name(environment(&[("OTEL_RESOURCE_ATTRIBUTES", "team=shop")])));
        assert!(sets_service_name(environment(&[("OTEL_RESOURCE_ATTRIBUTES", "team=shop, service.name=x")])));
        assert!(sets_service_name(environment(&[("OTEL_SERVICE_NAME", "x")])));
    }
}
