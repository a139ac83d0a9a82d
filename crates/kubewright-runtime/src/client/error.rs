//! Error of the cached client.

use std::time::Duration;

use kube::core::Status;

use kubewright_cache::{DecodeError, ObjectError, StoreError};
use kubewright_client::{ApiError, ApiStatus, OwnerError};
use kubewright_core::KeyError;

/// Error of a read or a write. Classify it with [`ApiStatus`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The cached object does not decode into its type.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The object has no name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The object of a response has no name, or its metadata is too long.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The owner reference cannot be set.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// An object of that name exists, and another owner controls it.
    #[error("cannot {operation}: {source}")]
    AlreadyControlled {
        /// The attempted operation, with object and owner.
        operation: String,
        /// The kind of the object.
        kind: String,
        /// Its controller.
        source: ControlledBy,
    },
    /// The index does not exist.
    #[error(transparent)]
    Index(#[from] StoreError),
    /// Objects of this namespace are not cached.
    #[error("{kind} of {} are not cached; add it to the cache's namespaces, or read with .live()", place(.namespace.as_deref()))]
    NotCached {
        /// The requested kind.
        kind: String,
        /// The requested namespace; `None` is all of them.
        namespace: Option<String>,
    },
    /// The cache has not synced yet.
    #[error(
        "the cache of {kind} has not synced after {waited:?}: may it list and watch the kind, and is the kind installed?"
    )]
    NotSynced {
        /// The requested kind.
        kind: String,
        /// How long the read has waited.
        waited: Duration,
    },
    /// Live reads have no indexes.
    #[error("the server has no index {index:?}; read {kind} from the cache, or list by labels")]
    IndexNeedsCache {
        /// The requested kind.
        kind: String,
        /// The requested index.
        index: String,
    },
    /// The mutate function failed.
    #[error("cannot {operation}: {source}")]
    Mutation {
        /// The attempted operation and the object.
        operation: String,
        /// The error of the function.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The controller of an object that another owner was to control.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("it exists and is controlled by {controller} (uid {uid})")]
pub struct ControlledBy {
    /// Kind and name of the controller.
    pub controller: String,
    /// The uid of the controller.
    pub uid: String,
}

impl ClientError {
    /// Returns how to resolve the error, where the text itself does not say so.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::AlreadyControlled { kind, .. } => {
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

impl ApiStatus for ClientError {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(error) => error.status(),
            _ => None,
        }
    }
}
