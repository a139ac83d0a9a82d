//! Logging and tracing of an operator.
//!
//! A [manager](crate::manager::ManagerBuilder::signals) that owns its process calls [`Telemetry::init`]
//! itself, so an operator needs no code for it:
//!
//! - **Logs** go to standard error, filtered by `RUST_LOG` (`info` by default):
//!   `RUST_LOG=kubewright=debug,info`.
//! - **Spans** go to an OpenTelemetry collector, with the feature `otel` and if the environment names one:
//!   `OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318`. Each reconcile has a span with the controller, the
//!   object, the number of the reconcile, its trigger, the number of retries and the outcome. All variables
//!   of the OpenTelemetry specification that its Rust SDK supports are read (`OTEL_SERVICE_NAME`,
//!   `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`); the
//!   protocol is OTLP over HTTP with protobuf.
//!
//! A `tracing` subscriber that is set before the manager runs is kept, and nothing of this happens. With the
//! feature `otel`, `SpanExport` provides the layer for such a subscriber.
//!
//! # Pitfalls
//! - An unreachable collector or an invalid variable is logged and never stops the program.
//! - Log levels do not affect spans: `RUST_LOG=warn` still exports them. Set a sampler to export fewer.

#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod http_client;

use tracing_subscriber::{
    EnvFilter, Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

#[cfg(feature = "otel")]
pub(crate) use self::export::mark_failed;
#[cfg(feature = "otel")]
pub use self::export::{ExportError, SpanExport};

/// The process's logging and span export.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use kubewright::telemetry::Telemetry;
///
/// let telemetry = Telemetry::init("sample-controller");
/// tracing::info!("this is written to standard error");
/// telemetry.shutdown().await;
/// # }
/// ```
#[derive(Debug)]
#[must_use = "end with shutdown(), or the last spans are lost"]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    export: Option<SpanExport>,
}

impl Telemetry {
    /// Sets the global subscriber, unless there is one. `service` is the OpenTelemetry service name.
    ///
    /// Must be called inside a tokio runtime for spans to be exported.
    pub fn init(service: &str) -> Self {
        if tracing::dispatcher::has_been_set() {
            return Self::disabled();
        }
        let (filter, invalid) = filter();
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
        let registry = tracing_subscriber::registry().with(log);
        #[cfg(feature = "otel")]
        let telemetry = {
            let (export, fault) = match SpanExport::from_env(service) {
                Ok(export) => (export, None),
                Err(fault) => (None, Some(fault)),
            };
            let spans = export.as_ref().map(|export| export.layer().with_filter(LevelFilter::INFO));
            // It fails if another subscriber was set in the meantime, which is then used.
            let _ = registry.with(spans).try_init();
            if let Some(fault) = fault {
                tracing::error!(error = %kubewright_core::error::OneLine(&fault), "spans are not exported");
            }
            Self { export }
        };
        #[cfg(not(feature = "otel"))]
        let telemetry = {
            let _ = (registry.try_init(), service);
            Self::disabled()
        };
        if let Some(invalid) = invalid {
            tracing::warn!(%invalid, "RUST_LOG is not understood: logging at info");
        }
        telemetry
    }

    fn disabled() -> Self {
        Self {
            #[cfg(feature = "otel")]
            export: None,
        }
    }

    /// Exports the remaining spans, within a few seconds.
    #[cfg_attr(
        not(feature = "otel"),
        expect(clippy::unused_async, reason = "there is nothing to send without otel")
    )]
    pub async fn shutdown(self) {
        #[cfg(feature = "otel")]
        if let Some(export) = self.export {
            export.shutdown().await;
        }
    }
}

/// The filter of `RUST_LOG`, and the error if it is invalid.
fn filter() -> (EnvFilter, Option<String>) {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    match filter.clone().try_from_env() {
        Ok(filter) => (filter, None),
        // An unset variable is no error.
        Err(fault) => {
            let set = std::env::var_os(EnvFilter::DEFAULT_ENV).is_some();
            (filter.parse_lossy(""), set.then(|| fault.to_string()))
        }
    }
}
