//! `RateLimitingQueue`, between events and workers: prints which config maps of namespace `tmp` were received
//! and processed. One without data fails, is retried with back-off, and is dropped after `MAX_RETRIES`.

use std::{error::Error, time::Duration};

use kubewright::{
    ObjectKey,
    cache::{Event, Indexer, ListWatch, SharedInformer},
    client::Clients,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::Client,
    queue::RateLimitingQueue,
};

const MAX_RETRIES: u32 = 3;
const WORK_TIME: Duration = Duration::from_secs(1);

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await;
    Ok(())
}

/// Fills the queue from an informer and processes it with two workers, until the future is dropped.
pub async fn run(client: Client, print: impl Fn(String) + Clone + Send + 'static) {
    let queue = RateLimitingQueue::<ObjectKey>::named("sloth");
    let maps = SharedInformer::new(ListWatch::<ConfigMap>::new(client).namespace("tmp"));
    let (received, print_received) = (queue.clone(), print.clone());
    let _handler = maps.on_event(move |event| {
        if let Event::Added { object, .. } = event {
            print_received(format!("[{}] received", object.key()));
            received.add(object.key().clone());
        }
    });
    let _running = maps.start();
    maps.synced().await;
    let store = maps.store();
    tokio::join!(work(&queue, &store, &print), work(&queue, &store, &print));
}

async fn work(queue: &RateLimitingQueue<ObjectKey>, store: &Indexer<ConfigMap>, print: &impl Fn(String)) {
    while let Some(item) = queue.get().await {
        let key = item.key();
        match process(store, key).await {
            Ok(()) => {
                print(format!("[{key}] processed."));
                item.forget();
            }
            Err(error) if item.requeues() < MAX_RETRIES => {
                print(format!("error processing {key}: {error}, retry {}", item.requeues()));
                item.retry(error);
            }
            Err(error) => {
                print(format!("max retries exceeded, dropping item {key} out of the queue: {error}"));
                item.give_up(error);
            }
        }
    }
}

/// Processes a key, slowly. Only the key is queued: the object is read from the cache.
async fn process(store: &Indexer<ConfigMap>, key: &ObjectKey) -> Result<(), Box<dyn Error + Send + Sync>> {
    tokio::time::sleep(WORK_TIME).await;
    let Some(map) = store.get_by_key(key) else { return Ok(()) };
    if map.load()?.data.is_none() { Err("no data".into()) } else { Ok(()) }
}
