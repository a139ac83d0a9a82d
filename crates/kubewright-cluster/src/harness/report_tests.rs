use std::time::Duration;

use kubewright::{
    Error,
    controller::{Action, Context, Controller},
    k8s_openapi::api::core::v1::ConfigMap,
    manager::Manager,
};

use super::*;
use crate::HarnessError;

/// A Deployment without a ready Pod: its image cannot be pulled.
const BROKEN: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  progressDeadlineSeconds: 60
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {sim.kubewright.dev/image-pull-error: 'true'}}
    spec: {containers: [{name: c, image: nginx}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {password: opensesame}}
";

#[crate::test]
async fn a_report_has_changed_objects_with_conditions_and_no_cluster_defaults(
    cluster: Cluster,
) -> Result<(), HarnessError> {
    cluster.apply(BROKEN).await?;
    cluster.advance(Duration::from_mins(10)).await;
    let report = cluster.report().await;
    for shown in [
        "the cluster at 2026-01-01T00:10:",
        "  Deployment default/web\n",
        "unavailableReplicas=1",
        "      Available    False  MinimumReplicasUnavailable  2026-01-01T00:00:0",
        "ProgressDeadlineExceeded",
        "container c waiting: ImagePullBackOff, ",
        "phase=Pending",
        "; of Deployment web\n",
        "  Secret default/key\n",
        "Pod default/web-",
        "last reconciles of the built-in controllers",
    ] {
        assert!(report.contains(shown), "{shown:?} is missing:\n{report}");
    }
    for left_out in [
        "opensesame",
        "kube-root-ca.crt",
        "system:",
        "Lease",
        "Node node-0",
        "node-lifecycle",
        "of the operators",
    ] {
        assert!(
            !report.contains(left_out),
            "{left_out:?} is not left out:
{report}"
        );
    }
    Ok(())
}

#[crate::test(nodes = 0)]
async fn reconciles_of_an_operator_are_reported_in_columns_with_trigger_and_result(
    cluster: Cluster,
) -> Result<(), HarnessError> {
    let fails = Controller::of::<ConfigMap>().named("colours").reconcile(async |cx: Context<ConfigMap>| {
        match cx.key().name() {
            "bad" => Err(Error::terminal(Error::message("no such colour"))),
            "late" => Ok(Action::requeue_after(Duration::from_secs(90))),
            _ => Ok(Action::done()),
        }
    });
    let _operator = cluster.run(Manager::builder("colours").controller(fails)).await?;
    cluster.advance(Duration::from_secs(1)).await;
    for name in ["bad", "late"] {
        cluster.apply(format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")).await?;
        cluster.advance(Duration::from_secs(1)).await;
    }
    let report = cluster.report().await;
    let lines: Vec<&str> = report
        .lines()
        .skip_while(|line| !line.starts_with("last reconciles of the operators"))
        .take_while(|line| !line.is_empty())
        .collect();
    let row =
        |name: &str| *lines.iter().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{report}"));
    let (bad, late) = (row("default/bad"), row("default/late"));
    assert!(bad.starts_with("  2026-01-01T00:00:01"), "{report}");
    assert!(bad.ends_with("gave up: no such colour"), "{report}");
    assert!(late.ends_with("again in 90s"), "{report}");
    assert_eq!(bad.find("ConfigMap added"), late.find("ConfigMap added"), "{report}");
    assert_eq!(bad.find("gave up"), late.find("again in"), "{report}");
    Ok(())
}
