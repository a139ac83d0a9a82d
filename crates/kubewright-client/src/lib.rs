#![doc = include_str!("../README.md")]
//!
//! The clients: four ways to talk to the API server over one transport.
//!
//! | client | what for | client-go |
//! |---|---|---|
//! | [`RestClient`] | any path, any verb, raw bytes | `rest.RESTClient` |
//! | [`Api<K>`](kube::Api), see [`typed`] | objects as Rust types, built-in or your own | `kubernetes.Clientset` |
//! | [`DynamicClient`] | objects of any kind, known at run time | `dynamic.Interface` |
//! | [`DiscoveryClient`] | which kinds there are | `discovery.CachedDiscoveryInterface` |
//!
//! Beside them, [`RestMapper`] turns kinds and words into resources. [`Clients`] holds all of them, over one
//! [`Transport`], from one configuration:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewright::client::{Clients, typed::{ListParams, ResourceExt}};
//!
//! let clients = Clients::try_default().await?;
//! for pod in clients.typed_in::<Pod>("default").list(&ListParams::default()).await? {
//!     println!("{}", pod.name_any());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`config`]: kubeconfig files and the Pod's own account.
//! - [`transport`]: the layers (tokens, passwords, user agent, impersonation, debugging), who wins, and why
//!   nothing is retried or limited here.
//! - [`error`]: what goes wrong, and the questions to ask it ([`Refusal`]).
//!
//! - [`owner`]: who owns an object.
//!
//! Everything here is cheap to clone and safe to share. All of them read from the server each
//! time; `kubewright-runtime` has the client that reads from caches.

mod clients;
pub mod config;
pub mod discovery;
pub mod dynamic;
pub mod error;
pub mod owner;
pub mod rest;
pub mod rest_mapper;
pub mod scheme;
#[cfg(test)]
mod testing;
pub mod transport;
pub mod typed;

pub use self::{
    clients::{Clients, ClientsError},
    config::{ConfigError, ConfigLoader},
    discovery::{
        DiscoveryClient, DiscoveryError, DiscoveryFailure, DiskCache, FailureReason, GroupInfo, ResourceInfo,
        ServerResources, SubresourceInfo, VersionInfo,
    },
    dynamic::{Deletion, DynamicClient, FieldError, NestedFields, ResourceClient, SubresourceClient},
    error::{ApiError, DecodeFault, Refusal, TransportFault},
    owner::{OwnerError, remove_owner_reference, set_controller_reference, set_owner_reference},
    rest::{BodyStream, PatchType, RestClient, RestRequest, WatchStream},
    rest_mapper::{MapperError, RestMapper},
    transport::{
        BasicAuth, BearerToken, DebugLevel, Impersonation, RestMetrics, Transport, TransportBuilder,
        TransportError, UserAgent, Warning, Warnings,
    },
};
