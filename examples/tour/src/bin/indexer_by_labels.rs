//! `Indexer` with a custom index, by the keys of labels: prints for each label which config maps have it.

use kubewright::{
    cache::{IndexFn, Lazy, ListWatch, SharedInformer},
    client::Clients,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::Client,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await?;
    Ok(())
}

/// Waits for the cache, reads from it and returns.
pub async fn run(client: Client, print: impl Fn(String)) -> kubewright::Result<()> {
    print("Start syncing....".to_owned());
    let maps = SharedInformer::new(ListWatch::<ConfigMap>::new(client));
    maps.add_index(IndexFn::new("labels", |map: &Lazy<ConfigMap>| {
        map.labels().map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
    }))?;
    let _running = maps.start();
    maps.synced().await;

    let store = maps.store();
    for label in store.list_index_values("labels")? {
        for map in store.by_index("labels", &label)? {
            print(format!("{label}: {}", map.key()));
        }
    }
    Ok(())
}
