//! Log lines of reconcilers. A program of its own: the interest in a span is cached for the whole process.

mod support;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{manager::Manager, prelude::*};
use parking_lot::Mutex;
use support::{FakeApi, eventually};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn log_lines_of_a_reconciler_have_the_object_the_id_and_the_trigger() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let controller = Controller::of::<ConfigMap>().named("maps").reconcile(|_: Context<ConfigMap>| async {
        tracing::info!("hello");
        Ok(Action::done())
    });
    let manager = Manager::builder("test")
        .client(api.client())
        .signals(false)
        .controller(controller)
        .build()
        .await
        .unwrap();
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    eventually("the line", || log.text().contains("hello")).await;
    handle.stop();
    task.await.unwrap().unwrap();
    let text = log.text();
    let line = text.lines().find(|line| line.contains("hello")).expect("the line");
    for wanted in
        ["reconcile{", "controller=\"maps\"", "object=\"default/a\"", "id=1", "trigger=ConfigMap listed"]
    {
        assert!(line.contains(wanted), "{wanted} in {line}");
    }
}
