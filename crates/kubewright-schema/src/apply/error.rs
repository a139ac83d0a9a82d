//! Why an apply is refused, in the words of the API server.

use std::fmt;

use super::{
    managed::{ManagedError, ManagerId, Operation},
    path::PathElement,
};
use crate::go;

/// Why an apply is refused. The text is the message of the answer; [`ApplyError::code`] its status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields with other values; `force` would take them over.
    #[error("{0}")]
    Conflict(Conflicts),
    /// The request itself is wrong.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the live object does not fit the schema.
    #[error("{0}")]
    Internal(String),
    /// The live object's managedFields cannot be read.
    #[error("failed to decode managed fields: {0}")]
    Managed(#[from] ManagedError),
}

impl ApplyError {
    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflict(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Internal(_) | Self::Managed(_) => 500,
        }
    }
}

/// One field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who.
    pub manager: ManagerId,
    /// Which field.
    pub path: Vec<PathElement>,
}

impl Conflict {
    /// The path as a cause names it: `.spec.replicas`.
    pub fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// The message of the cause: `conflict with "a-mgr"`.
    pub fn message(&self) -> String {
        format!("conflict with {}", describe(&self.manager))
    }
}

/// All conflicts of an apply.
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
