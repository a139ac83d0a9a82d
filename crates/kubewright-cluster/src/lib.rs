//! A Kubernetes cluster in a process: an API server, the built-in controllers and simulated nodes.

pub mod events;
pub mod lifecycle;
mod objects;
pub mod policy;
pub mod services;
pub mod volumes;
