//! Custom resource definitions and custom resources.
//!
//! | you have | you want | use |
//! |---|---|---|
//! | a CRD of a request | defaulting, validation and status | [`definition`] |
//! | the CRDs of a group | accepted names and conditions | [`definition::status`] |
//! | an object of a served version | prune, default, validate, CEL, generation | [`resource::CustomResource`] |
//! | an object and a request for a Table | columns and cells | [`resource::columns`] |
//! | a Scale of an object | conversion in both directions | [`resource::scale`] |
//!
//! This module does not store or serve: the caller has the objects and the clock. In the server, that is
//! [`registry::custom`](crate::registry::custom).
//!
//! Pitfall: messages name fields such as `spec.validation.openAPIV3Schema` that a `apiextensions.k8s.io/v1`
//! object does not have. kube-apiserver validates an older internal form in which fields that all versions
//! share are at the top; users search for those messages, so they are kept.

pub(crate) use kubewright_schema::{dns as names, props};

pub mod definition;
pub mod jsonpath;
pub mod resource;
#[cfg(test)]
mod seeds;
