//! `SharedInformer`, one watch and one cache for any number of handlers: one handler prints the namespace of
//! every new config map in `tmp`, the other its name.

use kubewright::{
    cache::{Event, ListWatch, SharedInformer},
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

/// Runs until the future is dropped. The registrations and the informer are guards: they end with it.
pub async fn run(client: Client, print: impl Fn(String) + Clone + Send + 'static) {
    print("Start syncing....".to_owned());
    let maps = SharedInformer::new(ListWatch::<ConfigMap>::new(client).namespace("tmp"));
    let print_namespace = print.clone();
    let _namespaces = maps.on_event(move |event| {
        if let Event::Added { object, .. } = event {
            print_namespace(format!(
                "created, printing namespace: {}",
                object.namespace().unwrap_or_default()
            ));
        }
    });
    let _names = maps.on_event(move |event| {
        if let Event::Added { object, .. } = event {
            print(format!("created, printing name: {}", object.name()));
        }
    });
    let _running = maps.start();
    std::future::pending::<()>().await;
}
