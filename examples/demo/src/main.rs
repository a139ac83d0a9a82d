//! `make demo`.

use demo::Options;
use kubewright::Result;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    // The screen is in use; logs are off unless `RUST_LOG` is set.
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    }
    Ok(demo::run(Options::from_env()).await?)
}
