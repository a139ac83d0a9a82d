//! `ListWatch`, the lowest layer: prints the config maps of namespace `tmp`, the version of that list, and
//! then every change, until the server ends the watch.

use kubewright::{cache::ListWatch, client::Clients, k8s_openapi::api::core::v1::ConfigMap, kube::Client};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await?;
    Ok(())
}

/// Lists, then watches from the version of the list. It does not watch again when the watch ends; a reflector
/// does.
pub async fn run(client: Client, print: impl Fn(String)) -> kubewright::Result<()> {
    let maps = ListWatch::<ConfigMap>::new(client).namespace("tmp");
    let (present, version) = maps.list().await?;
    print("Initial list:".to_owned());
    for map in present {
        print(map.name().to_owned());
    }
    print(version.clone());

    let mut changes = maps.watch(&version).await?;
    print("Start watching...".to_owned());
    while let Some(event) = changes.next().await {
        let event = event?;
        if let Some(map) = event.object() {
            print(format!("{} : {}", event.name(), map.name()));
        }
    }
    Ok(())
}
