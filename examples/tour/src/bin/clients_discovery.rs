//! The discovery client: prints the resources of the core group, subresources included.

use kubewright::client::Clients;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?, |line| println!("{line}")).await?;
    Ok(())
}

/// Sends one request.
pub async fn run(clients: Clients, print: impl Fn(String)) -> kubewright::Result<()> {
    let served = clients.discovery().resources().await?;
    let core = served
        .group_version("v1")
        .ok_or_else(|| kubewright::Error::message("the server does not serve v1"))?;
    for resource in &core.resources {
        print(resource.plural.clone());
        for part in &resource.subresources {
            print(format!("{}/{}", resource.plural, part.name));
        }
    }
    Ok(())
}
