//! `Indexer` with the namespace index that every informer has: prints one config map found by its key, and
//! then the keys of all config maps in namespace `tmp`.

use kubewright::{
    cache::{ListWatch, NAMESPACE_INDEX, SharedInformer},
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
    let _running = maps.start();
    maps.synced().await;

    let store = maps.store();
    if let Some(map) = store.get_by_key(&"tmp/hello4".parse()?) {
        print(map.name().to_owned());
    }
    for key in store.index_keys(NAMESPACE_INDEX, "tmp")? {
        print(key.to_string());
    }
    Ok(())
}
