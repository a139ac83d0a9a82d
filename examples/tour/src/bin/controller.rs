//! `Controller`, the reflector with its pop loop: prints every delta of the config maps of namespace `tmp`.

use kubewright::{
    cache::{Controller, DeltaFifo, Indexer, ListWatch},
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
    let store = Indexer::<ConfigMap>::keyed();
    let fifo = DeltaFifo::of(&store);
    print("Start syncing....".to_owned());
    let controller = Controller::new(ListWatch::new(client).namespace("tmp"), fifo, move |popped| {
        for delta in popped.deltas {
            print(format!("{}: {}", delta.name(), delta.object().name()));
            if let Err(error) = store.apply(&delta) {
                print(format!("not kept: {error}"));
            }
        }
    });
    controller.run().await;
}
