//! `InformerFactory`, one informer per kind however often it is requested: prints how many config maps and
//! services there are, and the config maps of namespace `tmp` from a lister.

use std::time::Duration;

use kubewright::{
    cache::InformerFactory,
    client::Clients,
    k8s_openapi::api::core::v1::{ConfigMap, Service},
    kube::{Client, core::Selector},
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await?;
    Ok(())
}

/// Waits for both caches, reads from them and returns.
pub async fn run(client: Client, print: impl Fn(String)) -> kubewright::Result<()> {
    let factory = InformerFactory::new(client).resync(Duration::from_secs(30));
    let maps = factory.informer::<ConfigMap>();
    let services = factory.informer::<Service>();
    let same = maps.is(&factory.informer::<ConfigMap>());
    print(format!("asked twice, the same informer: {same}"));

    factory.start();
    factory.wait_for_sync().await?;
    print(format!("{} config maps, {} services", maps.store().len(), services.store().len()));
    for map in maps.lister().namespace("tmp").list(&Selector::default()) {
        print(map.key().to_string());
    }
    factory.shutdown().await;
    Ok(())
}
