//! From the verb of a request to the function of the registry.

use parking_lot::Mutex;

use super::{super::negotiate, HandledRequest};
use crate::{
    registry::{
        call::{Answer, Call, WriteOptions},
        semantics::PatchKind,
        verbs::options::ListOptions,
    },
    status::Status,
};

impl HandledRequest<'_> {
    /// Calls the verb of a request.
    pub(super) async fn call_verb(&self, call: &Call<'_>) -> Result<Answer, Status> {
        let registry = &*self.components.registry;
        let verb = &*self.info.verb;
        let offered = match call.ty.subresource(call.subresource) {
            Some(sub) => sub.verbs.iter().any(|v| *v == verb),
            None => call.ty.has_verb(verb),
        };
        if !offered {
            return Err(match call.ty.custom {
                Some(_) => Status::not_supported(call.ty.about(""), verb),
                None => Status::method_not_allowed(),
            });
        }
        match verb {
            "list" | "watch" => {
                let options = ListOptions::parse(self.info)?;
                // A name from the field selector is selected by that; one of a legacy watch path is not.
                let selected = options.fields.required("metadata.name").is_some();
                let name = if selected { "" } else { call.name };
                let call =
                    &Call { name, options: WriteOptions::default(), warnings: Mutex::default(), ..*call };
                if options.watch { registry.watch(call, &options) } else { registry.list(call, &options) }
            }
            "get" => {
                if let Some(answer) = registry.get_subresource(call, self.info.query.iter()) {
                    return answer;
                }
                registry.get(call, self.info.query.get("resourceVersion").unwrap_or_default())
            }
            "create" => {
                let access = self.components.access_control();
                let object = self.object(call)?;
                if !call.subresource.is_empty() {
                    return registry.create_subresource(call, &object, access).await;
                }
                if let Some(answer) = registry.review(call, &object, access).await {
                    return answer;
                }
                registry.create(call, object).await
            }
            "update" => {
                let object = self.object(call)?;
                match call.subresource {
                    "scale" => registry.put_scale(call, &object).await,
                    "finalize" => registry.finalize(call, &object).await,
                    _ => registry.update(call, object).await,
                }
            }
            "patch" => self.patch(call).await,
            "delete" => registry.delete(call, &self.delete_options()?).await,
            "deletecollection" => {
                let list = ListOptions::parse(self.info)?;
                let options = self.delete_options()?;
                let call =
                    &Call { name: "", warnings: Mutex::default(), options: call.options.clone(), ..*call };
                registry.delete_collection(call, &list, &options).await
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    async fn patch(&self, call: &Call<'_>) -> Result<Answer, Status> {
        let media = self.content_type().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let kind = match media {
            "application/json-patch+json" => PatchKind::Json,
            "application/merge-patch+json" => PatchKind::Merge,
            "application/strategic-merge-patch+json" => PatchKind::Strategic,
            "application/apply-patch+yaml" => PatchKind::Apply,
            _ => return Err(negotiate::unsupported_patch(call.ty.custom.is_some())),
        };
        if kind == PatchKind::Strategic && call.ty.custom.is_some() {
            return Err(negotiate::unsupported_patch(true));
        }
        match call.subresource {
            "scale" => self.components.registry.patch_scale(call, kind, self.body).await,
            _ => self.components.registry.patch(call, kind, self.body).await,
        }
    }
}
