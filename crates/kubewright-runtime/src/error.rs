//! The error of reconcilers and of `main`: anything that went wrong, whether trying again may help, and what to do.

use std::{error::Error as StdError, fmt};

use kubewright_cache::DecodeError;
use kubewright_core::error::{Annotated, chain, messages};

use crate::client::ClientError;

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
///
/// # What it looks like
/// In a log (`Display`) it is one line with all its causes. Returned from `main` (`Debug`, which is what Rust prints then)
/// it is told to people, a line for each cause and one for what to do:
///
/// ```
/// # use kubewright::{Error, ObjectKey, prelude::*};
/// fn main() -> kubewright::Result<()> {
/// #   let failed = || -> kubewright::Result<ObjectKey> {
/// #       let text = "a/b/c";
///     let key: ObjectKey = text.parse().help("look into spec.target")?;
/// #       Ok(key)
/// #   };
/// #   assert_eq!(format!("{:?}", failed().unwrap_err()), "\"a/b/c\" is not an object key: write it as name or namespace/name\n  help: look into spec.target");
///     Ok(())
/// }
/// ```
pub struct Error(Boxed);

/// A result whose error is an [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error that trying again cannot mend: it is reported, and the key is not retried.
    pub fn terminal(error: impl Into<Boxed>) -> Self {
        Self(Box::new(Annotated { error: error.into(), terminal: true, help: None }))
    }

    /// An error that is just a message.
    pub fn message(message: impl fmt::Display) -> Self {
        Self(message.to_string().into())
    }

    /// An error of a type that converts into a box but is no error itself, such as `anyhow`'s.
    pub fn boxed(error: impl Into<Boxed>) -> Self {
        Self(error.into())
    }

    /// The same error with what to do about it. On a result, [`Help::help`] says it shorter.
    #[must_use]
    pub fn help(self, help: impl fmt::Display) -> Self {
        Self(Box::new(Annotated { error: self.0, terminal: false, help: Some(help.to_string()) }))
    }

    /// Whether trying again cannot help.
    pub fn is_terminal(&self) -> bool {
        chain(&*self.0).any(|error| {
            error.downcast_ref::<Annotated>().is_some_and(|annotated| annotated.terminal)
                // An object that does not fit its type fits it no better the next time, nor will the cache grow.
                || error.is::<DecodeError>()
                || matches!(error.downcast_ref(), Some(ClientError::NotCached { .. }))
        })
    }

    /// The error of this type, here or among the causes.
    pub fn find<E: StdError + 'static>(&self) -> Option<&E> {
        chain(&*self.0).find_map(|error| error.downcast_ref())
    }
}

/// Says what to do about an error that is about to be returned.
pub trait Help<T> {
    /// The result, whose error tells this to whoever reads it.
    fn help(self, help: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Help<T> for Result<T, E> {
    fn help(self, help: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().help(help))
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

/// One line: the error, its causes, what to do.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&messages(&*self.0).join(": "))?;
        match advice(&*self.0) {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// What `main` prints: the error, its causes and what to do, a line each.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&messages(&*self.0).join("\n  caused by: "))?;
        match advice(&*self.0) {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// What to do about it, as the outermost says that knows.
fn advice(error: &(dyn StdError + 'static)) -> Option<String> {
    chain(error).find_map(|error| {
        let annotated = error.downcast_ref::<Annotated>().and_then(|annotated| annotated.help.clone());
        annotated.or_else(|| error.downcast_ref::<ClientError>()?.help())
    })
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

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Error {
        fn layer(texts: &[&'static str]) -> Layer {
            let (text, rest) = texts.split_first().unwrap();
            Layer { text, source: (!rest.is_empty()).then(|| Box::new(layer(rest))) }
        }
        layer(texts).into()
    }

    #[test]
    fn a_terminal_error_stays_one_inside_of_others_and_reads_the_same() {
        let plain = Error::from(Outside(cause()));
        assert!(!plain.is_terminal());
        let terminal = Error::terminal(Outside(cause()));
        assert!(terminal.is_terminal());
        assert_eq!(terminal.to_string(), plain.to_string());
        let boxed: Boxed = terminal.help("look again").into();
        assert!(Error::boxed(boxed).is_terminal(), "it survives help and the way through a box");
    }

    #[test]
    fn causes_can_be_found_and_are_told_on_lines_of_their_own_or_on_one() {
        let error = Error::terminal(Outside(cause())).help("write digits");
        assert!(error.find::<Outside>().is_some());
        assert!(error.find::<std::num::ParseIntError>().is_some());
        assert_eq!(
            format!("{error:?}"),
            "the outside\n  caused by: invalid digit found in string\n  help: write digits"
        );
        assert_eq!(error.to_string(), "the outside: invalid digit found in string; write digits");
    }

    #[test]
    fn what_an_error_repeats_of_its_cause_is_told_once() {
        let error =
            layers(&["cannot start: no cluster: file missing", "no cluster: file missing", "file missing"]);
        let lines = "cannot start\n  caused by: no cluster\n  caused by: file missing";
        assert_eq!(format!("{error:?}"), lines);
        assert_eq!(error.to_string(), "cannot start: no cluster: file missing");
        let error = layers(&["the disk (full) is of no use", "full", "no space left"]);
        assert_eq!(format!("{error:?}"), "the disk (full) is of no use\n  caused by: no space left");
        assert_eq!(layers(&["the same", "the same"]).to_string(), "the same");
    }

    #[test]
    fn a_configuration_that_is_missing_is_told_in_words() {
        use kubewright_client::{ClientsError, ConfigError};
        let error = Error::from(ClientsError::Config(ConfigError::AllMissing("/x/config".into())));
        assert_eq!(format!("{error:?}"), "none of the files in KUBECONFIG exists: /x/config");
    }
}
