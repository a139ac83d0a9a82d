//! `Reflector`, `DeltaFifo` and `Store` by hand: prints every delta of the Pods of namespace `default` with
//! the phase of the Pod, and keeps the store by which the queue detects missed deletions.

use kubewright::{
    cache::{DeltaFifo, Deltas, Indexer, Lazy, ListWatch, Reflector, StoreError},
    client::Clients,
    k8s_openapi::api::core::v1::Pod,
    kube::Client,
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    run(Clients::try_default().await?.client(), |line| println!("{line}")).await?;
    Ok(())
}

/// Runs until the future is dropped.
pub async fn run(client: Client, print: impl Fn(String)) -> kubewright::Result<()> {
    let store = Indexer::<Pod>::keyed();
    let fifo = DeltaFifo::of(&store);
    let _following = Reflector::new(ListWatch::new(client).namespace("default"), fifo.clone()).start();
    let process = |popped: Deltas<Lazy<Pod>>| -> Result<(), StoreError> {
        for delta in popped.deltas {
            // `load` has reported a Pod that cannot be decoded; the others are not affected.
            let phase = delta.object().load().ok().and_then(|pod| pod.status.as_ref()?.phase.clone());
            let phase = phase.as_deref().unwrap_or("Unknown");
            print(format!("{} : {} - {phase}", delta.name(), delta.object().name()));
            store.apply(&delta)?;
        }
        Ok(())
    };
    while let Some(processed) = fifo.pop(process).await {
        processed?;
    }
    Ok(())
}
