//! Why a patch is refused.

/// Why a patch is refused. The text says what is wrong; [`PatchError::code`] and [`PatchError::message`] are what
/// the API server answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// The patch speaks of things the type does not have.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::TooLarge(_) => 413,
            Self::Internal(_) => 500,
        }
    }

    /// The message of the answer. Of an operation that does not fit, the server does not tell which.
    pub fn message(&self) -> String {
        match self {
            Self::Unprocessable(_) => {
                "the server rejected our request due to an error in our request".to_owned()
            }
            other => other.to_string(),
        }
    }
}
