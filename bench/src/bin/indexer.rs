//! Indexed store: 100,000 objects, two indexes, without packing or decoding.

use k8s_openapi::api::core::v1::Pod;
use kubewright::cache::{IndexFn, Indexer, Lazy};
use kubewright_bench::report::{Counting, Report};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new(MiMalloc);

const OBJECTS: usize = 100_000;

fn pod(i: usize, version: usize) -> Lazy<Pod> {
    let mut pod = Pod::default();
    pod.metadata.name = Some(format!("pod-{i}"));
    pod.metadata.namespace = Some(format!("team-{}", i % 50));
    pod.metadata.uid = Some("uid".to_owned());
    pod.metadata.resource_version = Some(version.to_string());
    pod.metadata.labels = Some([("group".to_owned(), format!("group-{}", i / 10))].into());
    Lazy::new(pod, &()).expect("it has a name")
}

fn main() {
    let store = Indexer::<Pod>::with_metadata_key();
    store.add_indexes([IndexFn::namespace(), IndexFn::label("group", "group")]).expect("names differ");
    let first: Vec<_> = (0..OBJECTS).map(|i| pod(i, 1)).collect();
    let second: Vec<_> = (0..OBJECTS).map(|i| pod(i, 2)).collect();

    let report = Report::start("indexer add", "kubewright", &ALLOCATOR);
    for pod in &first {
        store.add(pod.clone()).expect("indexes of labels do not fail");
    }
    report.finish(OBJECTS);

    let report = Report::start("indexer update", "kubewright", &ALLOCATOR);
    for pod in &second {
        store.update(pod.clone()).expect("indexes of labels do not fail");
    }
    report.finish(OBJECTS);

    let mut found = 0;
    let report = Report::start("indexer by index, 10 objects", "kubewright", &ALLOCATOR);
    for i in 0..OBJECTS {
        found += store.by_index("group", &format!("group-{}", i % (OBJECTS / 10))).expect("it exists").len();
    }
    report.finish(OBJECTS);
    assert_eq!(found, OBJECTS * 10);
}
