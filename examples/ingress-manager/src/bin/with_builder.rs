//! The ingress manager as a controller. Logs (`RUST_LOG`), probes, metrics and signals need no code.

use kubewright::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::builder("ingress-manager").controller(ingress_manager::with_builder::controller()).run().await
}
