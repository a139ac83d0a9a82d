//! What a cached client fails with.

use std::time::Duration;

use kube::core::Status;

use kubewright_cache::{DecodeError, StoreError};
use kubewright_client::{ApiError, OwnerError, Refusal};
use kubewright_core::KeyError;

/// Why a read or a write failed. Ask it with [`Refusal`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused, or could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The object in the cache does not fit its type.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The object has no name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The object cannot have this owner.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// An object of that name is there, and somebody else controls it.
    #[error("cannot {operation}: {source}")]
    Taken {
        /// What was to be done, with which object and for whom.
        operation: String,
        /// The kind of the object.
        kind: String,
        /// Who controls it.
        source: ControlledBy,
    },
    /// There is no such index.
    #[error(transparent)]
    Index(#[from] StoreError),
    /// Objects of this namespace are not cached.
    #[error("{kind} of {} are not cached; add it to the cache's namespaces, or read with .live()", place(.namespace.as_deref()))]
    NotCached {
        /// The kind that was asked for.
        kind: String,
        /// The namespace that was asked for; none is all of them.
        namespace: Option<String>,
    },
    /// The cache has not been filled yet.
    #[error(
        "the cache of {kind} has not synced after {waited:?}: may it list and watch the kind, and is the kind installed?"
    )]
    NotSynced {
        /// The kind that was asked for.
        kind: String,
        /// How long the read has waited.
        waited: Duration,
    },
    /// Only the cache has indexes.
    #[error("the server has no index {index:?}; read {kind} from the cache, or list by labels")]
    IndexNeedsCache {
        /// The kind that was asked for.
        kind: String,
        /// The index that was asked for.
        index: String,
    },
    /// The function that was to bring the object into its wanted state failed.
    #[error("cannot {operation}: {source}")]
    Mutation {
        /// What was to be done with which object.
        operation: String,
        /// What the function said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Who controls an object that another wants to control.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it exists and is controlled by {controller} (uid {uid})")]
pub struct ControlledBy {
    /// Kind and name of who does.
    pub controller: String,
    /// The identity of who does.
    pub uid: String,
}

impl ClientError {
    /// What to do about it, where that is not in the text itself.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Taken { kind, .. } => {
                Some(format!("choose another name for it, or remove the owner from the existing {kind}"))
            }
            _ => None,
        }
    }
}

fn place(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("namespace {namespace:?}"),
        None => "all namespaces".to_owned(),
    }
}

impl Refusal for ClientError {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(error) => error.status(),
            _ => None,
        }
    }
}
