//! The CloudManager type.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spec of a CloudManager.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "cloudmanagercontroller.huayun.com",
    version = "v1",
    kind = "CloudManager",
    namespaced,
    status = "CloudManagerStatus",
    doc = "A CloudManager has a front end, an identity service and a database.",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase")
)]
#[serde(rename_all = "camelCase")]
pub struct CloudManagerSpec {
    /// The front end.
    pub front: Front,
    /// The identity service.
    pub identity: Identity,
    /// The database.
    pub db: Database,
}

/// The front end.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Front {
    /// The Deployment.
    pub deployment: Program,
}

/// The identity service.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Identity {
    /// The Deployment.
    pub deployment: Program,
}

/// Program that a Deployment runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Program {
    /// The image.
    pub image: String,
    /// The name of the Deployment.
    pub name: String,
}

/// The database.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// The StatefulSet.
    pub stateful_set: DatabaseServer,
    /// The password of the root user.
    pub root_pass: Password,
}

/// Server of the database.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct DatabaseServer {
    /// The image.
    pub image: String,
    /// The name of the StatefulSet.
    pub name: String,
    /// The volume of its data.
    pub storage: Storage,
}

/// Volume to request.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The storage class.
    pub class: String,
    /// The access mode, such as `ReadWriteOnce`.
    pub access_modes: String,
    /// The size.
    #[schemars(schema_with = "crate::definition::quantity")]
    pub size: Quantity,
}

/// Status of a CloudManager.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudManagerStatus {
    /// `ready` when all parts are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// Text that is never printed, so that it does not reach a log.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Eq)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}
