//! Which objects a list, a watch or a deletion is about.

mod field;
mod label;

pub use self::{
    field::{FieldSelector, FieldTerm},
    label::LabelSelector,
};
