//! The smallest program: prints the name of every namespace.

use kubewright::{
    client::{
        Clients,
        typed::{ListParams, ResourceExt},
    },
    k8s_openapi::api::core::v1::Namespace,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?, |line| println!("{line}")).await?;
    Ok(())
}

/// Lists once.
pub async fn run(clients: Clients, print: impl Fn(String)) -> kubewright::Result<()> {
    for namespace in clients.typed::<Namespace>().list(&ListParams::default()).await? {
        print(namespace.name_any());
    }
    Ok(())
}
