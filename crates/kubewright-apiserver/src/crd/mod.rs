//! Custom resource definitions and the objects of the types they define.
//!
//! | you have | you want | use |
//! |---|---|---|
//! | a CRD from a writer | defaults, status and refusals as the real server has them | [`definition`] |
//! | a CRD and its neighbours | accepted names and conditions | [`definition::status`] |
//! | an object of a served version | prune, default, validate, CEL, generation | [`resource::CustomResource`] |
//! | an object and a request for a Table | columns and cells | [`resource::columns`] |
//! | a Scale of an object | the view and the way back | [`resource::scale`] |
//!
//! Nothing here stores, serves or waits: the caller holds the objects and the clock. In the server, that is
//! [`registry::custom`](crate::registry::custom).
//!
//! Pitfall: messages name places such as `spec.validation.openAPIV3Schema` that a `apiextensions.k8s.io/v1` object does
//! not have. The real server validates an older internal form in which whatever all versions share is written
//! once at the top; people search for those texts, so they are kept.

pub(crate) use kubewright_schema::{dns as names, props};

pub mod definition;
pub mod jsonpath;
pub mod resource;
#[cfg(test)]
mod seeds;
