//! The REST client, any path and any verb: prints the URL of a request for the Pods of namespace `default`,
//! and then the names in the response.

use kubewright::{
    client::{
        Clients,
        typed::{ObjectList, ResourceExt},
    },
    k8s_openapi::api::core::v1::Pod,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?, |line| println!("{line}")).await?;
    Ok(())
}

/// Sends one request.
pub async fn run(clients: Clients, print: impl Fn(String)) -> kubewright::Result<()> {
    let core = clients.rest().group_version("v1");
    let request = core.get().namespace("default").resource("pods").query("limit", "500");
    print(request.url());
    for (i, pod) in request.json::<ObjectList<Pod>>().await?.iter().enumerate() {
        print(format!("{i} {}", pod.name_any()));
    }
    Ok(())
}
