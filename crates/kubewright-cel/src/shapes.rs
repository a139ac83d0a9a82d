//! Declarations of built-in types, for type-checking expressions.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    decl::{Decl, DeclKind, ListKind},
    escape::escape,
};
use kubewright_schema::{AdditionalProperties, Child, Kind, ListType, Node, Scalar};

impl Decl {
    /// Creates the declaration of a built-in type. Recursive types are dynamic from the second level on.
    pub fn from_type(node: &Node) -> Arc<Self> {
        DeclBuilder::default().node(node)
    }
}

#[derive(Default)]
struct DeclBuilder {
    /// Definitions that are being converted.
    ancestors: Vec<u16>,
}

fn sized(kind: DeclKind) -> Arc<Decl> {
    Arc::new(Decl { kind, max_elements: u64::MAX, min_size: 1 })
}

impl DeclBuilder {
    fn child(&mut self, child: &Child) -> Arc<Decl> {
        let Child::Builtin(id) = child else { return self.node(child.node()) };
        if self.ancestors.contains(id) {
            return sized(DeclKind::Dyn);
        }
        self.ancestors.push(*id);
        let found = self.node(child.node());
        self.ancestors.pop();
        found
    }

    fn node(&mut self, node: &Node) -> Arc<Decl> {
        sized(match &node.kind {
            Kind::Any | Kind::Raw => DeclKind::Dyn,
            Kind::Scalar(scalar) => match scalar {
                Scalar::String | Scalar::Formatted | Scalar::Quantity => DeclKind::String,
                Scalar::Bytes => DeclKind::Bytes,
                Scalar::Time | Scalar::MicroTime => DeclKind::Timestamp(false),
                Scalar::Int32 | Scalar::Int64 => DeclKind::Int,
                Scalar::Number => DeclKind::Double,
                Scalar::Boolean => DeclKind::Bool,
                Scalar::IntOrString => DeclKind::Dyn,
            },
            Kind::List(list) => {
                let kind = match &list.list_type {
                    ListType::Atomic => ListKind::Atomic,
                    ListType::Set => ListKind::Set,
                    ListType::Map(keys) => ListKind::Map(keys.iter().map(ToString::to_string).collect()),
                };
                DeclKind::List(self.child(&list.item), kind)
            }
            Kind::Object(object) => match &object.additional {
                AdditionalProperties::Values(values) if object.fields.is_empty() => {
                    DeclKind::Map(self.child(values))
                }
                AdditionalProperties::Any if object.fields.is_empty() => DeclKind::Dyn,
                _ => {
                    let mut fields = BTreeMap::new();
                    for field in &object.fields {
                        if let Some(identifier) = escape(&field.name) {
                            fields.insert(identifier, (field.name.to_string(), self.child(&field.node)));
                        }
                    }
                    DeclKind::Object(fields)
                }
            },
        })
    }
}
