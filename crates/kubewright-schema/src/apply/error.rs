//! Server-side apply errors, with the messages of kube-apiserver.

use std::fmt;

use super::{
    managed::{ManagedFieldsError, ManagerId, Operation},
    path::PathElement,
};
use crate::go;

/// Error of an apply. Its text is the message of the response, [`ApplyError::code`] its status code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields with other values; `force` would take them over.
    #[error("{0}")]
    Conflict(Conflicts),
    /// The request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the live object does not match the schema.
    #[error("{0}")]
    Internal(String),
    /// The live object's managedFields are malformed.
    #[error("failed to decode managed fields: {0}")]
    Managed(#[from] ManagedFieldsError),
}

impl ApplyError {
    /// Returns the HTTP status code of the response.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflict(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Internal(_) | Self::Managed(_) => 500,
        }
    }
}

/// Field owned by another manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The path of the field.
    pub path: Vec<PathElement>,
}

impl Conflict {
    /// Returns the path as a status cause names it: `.spec.replicas`.
    pub fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// Returns the message of the status cause: `conflict with "a-mgr"`.
    pub fn message(&self) -> String {
        format!("conflict with {}", describe(&self.manager))
    }
}

/// Conflicts of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &*self.0 {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field());
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut managers: Vec<&ManagerId> = self.0.iter().map(|c| &c.manager).collect();
        managers.sort();
        managers.dedup();
        for (i, manager) in managers.into_iter().enumerate() {
            let newline = if i > 0 { "\n" } else { "" };
            write!(f, "{newline}conflicts with {}:", describe(manager))?;
            for conflict in self.0.iter().filter(|c| c.manager == *manager) {
                write!(f, "\n- {}", conflict.field())?;
            }
        }
        Ok(())
    }
}

fn describe(manager: &ManagerId) -> String {
    let name = go::quote(&manager.manager);
    let through = match &*manager.subresource {
        "" => String::new(),
        subresource => format!(" with subresource {}", go::quote(subresource)),
    };
    match manager.operation {
        Operation::Apply => format!("{name}{through}"),
        Operation::Update => format!("{name}{through} using {}", manager.api_version),
    }
}
