//! Log messages of failures.

use std::{error::Error, fmt, io::Write, sync::Arc};

use kubewright::{ObjectKey, queue::RateLimitingQueue};
use parking_lot::Mutex;

#[derive(Debug)]
struct Failure {
    what: &'static str,
    cause: Option<Box<Failure>>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as _)
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_logged_with_queue_key_count_delay_and_causes() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer({
            let log = log.clone();
            move || log.clone()
        })
        .with_ansi(false)
        .without_time()
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let queue = RateLimitingQueue::named("logging::a_failure");
    queue.add(ObjectKey::namespaced("default", "web"));
    let cause = Failure { what: "connection refused", cause: None };
    queue.get().await.unwrap().retry(Failure { what: "cannot create Service", cause: Some(Box::new(cause)) });
    queue.get().await.unwrap().give_up("out of ideas");

    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let lines: Vec<_> = text.lines().map(str::trim_start).collect();
    assert!(lines[0].starts_with("WARN"), "{text}");
    for part in [
        r#"queue="logging::a_failure""#,
        r#"key="default/web""#,
        "requeues=1",
        "delay=5ms",
        "error=cannot create Service: connection refused",
    ] {
        assert!(lines[0].contains(part), "no {part} in {text}");
    }
    assert!(lines[1].starts_with("ERROR") && lines[1].contains("error=out of ideas"), "{text}");
    assert_eq!(lines.len(), 2);
}
