//! Adjustment of owned paths after a schema change from granular to atomic: the owner of a part becomes the
//! owner of the whole.

use crate::{
    AdditionalProperties, Kind, ListType, Node,
    apply::{path::PathElement, set::FieldSet},
};

/// Returns the set under the current schema, if it differs.
pub(crate) fn reconcile(node: &Node, set: &FieldSet) -> Option<FieldSet> {
    let mut atomic = FieldSet::new();
    visit(node, Some(set), false, &mut Vec::new(), &mut atomic);
    if atomic.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&atomic).union(&atomic))
}

fn visit(
    node: &Node,
    set: Option<&FieldSet>,
    owned_whole: bool,
    path: &mut Vec<PathElement>,
    atomic: &mut FieldSet,
) {
    let mut descend = |node: &Node, element: &PathElement, member: bool, below: &FieldSet| {
        path.push(element.clone());
        let below = (!below.is_empty()).then_some(below);
        visit(node, below, member && below.is_none(), path, atomic);
        path.pop();
    };
    match &node.kind {
        Kind::List(list) if list.list_type == ListType::Atomic => {
            if !owned_whole {
                atomic.insert(path);
            }
        }
        Kind::List(list) => {
            for (element, member, below) in set.into_iter().flat_map(FieldSet::level) {
                descend(list.item.node(), element, member, below);
            }
        }
        Kind::Object(object)
            if object.fields.is_empty() && matches!(object.additional, AdditionalProperties::Any) => {}
        Kind::Object(object) if object.atomic => {
            if !owned_whole && set.is_some() {
                atomic.insert(path);
            }
        }
        Kind::Object(object) => {
            for (element, member, below) in set.into_iter().flat_map(FieldSet::level) {
                let PathElement::Field(name) = element else { continue };
                if let Some(node) = object.value_of(name) {
                    descend(node, element, member, below);
                }
            }
        }
        Kind::Raw => {
            if !owned_whole && set.is_some() {
                atomic.insert(path);
            }
        }
        Kind::Scalar(_) | Kind::Any => {}
    }
}
