//! An Ingress for every Service that is annotated with `ingress/http`, written twice.
//!
//! - [`by_hand`]: with informers and a work queue, as one writes it on client-go alone.
//! - [`with_builder`]: the same with a controller and a manager.
//!
//! Both keep these promises, and `tests/ingress_manager.rs` holds both to them:
//!
//! - a Service with the annotation has an Ingress of its name, which it controls;
//! - the Ingress goes with the annotation and with the Service;
//! - an Ingress that somebody deletes or changes by hand comes back as it should be;
//! - an Ingress of that name that somebody else controls is left alone; one that nobody controls is adopted;
//! - whatever happened while it was not running is made up for.

pub mod by_hand;
pub mod with_builder;

use kubewright::k8s_openapi::api::{
    core::v1::Service,
    networking::v1::{
        HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
        IngressSpec, ServiceBackendPort,
    },
};

/// Services with this annotation get an Ingress; its value is the host.
pub const ANNOTATION: &str = "ingress/http";

/// The host that the Service asks for, if it does.
fn host(service: &Service) -> Option<&str> {
    service.metadata.annotations.as_ref()?.get(ANNOTATION).map(String::as_str)
}

/// What the Ingress of a Service says: everything under its host goes to its first port.
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

/// Whether the Ingress is one that a Service of its name controls.
fn is_ours(ingress: &Ingress) -> bool {
    ingress.metadata.owner_references.iter().flatten().any(|owner| {
        owner.kind == "Service"
            && owner.controller == Some(true)
            && Some(&owner.name) == ingress.metadata.name.as_ref()
    })
}
