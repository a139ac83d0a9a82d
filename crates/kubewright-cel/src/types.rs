//! Types of expressions, and assignability.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::decl::{Decl, DeclKind};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// A type as a value.
    Kind,
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Optional(Box<Self>),
    Object(Arc<Decl>),
    /// A record of named values: the variables of a policy.
    Fields(Arc<BTreeMap<String, Self>>),
    /// A constructed object.
    Message(String),
    /// A type of the Kubernetes library.
    Opaque(&'static str),
    /// A type parameter of a signature.
    Param(usize),
}

impl Type {
    pub(super) fn of(decl: &Arc<Decl>) -> Self {
        match &decl.kind {
            DeclKind::Dyn => Self::Dyn,
            DeclKind::Bool => Self::Bool,
            DeclKind::Int => Self::Int,
            DeclKind::Double => Self::Double,
            DeclKind::String => Self::String,
            DeclKind::Bytes => Self::Bytes,
            DeclKind::Duration => Self::Duration,
            DeclKind::Timestamp(_) => Self::Timestamp,
            DeclKind::List(elem, _) => Self::List(Box::new(Self::of(elem))),
            DeclKind::Map(value) => Self::Map(Box::new(Self::String), Box::new(Self::of(value))),
            DeclKind::Object(_) => Self::Object(decl.clone()),
        }
    }

    pub(super) fn optional(self) -> Self {
        Self::Optional(Box::new(self))
    }

    /// Substitutes type parameters; unbound ones become dynamic.
    pub(super) fn bound(&self, bindings: &Bindings) -> Self {
        let inner = |of: &Self| Box::new(of.bound(bindings));
        match self {
            Self::Param(i) => bindings.0.get(*i).cloned().flatten().unwrap_or(Self::Dyn),
            Self::List(of) => Self::List(inner(of)),
            Self::Optional(of) => Self::Optional(inner(of)),
            Self::Map(key, value) => Self::Map(inner(key), inner(value)),
            other => other.clone(),
        }
    }

    /// Returns whether all values have the same size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Duration | Self::Timestamp => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }
}

/// Bindings of the type parameters of a signature.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings(Vec<Option<Type>>);

impl Bindings {
    /// Returns whether a value of type `actual` is assignable to `formal`; binds parameters.
    pub(super) fn accept(&mut self, formal: &Type, actual: &Type) -> bool {
        match (formal, actual) {
            (Type::Param(i), actual) => {
                if self.0.len() <= *i {
                    self.0.resize(i + 1, None);
                }
                match self.0[*i].clone() {
                    None | Some(Type::Dyn) => {
                        self.0[*i] = Some(actual.clone());
                        true
                    }
                    Some(before) if self.accept(&before, actual) => true,
                    Some(before) if self.accept(actual, &before) => {
                        self.0[*i] = Some(actual.clone());
                        true
                    }
                    Some(_) => false,
                }
            }
            (Type::Dyn, _)
            | (_, Type::Dyn)
            | (
                Type::Object(_) | Type::Optional(_) | Type::Opaque(_) | Type::Duration | Type::Timestamp,
                Type::Null,
            ) => true,
            (Type::List(formal), Type::List(actual)) | (Type::Optional(formal), Type::Optional(actual)) => {
                self.accept(formal, actual)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.accept(key, other_key) && self.accept(value, other_value)
            }
            (formal, actual) => formal == actual,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Param(_) => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("google.protobuf.Duration"),
            Self::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Self::Kind => f.write_str("type"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Object(_) => f.write_str("object"),
            Self::Fields(_) => f.write_str("kubernetes.variables"),
            Self::Message(name) => f.write_str(name),
            Self::Opaque(name) => f.write_str(name),
        }
    }
}
