//! The ingress manager as a controller.

use kubewright::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    Manager::builder("ingress-manager").controller(ingress_manager::with_builder::controller()).run().await
}
