//! What a program says when it fails.

use std::{error::Error, fmt};

/// The error of a `main`, told to people.
///
/// Rust prints the error that `main` returns by its `Debug` form, which for most errors is the inside of a type:
/// `Error: Config(AllMissing("/home/me/config"))`. This one prints what went wrong and what caused it. Every error
/// becomes one by `?`.
///
/// ```
/// use kubewright::{MainError, MainResult, ObjectKey};
///
/// fn main() -> MainResult {
///     let key: ObjectKey = "shop/cart".parse()?;
/// #   let failed = || -> MainResult { Ok(drop("a/b/c".parse::<ObjectKey>()?)) };
/// #   let text = format!("{:?}", failed().unwrap_err());
/// #   assert_eq!(text, r#""a/b/c" is not an object key: write it as name or namespace/name"#);
///     Ok(())
/// }
/// ```
///
/// Not an error itself: it is where errors end. Functions that others call return their own.
pub struct MainError(Box<dyn Error>);

/// What a `main` returns.
pub type MainResult = Result<(), MainError>;

impl<E: Into<Box<dyn Error>>> From<E> for MainError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for MainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.0.to_string();
        f.write_str(&told)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Many errors repeat their cause in their own text; once is enough.
            if !told.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
            }
            told = text;
            next = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for MainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        source: Option<Box<Layer>>,
    }

    fn chain(texts: &[&'static str]) -> Layer {
        let (text, rest) = texts.split_first().unwrap();
        Layer { text, source: (!rest.is_empty()).then(|| Box::new(chain(rest))) }
    }

    #[test]
    fn an_error_reads_as_a_sentence_and_its_causes() {
        let error =
            MainError::from(chain(&["cannot start", "no cluster: file missing", "file missing", "gone"]));
        assert_eq!(
            format!("{error:?}"),
            "cannot start\n  caused by: no cluster: file missing\n  caused by: gone"
        );
    }

    #[test]
    fn a_configuration_that_is_missing_is_told_in_words() {
        use crate::client::{ClientsError, ConfigError};
        let error = ClientsError::Config(ConfigError::AllMissing("/x/config".into()));
        let text = format!("{:?}", MainError::from(error));
        assert_eq!(text, "none of the files in KUBECONFIG exists: /x/config");
    }
}
