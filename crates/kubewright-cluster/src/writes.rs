//! Errors of writes that controllers ignore.

use kubewright::client::{ClientError, Refusal};

/// Ignores that the object exists already, or that its namespace is terminating or gone.
pub(crate) fn ignore_already_exists<T>(result: Result<T, ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error)
            if !(error.is_already_exists() || error.is_namespace_terminating() || error.is_not_found()) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Ignores that the object is gone, as controller-runtime's `client.IgnoreNotFound`.
pub(crate) fn ignore_not_found<T>(result: Result<T, ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
