//! Label and field selectors of list, watch and delete-collection requests.

mod field;
mod label;

pub use self::{
    field::{FieldSelector, FieldTerm},
    label::LabelSelector,
};
