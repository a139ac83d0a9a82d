//! An Ingress for every Service that is annotated with `ingress/http`, implemented twice.
//!
//! - [`by_hand`]: with informers and a work queue, as with client-go alone.
//! - [`with_builder`]: with a controller and a manager.
//!
//! Both guarantee, as `tests/ingress_manager.rs` checks:
//!
//! - a Service with the annotation has an Ingress of its name, which it controls;
//! - the Ingress is deleted with the annotation and with the Service;
//! - an Ingress that is deleted or changed by hand is restored;
//! - an Ingress of that name that another owner controls is left alone; one without a controller is adopted;
//! - changes made while it was not running are reconciled.

pub mod by_hand;
pub mod with_builder;

use kubewright::k8s_openapi::api::{
    core::v1::Service,
    networking::v1::{
        HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
        IngressSpec, ServiceBackendPort,
    },
};

/// Annotation of Services that get an Ingress; its value is the host.
pub const ANNOTATION: &str = "ingress/http";

/// The host in the Service's annotation.
fn host(service: &Service) -> Option<&str> {
    service.metadata.annotations.as_ref()?.get(ANNOTATION).map(String::as_str)
}

/// The rules of a Service's Ingress: all paths of the host lead to its first port.
fn rules(service: &Service) -> Option<IngressSpec> {
    let port = service.spec.as_ref()?.ports.as_ref()?.first()?.port;
    let backend = IngressServiceBackend {
        name: service.metadata.name.clone()?,
        port: Some(ServiceBackendPort { number: Some(port), name: None }),
    };
    let path = HTTPIngressPath {
        path: Some("/".to_owned()),
        path_type: "Prefix".to_owned(),
        backend: IngressBackend { service: Some(backend), resource: None },
    };
    let rule = IngressRule {
        host: host(service).filter(|host| !host.is_empty()).map(str::to_owned),
        http: Some(HTTPIngressRuleValue { paths: vec![path] }),
    };
    Some(IngressSpec { rules: Some(vec![rule]), ..IngressSpec::default() })
}

/// Whether a Service of the same name controls the Ingress.
fn is_ours(ingress: &Ingress) -> bool {
    ingress.metadata.owner_references.iter().flatten().any(|owner| {
        owner.kind == "Service"
            && owner.controller == Some(true)
            && Some(&owner.name) == ingress.metadata.name.as_ref()
    })
}
