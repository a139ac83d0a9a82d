//! The dynamic client, objects of any kind without a Rust type: prints the name and the replicas of every
//! deployment.

use kubewright::{
    client::{
        Clients, NestedFields,
        typed::{ListParams, ResourceExt},
    },
    kube::core::GroupVersionResource,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?, |line| println!("{line}")).await?;
    Ok(())
}

/// Lists once.
pub async fn run(clients: Clients, print: impl Fn(String)) -> kubewright::Result<()> {
    let deployments = GroupVersionResource::gvr("apps", "v1", "deployments");
    let list = clients.dynamic().resource(&deployments).list(&ListParams::default()).await?;
    for (i, deployment) in list.iter().enumerate() {
        let replicas = deployment.nested_i64(&["spec", "replicas"])?.unwrap_or(1);
        print(format!("{i} {} ({replicas} replicas)", deployment.name_any()));
    }
    Ok(())
}
