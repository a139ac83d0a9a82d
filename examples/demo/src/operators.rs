//! Who runs, with which definitions and samples. Everything is taken from the examples as they are.

use app_status::Board;
use kubewright::manager::{Manager, ManagerBuilder};

/// One operator of the demonstration.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is called.
    pub name: &'static str,
    /// What its controller is called in metrics.
    pub controller: &'static str,
    /// What it does, in a few words.
    pub does: &'static str,
    /// The kinds that it defines.
    pub definitions: &'static [&'static str],
    /// What people ask of it.
    pub samples: &'static [&'static str],
    /// What must have come of that, as `Kind namespace/name`.
    pub expected: &'static [&'static str],
    /// The operator itself; what is to be shown goes to the board.
    pub operator: fn(&Board) -> ManagerBuilder,
}

/// The ConfigMap that asks `app-status` for what the demonstration shows.
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

/// All five.
pub const PARTS: [Part; 5] = [
    Part {
        name: "sample-controller",
        controller: "foo",
        does: "a Deployment for every Foo",
        definitions: &[include_str!("../../sample-controller/config/crd.yaml")],
        samples: &[include_str!("../../sample-controller/config/samples/foo.yaml")],
        expected: &["Foo default/example-foo", "Deployment default/example-foo"],
        operator: |_| sample_controller::operator(),
    },
    Part {
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
    Part {
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
    Part {
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
    Part {
        name: "app-status",
        controller: "app-status",
        does: "the table below",
        definitions: &[],
        samples: &[KINDS],
        expected: &[],
        operator: app_status::operator,
    },
];
