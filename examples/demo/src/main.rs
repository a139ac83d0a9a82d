//! `make demo`.

use demo::Options;
use kubewright::Result;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    // The screen is taken: logs are for those who ask for them.
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    }
    Ok(demo::run(Options::from_env()).await?)
}
