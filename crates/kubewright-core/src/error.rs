//! Printing of errors with their causes.
//!
//! Error types themselves live with the code that fails; what they share is how a chain of causes becomes
//! text.

use std::{any::Any, error::Error, fmt};

/// An error, its causes and what to do about it on one line, as a log prints them.
///
/// ```
/// use kubewright_core::error::OneLine;
///
/// let error = "x".parse::<u8>().unwrap_err();
/// assert_eq!(OneLine(&error).to_string(), "invalid digit found in string");
/// ```
#[derive(Debug)]
pub struct OneLine<'e>(pub &'e (dyn Error + 'static));

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&messages(self.0).join(": "))?;
        match chain(self.0).find_map(|error| error.downcast_ref::<Annotated>()?.help.as_deref()) {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// An error with what is known about it besides its text. It prints like the error inside.
#[derive(Debug)]
pub struct Annotated {
    /// The error itself.
    pub error: Box<dyn Error + Send + Sync>,
    /// Whether a retry cannot succeed.
    pub terminal: bool,
    /// What a person can do about it.
    pub help: Option<String>,
}

impl fmt::Display for Annotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Annotated {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}

/// The error and its sources, outermost first.
pub fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (**error).source())
}

/// The messages of an error and its causes, each once: many errors repeat their cause in their own text.
pub fn messages(error: &(dyn Error + 'static)) -> Vec<String> {
    let texts: Vec<String> = chain(error).map(ToString::to_string).collect();
    let mut messages = Vec::new();
    let mut before = "";
    for (number, text) in texts.iter().enumerate() {
        let cause = texts.get(number + 1).map_or("", String::as_str);
        let own = match text.strip_suffix(cause).and_then(|own| own.strip_suffix(": ")) {
            Some(own) if !cause.is_empty() => own,
            _ if text == cause => "",
            _ => text,
        };
        // A cause cut off the end of the previous text is printed now; one that stands elsewhere in it was
        // printed already.
        let repeated = before.contains(&**text) && !before.ends_with(&format!(": {text}")) && before != text;
        if !own.is_empty() && !repeated {
            messages.push(own.to_owned());
        }
        before = text;
    }
    messages
}

/// The message that a panic carried.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}
