//! `Informer`, a controller with its own store: prints what happens to the config maps of namespace `tmp`.

use kubewright::{
    cache::{Event, Informer, ListWatch},
    client::Clients,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::Client,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await;
    Ok(())
}

/// Runs until the future is dropped.
pub async fn run(client: Client, print: impl Fn(String) + Send + 'static) {
    print("Start syncing....".to_owned());
    let maps = ListWatch::<ConfigMap>::new(client).namespace("tmp");
    let informer = Informer::new(maps, move |event| match event {
        Event::Added { object, .. } => print(format!("created: {}", object.name())),
        Event::Updated { old, .. } => print(format!("updated: {}", old.name())),
        Event::Deleted { object, .. } => print(format!("deleted: {}", object.name())),
    });
    informer.run().await;
}
