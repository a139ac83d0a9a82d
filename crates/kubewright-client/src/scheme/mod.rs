//! Types, kinds and documents: what `runtime.Scheme` and its codecs are to Go.
//!
//! A [`Scheme`] knows which Rust type stands for which kind (`apps/v1 Deployment` ↔
//! [`Deployment`](k8s_openapi::api::apps::v1::Deployment)), how to fill in defaults and how to convert between the
//! versions of a kind. With it, any YAML or JSON text becomes objects:
//!
//! ```
//! use kubewright::{
//!     k8s_openapi::api::{apps::v1::Deployment, core::v1::Service},
//!     scheme::{Scheme, to_yaml},
//! };
//!
//! let manifests = "
//! apiVersion: v1
//! kind: Service
//! metadata: {name: web, namespace: shop}
//! spec:
//!   ports: [{port: 80}]
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web, namespace: shop}
//! spec:
//!   selector: {matchLabels: {app: web}}
//!   template: {metadata: {labels: {app: web}}}
//! ";
//! for object in Scheme::kubernetes().decode(manifests) {
//!     let object = object?;                                   // an error names document, object and line
//!     if let Some(service) = object.downcast_ref::<Service>() {
//!         assert_eq!(service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0].port, 80);
//!     } else if let Some(deployment) = object.downcast_ref::<Deployment>() {
//!         assert!(to_yaml(deployment)?.starts_with("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n"));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Scheme::builder`] registers types, defaulting functions and conversion functions; [`Scheme::kubernetes`] has
//!   the built-in kinds.
//! - [`Scheme::decode`] is strict; [`Scheme::decoder`] has the settings: lenient, unknown kinds as unstructured
//!   objects, defaults, file name, limits.
//! - [`Scheme::convert`] converts between types, [`Scheme::convert_object`] a decoded object to an `apiVersion`.
//! - [`to_yaml`], [`to_json`] and their stream forms write objects.
//!
//! # Pitfalls
//! - Words mean what they mean to `kubectl`, which is YAML 1.1: an unquoted `yes`, `on` or `n` is a boolean and
//!   `0644` is the number 420. In a text field that is an error with the line, never a silent change. In an
//!   unstructured object there is no field to check against: `version: 1.10` is the number 1.1 there, as it is for
//!   `kubectl`, and the *key* `on` is `"true"`. Quote what is meant as text.
//! - Strict decoding asks the type which fields it knows. A type with `#[serde(flatten)]` takes whatever comes, so
//!   nothing inside it is ever reported as unknown.
//! - Defaults run on request only, and a conversion runs none.
//! - Decoding does not validate: that is the API server's business.

mod builder;
mod builtin;
mod convert;
mod de;
mod decode;
mod decoded;
mod documents;
mod encode;
mod error;
mod json;
mod limits;
mod node;
mod object;
mod registry;
mod scalar;
mod similar;
#[cfg(test)]
mod tests;
mod yaml;

pub use builder::{SchemeBuilder, SchemeError};
pub use convert::{BoxError, ConvertError};
pub use decode::{Decoder, Objects};
pub use decoded::Decoded;
pub use encode::{EncodeError, to_json, to_json_stream, to_yaml, to_yaml_stream};
pub use error::{DecodeError, DecodeProblem, Issue, Location};
use registry::Inner;
pub use registry::Scheme;
