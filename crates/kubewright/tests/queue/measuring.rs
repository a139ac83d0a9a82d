//! Metrics, as scraped.

use std::time::Duration;

use kubewright::queue::{PriorityQueue, QueueMetrics, RateLimitingQueue, WorkQueue};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::time::advance;

use super::now;

fn scrape(metrics: &QueueMetrics) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics.clone()));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything");
    text
}

/// Returns the value of one series, as written.
fn value(metrics: &QueueMetrics, series: &str) -> String {
    let text = scrape(metrics);
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).to_owned()
}

fn of(metric: &str, queue: &str) -> String {
    format!(r#"{metric}{{name="{queue}",controller="{queue}"}}"#)
}

#[tokio::test(start_paused = true)]
async fn the_exposition_has_the_names_labels_and_buckets_of_client_go() {
    let metrics = QueueMetrics::new();
    let queue = RateLimitingQueue::builder().name("pods").metrics(&metrics).build();
    queue.add("done");
    advance(Duration::from_millis(20)).await;
    let item = now(&queue).unwrap();
    advance(Duration::from_millis(300)).await;
    item.retry("failed");
    queue.add("running");
    let _running = now(&queue).unwrap();
    advance(Duration::from_secs(2)).await;
    queue.add("waiting");

    let expected = r#"# HELP workqueue_depth Keys that wait for a worker.
# TYPE workqueue_depth gauge
workqueue_depth{name="pods",controller="pods"} 2.0
# HELP workqueue_adds Keys that came into the queue.
# TYPE workqueue_adds counter
workqueue_adds_total{name="pods",controller="pods"} 4
# HELP workqueue_queue_duration_seconds How long a key stays in the queue before a worker takes it.
# TYPE workqueue_queue_duration_seconds histogram
workqueue_queue_duration_seconds_sum{name="pods",controller="pods"} 0.02
workqueue_queue_duration_seconds_count{name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="1e-8",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="1e-7",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.000001",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.00001",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.0001",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.001",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.01",name="pods",controller="pods"} 1
workqueue_queue_duration_seconds_bucket{le="0.1",name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="1.0",name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="10.0",name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="100.0",name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="1000.0",name="pods",controller="pods"} 2
workqueue_queue_duration_seconds_bucket{le="+Inf",name="pods",controller="pods"} 2
"#;
    let text = scrape(&metrics);
    assert!(text.starts_with(expected), "{text}");
    for line in [
        r#"workqueue_work_duration_seconds_sum{name="pods",controller="pods"} 0.3"#,
        r#"workqueue_work_duration_seconds_bucket{le="0.1",name="pods",controller="pods"} 0"#,
        r#"workqueue_work_duration_seconds_bucket{le="1.0",name="pods",controller="pods"} 1"#,
        "# TYPE workqueue_unfinished_work_seconds gauge",
        r#"workqueue_unfinished_work_seconds{name="pods",controller="pods"} 2.0"#,
        "# TYPE workqueue_longest_running_processor_seconds gauge",
        r#"workqueue_longest_running_processor_seconds{name="pods",controller="pods"} 2.0"#,
        "# TYPE workqueue_retries counter",
        r#"workqueue_retries_total{name="pods",controller="pods"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test(start_paused = true)]
async fn depth_counts_keys_that_wait_for_a_worker_also_while_they_are_in_flight() {
    let metrics = QueueMetrics::new();
    let queue = WorkQueue::builder().name("q").metrics(&metrics).build();
    let depth = || value(&metrics, &of("workqueue_depth", "q"));
    let adds = || value(&metrics, &of("workqueue_adds_total", "q"));
    queue.add("a");
    queue.add("a");
    queue.add_after("b", Duration::from_secs(1));
    assert_eq!((depth(), adds()), ("1.0".into(), "1".into()));
    let item = now(&queue).unwrap();
    assert_eq!((depth(), adds()), ("0.0".into(), "1".into()));
    queue.add("a");
    assert_eq!((depth(), adds()), ("1.0".into(), "2".into()));
    drop(item);
    assert_eq!((depth(), adds()), ("1.0".into(), "2".into()));
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        (depth(), adds()),
        ("2.0".into(), "3".into()),
        "due keys count although the queue was not polled"
    );
}

#[tokio::test(start_paused = true)]
async fn unfinished_work_is_exact_at_every_scrape() {
    let metrics = QueueMetrics::new();
    let queue = WorkQueue::builder().name("q").metrics(&metrics).build();
    queue.add(1);
    queue.add(2);
    let one = now(&queue).unwrap();
    advance(Duration::from_secs(3)).await;
    let two = now(&queue).unwrap();
    advance(Duration::from_millis(1)).await;
    let unfinished = || value(&metrics, &of("workqueue_unfinished_work_seconds", "q"));
    let longest = || value(&metrics, &of("workqueue_longest_running_processor_seconds", "q"));
    assert_eq!((unfinished(), longest()), ("3.002".into(), "3.001".into()));
    drop(one);
    assert_eq!((unfinished(), longest()), ("0.001".into(), "0.001".into()));
    drop(two);
    assert_eq!((unfinished(), longest()), ("0.0".into(), "0.0".into()));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_in_the_queue_from_its_time_on() {
    let metrics = QueueMetrics::new();
    let queue = WorkQueue::builder().name("q").metrics(&metrics).build();
    queue.add_after(1, Duration::from_secs(10));
    advance(Duration::from_secs(12)).await;
    drop(now(&queue));
    assert_eq!(value(&metrics, &of("workqueue_queue_duration_seconds_sum", "q")), "2.0");
}

#[tokio::test(start_paused = true)]
async fn retries_count_keys_that_were_added_with_a_delay() {
    let metrics = QueueMetrics::new();
    let queue = PriorityQueue::builder().name("q").metrics(&metrics).build();
    let retries = || value(&metrics, &of("workqueue_retries_total", "q"));
    queue.add("a");
    queue.add_after("b", Duration::ZERO);
    assert_eq!(retries(), "0");
    queue.add_after("c", Duration::from_secs(1));
    queue.add_rate_limited("d");
    now(&queue).unwrap().retry("failed");
    now(&queue).unwrap().requeue_after(Duration::from_secs(1));
    assert_eq!(retries(), "4");
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_share_a_series_that_outlives_them() {
    let metrics = QueueMetrics::new();
    let build = || WorkQueue::builder().name("q").metrics(&metrics).build();
    let adds = || value(&metrics, &of("workqueue_adds_total", "q"));
    let (one, two) = (build(), build());
    one.add(1);
    two.add(1);
    two.add(2);
    assert_eq!((adds(), value(&metrics, &of("workqueue_depth", "q"))), ("3".into(), "3.0".into()));
    drop(two);
    assert_eq!((adds(), value(&metrics, &of("workqueue_depth", "q"))), ("3".into(), "1.0".into()));
    drop(one);
    assert_eq!((adds(), value(&metrics, &of("workqueue_depth", "q"))), ("3".into(), "0.0".into()));
    build().add(1);
    assert_eq!(adds(), "4");
}

#[tokio::test]
async fn a_queue_without_a_name_has_no_metrics() {
    let metrics = QueueMetrics::new();
    let queue = WorkQueue::builder().metrics(&metrics).build();
    let unnamed = WorkQueue::builder().name("").metrics(&metrics).build();
    queue.add(1);
    unnamed.add(1);
    assert!(!scrape(&metrics).contains("name="), "{}", scrape(&metrics));
}

#[tokio::test]
async fn a_named_queue_uses_the_global_metrics() {
    let queue = WorkQueue::named("measuring::in_the_set_of_the_process");
    queue.add(1);
    let adds = of("workqueue_adds_total", "measuring::in_the_set_of_the_process");
    assert_eq!(value(QueueMetrics::global(), &adds), "1");
}

#[tokio::test]
async fn a_name_that_needs_escaping_is_escaped() {
    let metrics = QueueMetrics::new();
    let queue = WorkQueue::builder().name("a\"b\\c\nd").metrics(&metrics).build();
    queue.add(1);
    assert!(
        scrape(&metrics).contains(r#"{name="a\"b\\c\nd",controller="a\"b\\c\nd"} 1"#),
        "{}",
        scrape(&metrics)
    );
}
