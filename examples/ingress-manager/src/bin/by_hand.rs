//! The ingress manager with informers and a queue.

use kubewright::{Result, client::Clients};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    ingress_manager::by_hand::run(Clients::try_default().await?.client()).await
}
