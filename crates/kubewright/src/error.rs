//! The error of reconcilers and of `main`: anything that went wrong, and whether trying again may help.

use std::{error::Error as StdError, fmt};

use crate::cache::DecodeError;

type Boxed = Box<dyn StdError + Send + Sync + 'static>;

/// What a reconciler, a runnable or a whole operator failed with.
///
/// Every error converts into it by `?`. A reconcile that fails is tried again with back-off, unless the error is
/// [terminal](Self::terminal): then trying again cannot help, and the key waits for the next event.
///
/// ```
/// use kubewright::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     let port: u16 = text.parse().map_err(Error::terminal)?; // no retry makes a number of it
///     Ok(port)
/// }
/// assert!(port("http").unwrap_err().is_terminal());
/// assert!(!Error::message("the backend is down").is_terminal());
/// ```
pub struct Error(Boxed);

/// A result whose error is an [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Marks an error as one that trying again cannot mend. It reads like the error inside.
#[derive(Debug)]
struct Terminal(Boxed);

impl Error {
    /// An error that trying again cannot mend: it is reported, and the key is not retried.
    pub fn terminal(error: impl Into<Boxed>) -> Self {
        Self(Box::new(Terminal(error.into())))
    }

    /// An error that is just a message.
    pub fn message(message: impl fmt::Display) -> Self {
        Self(message.to_string().into())
    }

    /// An error of a type that converts into a box but is no error itself, such as `anyhow`'s.
    pub fn boxed(error: impl Into<Boxed>) -> Self {
        Self(error.into())
    }

    /// Whether trying again cannot help.
    pub fn is_terminal(&self) -> bool {
        // An object that does not fit its type fits it no better the next time.
        self.chain().any(|error| error.is::<Terminal>() || error.is::<DecodeError>())
    }

    /// The error of this type, here or among the causes.
    pub fn find<E: StdError + 'static>(&self) -> Option<&E> {
        self.chain().find_map(|error| {
            let inner = error.downcast_ref::<Terminal>().map_or(error, |terminal| &*terminal.0);
            inner.downcast_ref()
        })
    }

    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = &*self.0;
        std::iter::successors(Some(first), |error: &&(dyn StdError + 'static)| (**error).source())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl From<Error> for Boxed {
    fn from(error: Error) -> Self {
        error.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What `main` prints: the error and its causes, one per line.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut last = self.0.to_string();
        for cause in self.chain().skip(1) {
            let text = cause.to_string();
            if !last.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
            }
            last = text;
        }
        Ok(())
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Terminal {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the outside")]
    struct Outside(#[source] std::num::ParseIntError);

    fn cause() -> std::num::ParseIntError {
        "x".parse::<u8>().unwrap_err()
    }

    #[test]
    fn a_terminal_error_stays_one_inside_of_others_and_reads_the_same() {
        let plain = Error::from(Outside(cause()));
        assert!(!plain.is_terminal());
        let terminal = Error::terminal(Outside(cause()));
        assert!(terminal.is_terminal());
        assert_eq!(terminal.to_string(), plain.to_string());
        let boxed: Boxed = terminal.into();
        assert!(Error::boxed(boxed).is_terminal(), "it survives the way through a box");
    }

    #[test]
    fn causes_can_be_found_and_are_printed() {
        let error = Error::terminal(Outside(cause()));
        assert!(error.find::<Outside>().is_some());
        assert!(error.find::<std::num::ParseIntError>().is_some());
        assert_eq!(format!("{error:?}"), "the outside\n  caused by: invalid digit found in string");
    }
}
