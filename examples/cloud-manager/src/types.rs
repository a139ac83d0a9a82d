//! The CloudManager: what a user writes, and what is reported back.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a CloudManager consists of.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "cloudmanagercontroller.huayun.com",
    version = "v1",
    kind = "CloudManager",
    namespaced,
    status = "CloudManagerStatus",
    doc = "A CloudManager has a front, an identity service and a database.",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase")
)]
#[serde(rename_all = "camelCase")]
pub struct CloudManagerSpec {
    /// What users see.
    pub front: Front,
    /// Who users are.
    pub identity: Identity,
    /// Where everything is kept.
    pub db: Database,
}

/// The front.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Front {
    /// Its Deployment.
    pub deployment: Program,
}

/// The identity service.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Identity {
    /// Its Deployment.
    pub deployment: Program,
}

/// A program that a Deployment runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Program {
    /// Its image.
    pub image: String,
    /// The name of the Deployment.
    pub name: String,
}

/// The database.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// Its StatefulSet.
    pub stateful_set: DatabaseServer,
    /// The password of its root user.
    pub root_pass: Password,
}

/// The server of the database.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct DatabaseServer {
    /// Its image.
    pub image: String,
    /// The name of the StatefulSet.
    pub name: String,
    /// Where its data are.
    pub storage: Storage,
}

/// A volume to ask for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The storage class.
    pub class: String,
    /// How the volume may be mounted, such as `ReadWriteOnce`.
    pub access_modes: String,
    /// How large it is.
    #[schemars(schema_with = "crate::definition::quantity")]
    pub size: Quantity,
}

/// What became of a CloudManager.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudManagerStatus {
    /// `ready` when all of it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// A text that is not shown: it may not reach a log by accident.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Eq)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}
