//! What can be wrong with a document, and where.

use std::{fmt, sync::Arc};

use kube::core::GroupVersionKind;

use super::node::Mark;

/// Where a document or an object came from.
///
/// Displayed as `manifests.yaml:14:3: document 2, items[0]`, or `line 14, column 3: document 2` without a file
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub(super) file: Option<Arc<str>>,
    pub(super) document: usize,
    pub(super) item: Option<Arc<str>>,
    pub(super) at: Mark,
}

impl Location {
    /// The file name that the decoder was given.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The number of the document in the input, from 1. Empty documents are not counted.
    pub fn document(&self) -> usize {
        self.document
    }

    /// The place inside a `kind: List`, such as `items[2]`.
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// The line in the whole input, from 1.
    pub fn line(&self) -> usize {
        self.at.line
    }

    /// The column in that line, from 1: characters in YAML, bytes in JSON.
    pub fn column(&self) -> usize {
        self.at.column
    }
}

impl Location {
    /// The same document at another place, unless the value there was made and not read.
    pub(super) fn moved_to(mut self, at: Mark) -> Self {
        if at.line != 0 {
            self.at = at;
        }
        self
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mark { line, column } = self.at;
        match &self.file {
            Some(file) => write!(f, "{file}:{line}:{column}: ")?,
            None => write!(f, "line {line}, column {column}: ")?,
        }
        write!(f, "document {}", self.document)?;
        match &self.item {
            Some(item) => write!(f, ", {item}"),
            None => Ok(()),
        }
    }
}

/// A document, or one object of a list, that could not be decoded.
///
/// The message names the file if it is known, the line in the whole input, the document and the object:
///
/// ```
/// let scheme = kubewright::scheme::Scheme::kubernetes();
/// let input = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n---\n\
///              apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n\
///              spec:\n  replicas: three\n";
/// let error = scheme.decoder().file("web.yaml").decode(input).last().unwrap().unwrap_err();
/// assert_eq!(error.location().line(), 12);
/// assert_eq!(
///     error.to_string(),
///     "web.yaml:12:13: document 2 (apps/v1 Deployment shop/web): spec.replicas: invalid type: a string, \
///      expected i32",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct DecodeError {
    at: Box<Location>,
    object: Option<Box<str>>,
    problem: Box<DecodeProblem>,
}

impl DecodeError {
    pub(super) fn new(at: Location, object: Option<String>, problem: DecodeProblem) -> Self {
        Self { at: Box::new(at), object: object.map(Into::into), problem: Box::new(problem) }
    }

    /// Where the fault is.
    pub fn location(&self) -> &Location {
        &self.at
    }

    /// What is known about the object, such as `apps/v1 Deployment shop/web`.
    pub fn object(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// What is wrong.
    pub fn problem(&self) -> &DecodeProblem {
        &self.problem
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        if let Some(object) = &self.object {
            write!(f, " ({object})")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// What is wrong with a document.
///
/// A manifest may hold secrets: the decoder quotes no text of the document, and for a `Secret` no value at all, not
/// even where the message is the type's own.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// The bytes are not UTF-8.
    #[error("the text is not UTF-8; save the file as UTF-8")]
    Encoding,
    /// Neither YAML nor JSON.
    #[error("{message}")]
    Syntax {
        /// What the reader stumbled over.
        message: String,
    },
    /// The document is larger than the decoder was told to accept.
    #[error("the document is larger than {limit} bytes; raise it with Decoder::max_document_bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Mappings and lists inside each other without end.
    #[error("more than {limit} levels of objects and lists inside each other")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The aliases of the document would make it larger than a document may be.
    #[error("the aliases of this document unfold to more than {limit} bytes; write the values out")]
    TooManyAliases {
        /// The limit.
        limit: usize,
    },
    /// The document is a scalar or a list.
    #[error("a Kubernetes object is needed here, but this is {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// `apiVersion` or `kind` is missing or no text.
    #[error("the object has no {field}; every object needs apiVersion and kind")]
    NoType {
        /// `apiVersion` or `kind`.
        field: &'static str,
    },
    /// `apiVersion` is not `version` or `group/version`.
    #[error("{api_version:?} is not an apiVersion: write it as version or group/version")]
    BadApiVersion {
        /// What was written.
        api_version: String,
    },
    /// No type is registered for the kind.
    #[error(
        "no type is registered for {} {}{}; register one with SchemeBuilder::register, or keep unknown kinds with \
         Decoder::unstructured_unknown",
        gvk.api_version(), gvk.kind, Versions(.registered)
    )]
    UnknownKind {
        /// The kind of the document.
        gvk: GroupVersionKind,
        /// The versions of the same kind that are registered.
        registered: Vec<String>,
    },
    /// A value does not fit its field.
    #[error("{}{message}", Prefix(path))]
    Invalid {
        /// The field, such as `spec.replicas`; empty for the object itself.
        path: String,
        /// What does not fit.
        message: String,
    },
    /// Unknown fields or repeated keys, in strict mode.
    #[error("{}", Issues(.0))]
    Strict(Vec<Issue>),
    /// One object of a type was asked for and the input holds something else.
    #[error("{wanted} was asked for, but {found}")]
    NotThatOne {
        /// The type that was asked for.
        wanted: String,
        /// What the input holds.
        found: String,
    },
}

/// A field that nobody reads, or a key that was written twice: an error in strict mode, a warning otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub(super) path: String,
    pub(super) at: Mark,
    pub(super) kind: IssueKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IssueKind {
    Unknown { similar: Option<&'static str> },
    Repeated { first_line: usize },
}

impl Issue {
    /// The field, such as `spec.template.spec.containers[0].imagePullPolcy`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line in the whole input, from 1.
    pub fn line(&self) -> usize {
        self.at.line
    }

    /// The column, from 1.
    pub fn column(&self) -> usize {
        self.at.column
    }

    /// Whether a key was written twice; otherwise the type does not know the field.
    pub fn is_repeated(&self) -> bool {
        matches!(self.kind, IssueKind::Repeated { .. })
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            IssueKind::Unknown { similar } => {
                write!(f, "unknown field {}", self.path)?;
                if let Some(similar) = similar {
                    write!(f, " (did you mean {similar}?)")?;
                }
            }
            IssueKind::Repeated { first_line } => {
                write!(f, "key {} was already set on line {first_line}", self.path)?;
            }
        }
        write!(f, ", line {}", self.at.line)
    }
}

/// Shows the first issues; a document of the wrong shape can have thousands.
struct Issues<'a>(&'a [Issue]);

impl fmt::Display for Issues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (index, issue) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{issue}", if index == 0 { "" } else { "; " })?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "; and {more} more"),
        }
    }
}

struct Versions<'a>(&'a [String]);

impl fmt::Display for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            versions => write!(f, " (registered: {})", versions.join(", ")),
        }
    }
}

struct Prefix<'a>(&'a str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// A fault before the document is known to be an object.
#[derive(Debug)]
pub(super) struct ReadError {
    pub(super) at: Mark,
    pub(super) problem: DecodeProblem,
}
