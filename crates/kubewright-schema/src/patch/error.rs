//! Patch errors.

/// Error applying a patch. Its text gives the cause; [`PatchError::code`] and [`PatchError::message`] are
/// those of the API server's response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch itself is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// The patch does not fit the object.
    #[error("{0}")]
    Unprocessable(String),
    /// Too many operations.
    #[error("{0}")]
    TooLarge(String),
    /// The patch names fields that the type does not have.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// Returns the HTTP status code of the response.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::TooLarge(_) => 413,
            Self::Internal(_) => 500,
        }
    }

    /// Returns the reason of the response; upstream gives none for internal errors.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::Unprocessable(_) => "Invalid",
            Self::TooLarge(_) => "RequestEntityTooLarge",
            Self::Internal(_) => "",
        }
    }

    /// Returns the message of the response. For an operation that does not fit, the server does not say which
    /// one.
    pub fn message(&self) -> String {
        match self {
            Self::Unprocessable(_) => {
                "the server rejected our request due to an error in our request".to_owned()
            }
            other => other.to_string(),
        }
    }
}
