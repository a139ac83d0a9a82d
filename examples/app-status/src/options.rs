//! Command line options.

use crate::Board;

/// Text of `--help`.
pub const USAGE: &str = "\
The status of anything in a cluster, live.

Usage: app-status [options] [kind ...]

A kind is what one types after kubectl get: deploy, pods, foos.samplecontroller.k8s.io. ConfigMaps with the label
app-status.kubewright.dev/watch=true add the kinds they list, while it runs.

Options:
  -n, --namespace <name>   only this namespace
  -o, --output <format>    table or json; a table is drawn in place on a terminal, otherwise changes come as lines
      --once               show everything once and end
  -h, --help               this";

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Human-readable.
    #[default]
    Table,
    /// Machine-readable.
    Json,
}

/// Parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The kinds.
    pub kinds: Vec<String>,
    /// The namespace, if limited to one.
    pub namespace: Option<String>,
    /// The output format.
    pub format: Format,
    /// Whether to print once and exit.
    pub once: bool,
    /// Whether to print the help.
    pub help: bool,
}

/// Error of parsing the command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Unknown option.
    #[error("there is no option {0}; --help lists them")]
    Unknown(String),
    /// Option without its value.
    #[error("{0} needs a value; --help says which")]
    Incomplete(String),
    /// Unknown format.
    #[error("--output is table or json, not {0}")]
    Format(String),
}

impl Options {
    /// Parses a command line, without the program name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, OptionsError> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let mut value = || {
                inline
                    .clone()
                    .or_else(|| arguments.next())
                    .ok_or_else(|| OptionsError::Incomplete(name.clone()))
            };
            match name.as_str() {
                "-h" | "--help" => options.help = true,
                "--once" => options.once = true,
                "-n" | "--namespace" => options.namespace = Some(value()?),
                "-o" | "--output" => {
                    options.format = match value()?.as_str() {
                        "table" => Format::Table,
                        "json" => Format::Json,
                        other => return Err(OptionsError::Format(other.to_owned())),
                    }
                }
                option if option.starts_with('-') => return Err(OptionsError::Unknown(option.to_owned())),
                kind => options.kinds.push(kind.to_owned()),
            }
        }
        Ok(options)
    }

    /// Creates the board for these options.
    pub fn board(&self) -> Board {
        let board = Board::new(self.kinds.clone());
        match &self.namespace {
            Some(namespace) => board.namespace(namespace),
            None => board,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn kinds_and_options_come_in_any_order() {
        let options = parse("deploy -n shop --output=json pods --once").unwrap();
        assert_eq!(options.kinds, ["deploy", "pods"]);
        assert_eq!(
            (options.namespace.as_deref(), options.format, options.once),
            (Some("shop"), Format::Json, true)
        );
    }

    #[test]
    fn invalid_options_are_refused_with_a_hint() {
        let said = |line: &str| parse(line).unwrap_err().to_string();
        assert_eq!(said("--watch"), "there is no option --watch; --help lists them");
        assert_eq!(said("-n"), "-n needs a value; --help says which");
        assert_eq!(said("-o yaml"), "--output is table or json, not yaml");
    }
}
