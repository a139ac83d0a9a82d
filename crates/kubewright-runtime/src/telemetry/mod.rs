//! The log of a program, and where the spans of its reconciles go.
//!
//! A [manager](crate::manager::ManagerBuilder::signals) that owns its process calls [`Telemetry::init`] by itself, so an
//! operator needs no line of code for any of this:
//!
//! - **Logs** go to standard error, as `RUST_LOG` says (`info` unless it does): `RUST_LOG=kubewright=debug,info`.
//! - **Spans** go to an OpenTelemetry collector, with the feature `otel` and where the environment names one:
//!   `OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318`. There is one for every reconcile, with the controller, the
//!   object, the number of the reconcile, what triggered it, how often it was retried and how it ended. All variables of
//!   the OpenTelemetry specification that its Rust SDK knows are read (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
//!   `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`); the protocol is OTLP over HTTP, in protobuf.
//!
//! Whoever sets a `tracing` subscriber before the manager runs keeps it, and nothing of this happens. With the feature
//! `otel`, `SpanExport` is the part that such a subscriber can take over.
//!
//! # Pitfalls
//! - A collector that is not there, or a variable that makes no sense, is reported in the log and never stops the program.
//! - Log levels do not decide about spans: `RUST_LOG=warn` still exports them. To export fewer, set a sampler.

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

/// The log of this process, and the way of its spans out of it.
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
    /// Sets the subscriber of the process, unless there is one. `service` is what the program is called among others.
    ///
    /// Must be called inside a tokio runtime for spans to be exported.
    pub fn init(service: &str) -> Self {
        if tracing::dispatcher::has_been_set() {
            return Self::nothing();
        }
        let (filter, misread) = filter();
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
        let registry = tracing_subscriber::registry().with(log);
        #[cfg(feature = "otel")]
        let telemetry = {
            let (export, fault) = match SpanExport::from_env(service) {
                Ok(export) => (export, None),
                Err(fault) => (None, Some(fault)),
            };
            let spans = export.as_ref().map(|export| export.layer().with_filter(LevelFilter::INFO));
            // It fails when somebody else has set one this moment, which is as good.
            let _ = registry.with(spans).try_init();
            if let Some(fault) = fault {
                tracing::error!(error = %kubewright_core::error::OneLine(&fault), "spans are not exported");
            }
            Self { export }
        };
        #[cfg(not(feature = "otel"))]
        let telemetry = {
            let _ = (registry.try_init(), service);
            Self::nothing()
        };
        if let Some(misread) = misread {
            tracing::warn!(%misread, "RUST_LOG is not understood: logging at info");
        }
        telemetry
    }

    fn nothing() -> Self {
        Self {
            #[cfg(feature = "otel")]
            export: None,
        }
    }

    /// Sends what is left; a few seconds at most.
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

/// What `RUST_LOG` says, and what is wrong with it.
fn filter() -> (EnvFilter, Option<String>) {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    match filter.clone().try_from_env() {
        Ok(filter) => (filter, None),
        // Not set at all is no mistake.
        Err(fault) => {
            let set = std::env::var_os(EnvFilter::DEFAULT_ENV).is_some();
            (filter.parse_lossy(""), set.then(|| fault.to_string()))
        }
    }
}
