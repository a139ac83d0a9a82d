//! Sample-controller of examples/sample-controller: a Deployment per Foo, the status written when
//! it changed, an event for every sync, as upstream's has it.
//!
//! - `operator --kubeconfig FILE [--workers N]`: runs until its input ends, then prints its measurements.
//! - `operator --test`: a whole test: a cluster in this process, the definition, the operator, a Foo, its Deployment,
//!   shutdown.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright::{client::Transport, manager::ManagerBuilder, prelude::*};
use kubewright_bench::{
    arguments::Arguments,
    foos,
    measure::{Phase, resident_bytes},
    requests::Requests,
};
use kubewright_cluster::{Cluster, Controllers};
use mimalloc::MiMalloc;
use sample_controller::{Foo, controller::reconcile};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Creates the operator of examples/sample-controller, without leader election, as upstream's.
fn operator(workers: usize) -> ManagerBuilder {
    let controller = Controller::of::<Foo>().owns::<Deployment>().workers(workers).reconcile(reconcile);
    Manager::builder("sample-controller").controller(controller)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::of_process(&["test"]);
    if arguments.has("test") {
        return test().await;
    }
    let phase = Phase::start();
    let requests = Requests::default();
    let kubeconfig = Kubeconfig::read_from(arguments.text("kubeconfig", ""))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let transport = Transport::builder(config).layer(requests.layer()).build()?;
    let manager = operator(arguments.get("workers", 8)).client(transport).signals(false).build().await?;
    let handle = manager.handle();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        handle.stop();
    });
    manager.run().await?;
    requests
        .add(phase.stop(1))
        .with("steady_bytes", resident_bytes())
        .print("sample-controller", "kubewright");
    Ok(())
}

async fn test() -> Result<()> {
    let phase = Phase::start();
    let began = Instant::now();
    // As in envtest, there are no controllers.
    let cluster = Cluster::builder().controllers(Controllers::None).start().await?;
    foos::define(&cluster.client()).await.map_err(Error::message)?;
    let started = began.elapsed().as_secs_f64();
    let operator = cluster.run(operator(1)).await?;
    foos::create(&cluster.client(), 0).await.map_err(Error::message)?;
    while cluster.find::<Deployment>("default/foo-0").await?.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    operator.stop().await?;
    cluster.stop().await;
    phase.stop(1).with("started_s", started).print("operator test", "kubewright");
    Ok(())
}
