//! Answers to writes that are no trouble.

use kubewright::client::{ApiStatus, ClientError};

/// A creation that came too late is done: the object is there, or its namespace is on its way out.
pub(crate) fn created<T>(answer: Result<T, ClientError>) -> Result<(), ClientError> {
    match answer {
        Err(error) if !error.is_already_exists() && !namespace_ends(&error) => Err(error),
        _ => Ok(()),
    }
}

/// A write to an object that is gone has nothing left to do.
pub(crate) fn gone_is_fine<T>(answer: Result<T, ClientError>) -> Result<(), ClientError> {
    match answer {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Whether a creation was refused because its namespace is being deleted, or is gone.
fn namespace_ends(error: &ClientError) -> bool {
    let causes = error.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
    let terminating =
        causes.is_some_and(|causes| causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    terminating || error.is_not_found()
}
