//! `config/crd.yaml` equals the generated definition, and the server validates by it.

use std::path::Path;

use cronjob::CronJob;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kubewright::scheme::{Scheme, to_yaml};
use kubewright_cluster::Cluster;

const SAMPLE: &str = include_str!("../config/samples/cronjob.yaml");

#[test]
fn the_definition_in_config_equals_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd.yaml");
    let wanted = CronJob::crd();
    if std::env::var_os("UPDATE").is_some() {
        let text = to_yaml(&wanted).unwrap();
        std::fs::write(&path, format!("# Generated from src/api.rs by tests/definition.rs.\n{text}"))
            .unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let stored: CustomResourceDefinition = Scheme::kubernetes().decoder().decode_one(&text).unwrap();
    assert_eq!(stored, wanted, "UPDATE=1 cargo test -p cronjob --test definition regenerates it");
}

#[kubewright_cluster::test]
async fn the_server_accepts_the_samples_and_refuses_invalid_ones(cluster: Cluster) {
    cluster.apply(include_str!("../config/crd.yaml")).await.unwrap();
    cluster.apply(include_str!("../config/rbac.yaml")).await.unwrap();
    cluster.apply(include_str!("../config/samples/heartbeat.yaml")).await.unwrap();
    cluster.apply(SAMPLE).await.unwrap();

    let long = "a".repeat(53);
    for (was, becomes, expected) in [
        ("concurrencyPolicy: Allow", "concurrencyPolicy: Sometimes", "concurrencyPolicy"),
        ("HistoryLimit: 3", "HistoryLimit: -1", "successfulJobsHistoryLimit"),
        ("startingDeadlineSeconds: 60", "startingDeadlineSeconds: -1", "startingDeadlineSeconds"),
        ("schedule: \"*/1 * * * *\"", "schedule: \"\"", "schedule"),
        ("  schedule: \"*/1 * * * *\"\n", "", "spec.schedule"),
        ("name: cronjob-sample", &*format!("name: {long}"), "no more than 52 characters"),
    ] {
        assert!(SAMPLE.contains(was), "{was}");
        let refusal = cluster.apply(&SAMPLE.replacen(was, becomes, 1)).await.unwrap_err().to_string();
        assert!(refusal.contains(expected), "{becomes}: {refusal}");
    }
}
