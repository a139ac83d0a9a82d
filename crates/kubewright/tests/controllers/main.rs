//! Controllers and managers in virtual time, against a server with injected faults.

#[path = "../support/mod.rs"]
mod support;

mod caching;
mod faults;
mod lifecycle;
mod reconciling;
mod triggers;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{
    controller::{Controller, ControllerBuilder, ControllerMetrics},
    manager::{Manager, ManagerHandle},
    prelude::*,
    queue::QueueMetrics,
};
use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};
use support::{FakeApi, eventually};
use tokio::task::JoinHandle;

/// Log of the steps of a test, in order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn write(&self, line: impl std::fmt::Display) {
        self.0.lock().push(line.to_string());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn sorted(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.sort();
        lines
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().iter().filter(|held| *held == line).count()
    }

    /// Waits, in virtual time, for this number of lines, and checks that no more follow within a second.
    async fn reaches(&self, lines: usize) {
        eventually(&format!("{lines} lines"), || self.len() >= lines).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(self.len(), lines, "{:?}", self.lines());
    }
}

/// A running manager.
struct Running {
    handle: ManagerHandle,
    task: JoinHandle<Result<()>>,
}

impl Running {
    async fn stop(self) -> Result<()> {
        self.handle.stop();
        self.task.await.expect("a manager does not panic")
    }
}

/// Runs a manager with these controllers.
async fn run(api: &FakeApi, controllers: impl IntoIterator<Item = Controller>) -> Running {
    let mut builder = Manager::builder("test").client(api.client()).signals(false);
    for controller in controllers {
        builder = builder.controller(controller);
    }
    let manager = builder.build().await.expect("a client is given");
    let handle = manager.handle();
    Running { handle, task: tokio::spawn(manager.run()) }
}

/// A controller of `ConfigMap`s with metrics of its own.
fn maps() -> (ControllerBuilder<ConfigMap>, Metrics) {
    let metrics = Metrics::default();
    (Controller::of::<ConfigMap>().named("maps").metrics(&metrics.0, &metrics.1), metrics)
}

#[derive(Default)]
struct Metrics(ControllerMetrics, QueueMetrics);

impl Metrics {
    /// Returns the value of one series of the controller `maps`.
    fn value(&self, name: &str) -> u64 {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.0.clone()));
        registry.register_collector(Box::new(self.1.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string takes everything");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    }

    fn results(&self, result: &str) -> u64 {
        self.value(&format!(r#"controller_runtime_reconcile_total{{controller="maps",result="{result}"}}"#))
    }

    fn total(&self, name: &str) -> u64 {
        self.value(&format!(r#"controller_runtime_{name}{{controller="maps"}}"#))
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
