//! The writes that a plan consists of.
//!
//! A planning function looks at objects and answers with [`Step`]s; a reconciler carries them out in order. So every
//! decision can be tested as a list, and nothing here needs a server.

use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;

pub(crate) use crate::events::Note;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Creates an object.
    Create(Object),
    /// Replaces an object.
    Update(Object),
    /// Replaces the status of an object, through its subresource.
    Status(Object),
    /// Changes an object by a strategic merge patch.
    Patch(Object, Value),
    /// Deletes an object, and no namesake of it.
    Delete(Object),
    /// Says something about the object that is reconciled.
    Say(Note),
}

/// An object of one of the kinds that the workload controllers write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    /// A pod.
    Pod(Box<Pod>),
    /// A claim of a stateful pod.
    Claim(Box<PersistentVolumeClaim>),
    /// A replica set.
    ReplicaSet(Box<ReplicaSet>),
    /// A deployment.
    Deployment(Box<Deployment>),
    /// A stateful set.
    StatefulSet(Box<StatefulSet>),
    /// A daemon set.
    DaemonSet(Box<DaemonSet>),
    /// A remembered template.
    Revision(Box<ControllerRevision>),
    /// A job.
    Job(Box<Job>),
    /// A cron job.
    CronJob(Box<CronJob>),
}

impl Object {
    /// Its metadata.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Pod(object) => &object.metadata,
            Self::Claim(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::Deployment(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Revision(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::CronJob(object) => &object.metadata,
        }
    }

    /// Its name, empty while the server has still to make one up.
    pub(crate) fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
}

macro_rules! from {
    ($($kind:ty => $variant:ident),* $(,)?) => {
        $(impl From<$kind> for Object {
            fn from(object: $kind) -> Self {
                Self::$variant(Box::new(object))
            }
        })*
    };
}
from! {
    Pod => Pod, PersistentVolumeClaim => Claim, ReplicaSet => ReplicaSet, Deployment => Deployment,
    StatefulSet => StatefulSet, DaemonSet => DaemonSet, ControllerRevision => Revision, Job => Job, CronJob => CronJob,
}
