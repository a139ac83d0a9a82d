//! The operators of the demo with their definitions and samples, taken from the examples.

use app_status::Board;
use kubewright::manager::{Manager, ManagerBuilder};

/// An operator of the demo.
#[derive(Debug, Clone, Copy)]
pub struct DemoOperator {
    /// Its name.
    pub name: &'static str,
    /// The name of its controller in metrics.
    pub controller: &'static str,
    /// A short description.
    pub does: &'static str,
    /// The definitions.
    pub definitions: &'static [&'static str],
    /// The sample objects.
    pub samples: &'static [&'static str],
    /// The objects that must become ready, as `Kind namespace/name`.
    pub expected: &'static [&'static str],
    /// Creates the operator; `app-status` uses the board.
    pub operator: fn(&Board) -> ManagerBuilder,
}

/// The ConfigMap that requests the kinds of the demo from `app-status`.
const KINDS: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: demo
  namespace: default
  labels:
    app-status.kubewright.dev/watch: 'true'
data:
  kinds: |
    foos
    cloudmanagers
    cronjobs.batch.tutorial.kubebuilder.io
    deployments
    statefulsets
    persistentvolumeclaims
    services
    ingresses
    jobs
";

/// All operators.
pub const OPERATORS: [DemoOperator; 5] = [
    DemoOperator {
        name: "sample-controller",
        controller: "foo",
        does: "a Deployment for every Foo",
        definitions: &[include_str!("../../sample-controller/config/crd.yaml")],
        samples: &[include_str!("../../sample-controller/config/samples/foo.yaml")],
        expected: &["Foo default/example-foo", "Deployment default/example-foo"],
        operator: |_| sample_controller::operator(),
    },
    DemoOperator {
        name: "cloud-manager",
        controller: "cloudmanager",
        does: "front end, identity and database of a CloudManager",
        definitions: &[include_str!("../../cloud-manager/config/crd.yaml")],
        samples: &[
            include_str!("../../cloud-manager/config/samples/storage-class.yaml"),
            include_str!("../../cloud-manager/config/samples/cloud-manager.yaml"),
        ],
        expected: &[
            "CloudManager default/cloudmanager-sample",
            "Deployment default/ake-front",
            "Deployment default/cm-identity",
            "StatefulSet default/cm-db",
        ],
        operator: |_| cloud_manager::operator(),
    },
    DemoOperator {
        name: "ingress-manager",
        controller: "service",
        does: "an Ingress for every Service that asks for one",
        definitions: &[],
        samples: &[include_str!("../../ingress-manager/config/service.yaml")],
        expected: &["Service default/web", "Ingress default/web"],
        operator: |_| {
            Manager::builder("ingress-manager").controller(ingress_manager::with_builder::controller())
        },
    },
    DemoOperator {
        name: "cronjob",
        controller: "cronjob-tutorial",
        does: "Jobs by the clock",
        definitions: &[include_str!("../../cronjob/config/crd.yaml")],
        samples: &[
            include_str!("../../cronjob/config/samples/cronjob.yaml"),
            include_str!("../../cronjob/config/samples/heartbeat.yaml"),
        ],
        expected: &["CronJob default/cronjob-sample", "CronJob default/heartbeat"],
        operator: |_| cronjob::operator(),
    },
    DemoOperator {
        name: "app-status",
        controller: "app-status",
        does: "the table below",
        definitions: &[],
        samples: &[KINDS],
        expected: &[],
        operator: app_status::operator,
    },
];
