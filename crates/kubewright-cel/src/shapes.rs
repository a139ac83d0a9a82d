//! The types of built-in objects as declarations, for checking expressions against them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    decl::{Decl, DeclKind, ListKind},
    escape::escape,
};
use kubewright_schema::{Child, Kind, ListType, Node, Rest, Scalar};

impl Decl {
    /// The type of a shape. What refers to itself can be anything from the second time on.
    pub fn of_shape(shape: &Node) -> Arc<Self> {
        Shapes::default().node(shape)
    }
}

#[derive(Default)]
struct Shapes {
    /// The definitions that are being looked at.
    above: Vec<u16>,
}

fn sized(kind: DeclKind) -> Arc<Decl> {
    Arc::new(Decl { kind, max_elements: u64::MAX, min_size: 1 })
}

impl Shapes {
    fn child(&mut self, child: &Child) -> Arc<Decl> {
        let Child::Builtin(id) = child else { return self.node(child.node()) };
        if self.above.contains(id) {
            return sized(DeclKind::Dyn);
        }
        self.above.push(*id);
        let found = self.node(child.node());
        self.above.pop();
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
            Kind::Object(object) => match &object.rest {
                Rest::Values(values) if object.fields.is_empty() => DeclKind::Map(self.child(values)),
                Rest::Free if object.fields.is_empty() => DeclKind::Dyn,
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
