//! The typed client, objects as Rust types: prints the name of every node.

use kubewright::{
    client::{
        Clients,
        typed::{ListParams, ResourceExt},
    },
    k8s_openapi::api::core::v1::Node,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?, |line| println!("{line}")).await?;
    Ok(())
}

/// Lists once.
pub async fn run(clients: Clients, print: impl Fn(String)) -> kubewright::Result<()> {
    let nodes = clients.typed::<Node>().list(&ListParams::default()).await?;
    for (i, node) in nodes.iter().enumerate() {
        print(format!("{i} {}", node.name_any()));
    }
    Ok(())
}
