//! Requests on resources: type, scope, content negotiation.

use std::sync::Arc;

use http::Response;
use parking_lot::Mutex;

use super::{
    super::{
        ApiBody,
        negotiate::{Accept, Shape},
        respond,
    },
    HandledRequest, is_builtin_group, no_such_page,
    object::is_builtin,
};
use crate::{
    registry::{call::Call, descriptor::Descriptor},
    status::Status,
    table,
};

impl HandledRequest<'_> {
    /// Serves a request on a resource.
    pub(super) async fn serve_resource(&self) -> Result<Response<ApiBody>, Status> {
        let info = self.info;
        let Some(ty) = self.components.registry.resolve(&info.api_group, &info.api_version, &info.resource)
        else {
            return if is_builtin_group(&info.api_group) {
                Err(Status::no_such_resource())
            } else {
                Ok(no_such_page())
            };
        };
        match self.check_scope(&ty) {
            // Custom resources have no handler outside of their scope.
            Err(_) if ty.custom.is_some() => return Ok(no_such_page()),
            checked => checked?,
        }
        if !info.subresource.is_empty() && ty.subresource(&info.subresource).is_none() {
            return Err(match ty.custom {
                Some(_) => Status::not_found(ty.about(&info.name)),
                None => Status::no_such_resource(),
            });
        }
        let accept = Accept::parse(self.accept(), is_builtin(&ty))?;
        let admission = self.components.admission();
        let call = Call {
            ty: &ty,
            namespace: if is_namespaces(&ty) { "" } else { &info.namespace },
            name: &info.name,
            subresource: &info.subresource,
            user: self.user,
            admission: Some(&admission),
            options: self.write_options(&info.verb)?,
            warnings: Mutex::default(),
        };
        if ty.group.is_empty() && ty.plural == "endpoints" {
            call.warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
        }
        if let Some(warning) = ty.custom.as_ref().and_then(|custom| custom.resource().deprecation_warning()) {
            call.warn(warning);
        }
        let mut response = match self.call_verb(&call).await {
            Ok(answer) => {
                let options = match &accept.shape {
                    Shape::Table(_) => table::Options::parse(info.query.get("includeObject"))?,
                    _ => table::Options::default(),
                };
                respond::answer(answer, &accept, self.components.registry.clock(), options)
            }
            Err(refusal) => respond::status(&refusal, accept.encoding),
        };
        respond::warn(&mut response, &call.warnings.lock());
        Ok(response)
    }

    /// Checks that a namespaced type is requested in a namespace or across all, and a cluster-scoped one outside.
    fn check_scope(&self, ty: &Arc<Descriptor>) -> Result<(), Status> {
        let verb = &*self.info.verb;
        let in_namespace = !self.info.namespace.is_empty() && !is_namespaces(ty);
        let across_namespaces = matches!(verb, "list" | "watch" | "deletecollection");
        if ty.namespaced() && !in_namespace && !across_namespaces {
            let posts_to_collection = verb == "create" && self.info.name.is_empty();
            return Err(if posts_to_collection {
                Status::method_not_allowed()
            } else {
                Status::no_such_resource()
            });
        }
        if in_namespace && !ty.namespaced() { Err(Status::no_such_resource()) } else { Ok(()) }
    }
}

fn is_namespaces(ty: &Descriptor) -> bool {
    ty.group.is_empty() && ty.plural == "namespaces"
}
