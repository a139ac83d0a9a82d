//! Error type of reconcilers, runnables and `main`.

use std::{error::Error as StdError, fmt};

use kubewright_cache::DecodeError;
use kubewright_core::error::{Annotated, chain, messages};

use crate::client::ClientError;

type Boxed = Box<dyn StdError + Send + Sync + 'static>;

/// Error of a reconciler, a runnable or a whole operator.
///
/// Every error converts into it by `?`. A reconcile that fails is retried with back-off, unless the error is
/// [terminal](Self::terminal): then a retry cannot help, and the key waits for the next event.
///
/// ```
/// use kubewright::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     let port: u16 = text.parse().map_err(Error::terminal)?; // a retry would fail again
///     Ok(port)
/// }
/// assert!(port("http").unwrap_err().is_terminal());
/// assert!(!Error::message("the backend is down").is_terminal());
/// ```
///
/// # Formatting
/// `Display` is one line with all causes, for logs. `Debug`, which Rust prints when `main` returns the error,
/// has a line for each cause and one with the help text:
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

/// `Result` with [`Error`] as its default error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error that is reported and not retried.
    pub fn terminal(error: impl Into<Boxed>) -> Self {
        Self(Box::new(Annotated { error: error.into(), terminal: true, help: None }))
    }

    /// Creates an error from a message.
    pub fn message(message: impl fmt::Display) -> Self {
        Self(message.to_string().into())
    }

    /// Creates an error from a type that converts into a boxed error but is no error itself, such as
    /// `anyhow`'s.
    pub fn boxed(error: impl Into<Boxed>) -> Self {
        Self(error.into())
    }

    /// Adds a help text: what the user can do about the error. See [`Help::help`] for results.
    #[must_use]
    pub fn help(self, help: impl fmt::Display) -> Self {
        Self(Box::new(Annotated { error: self.0, terminal: false, help: Some(help.to_string()) }))
    }

    /// Whether the error is [terminal](Self::terminal), so that a retry cannot help.
    pub fn is_terminal(&self) -> bool {
        chain(&*self.0).any(|error| {
            error.downcast_ref::<Annotated>().is_some_and(|annotated| annotated.terminal)
                // Neither decoding nor the set of cached kinds changes with a retry.
                || error.is::<DecodeError>()
                || matches!(error.downcast_ref(), Some(ClientError::NotCached { .. }))
        })
    }

    /// Returns the first error of this type in the chain of causes.
    pub fn find<E: StdError + 'static>(&self) -> Option<&E> {
        chain(&*self.0).find_map(|error| error.downcast_ref())
    }
}

/// Extension trait that adds a help text to a result's error.
pub trait Help<T> {
    /// Adds a help text to the error; see [`Error::help`].
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

/// One line: the error, its causes and the help text.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&messages(&*self.0).join(": "))?;
        match help_text(&*self.0) {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// Several lines: the error, its causes and the help text, as `main` prints it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&messages(&*self.0).join("\n  caused by: "))?;
        match help_text(&*self.0) {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// The outermost help text in the chain.
fn help_text(error: &(dyn StdError + 'static)) -> Option<String> {
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
    fn a_terminal_error_stays_terminal_when_wrapped_and_displays_the_same() {
        let plain = Error::from(Outside(cause()));
        assert!(!plain.is_terminal());
        let terminal = Error::terminal(Outside(cause()));
        assert!(terminal.is_terminal());
        assert_eq!(terminal.to_string(), plain.to_string());
        let boxed: Boxed = terminal.help("look again").into();
        assert!(Error::boxed(boxed).is_terminal(), "it survives help and boxing");
    }

    #[test]
    fn causes_can_be_found_and_are_printed_on_one_line_or_several() {
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
    fn repeated_causes_are_printed_once() {
        let error =
            layers(&["cannot start: no cluster: file missing", "no cluster: file missing", "file missing"]);
        let lines = "cannot start\n  caused by: no cluster\n  caused by: file missing";
        assert_eq!(format!("{error:?}"), lines);
        assert_eq!(error.to_string(), "cannot start: no cluster: file missing");
        let error = layers(&["the disk (full) cannot be used", "full", "no space left"]);
        assert_eq!(format!("{error:?}"), "the disk (full) cannot be used\n  caused by: no space left");
        assert_eq!(layers(&["the same", "the same"]).to_string(), "the same");
    }

    #[test]
    fn a_missing_configuration_is_explained() {
        use kubewright_client::{ClientsError, ConfigError};
        let error = Error::from(ClientsError::Config(ConfigError::AllMissing("/x/config".into())));
        assert_eq!(format!("{error:?}"), "none of the files in KUBECONFIG exists: /x/config");
    }
}
