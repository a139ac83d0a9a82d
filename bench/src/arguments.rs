//! Options of the form `--name value`, the same for all programs.

use std::{collections::BTreeMap, str::FromStr};

/// Arguments of a program.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Positional arguments.
    pub words: Vec<String>,
    options: BTreeMap<String, String>,
}

impl Arguments {
    /// Parses the arguments of this process. Options named in `flags` have no value.
    pub fn of_process(flags: &[&str]) -> Self {
        Self::parse(std::env::args().skip(1), flags)
    }

    fn parse(mut arguments: impl Iterator<Item = String>, flags: &[&str]) -> Self {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                Some(flag) if flags.contains(&flag) => {
                    parsed.options.insert(flag.to_owned(), "true".to_owned());
                }
                Some(name) => {
                    let (name, value) = match name.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (name, arguments.next()),
                    };
                    parsed.options.insert(name.to_owned(), value.unwrap_or_default());
                }
                None => parsed.words.push(argument),
            }
        }
        parsed
    }

    /// Returns whether an option was given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// Returns the text of an option, or the default.
    pub fn text<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.options.get(name).map_or(otherwise, String::as_str)
    }

    /// Returns the parsed value of an option, or the default.
    pub fn get<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.options.get(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }

    /// Returns the first option that is not known.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.options.keys().map(String::as_str).find(|name| !known.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_flags_and_words_are_told_apart() {
        let line = ["real", "--quick", "--repeats", "3", "--output=json"].map(str::to_owned);
        let arguments = Arguments::parse(line.into_iter(), &["quick"]);
        assert_eq!(arguments.words, ["real"]);
        assert!(arguments.has("quick"));
        assert_eq!(arguments.get("repeats", 1), 3);
        assert_eq!(arguments.text("output", "table"), "json");
        assert_eq!(arguments.unknown(&["quick", "repeats"]), Some("output"));
    }
}
