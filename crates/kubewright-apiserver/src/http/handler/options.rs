//! Options of writes, from query and body.

use http::header;
use serde_json::json;

use super::{super::decode, HandledRequest};
use crate::{
    registry::{
        call::WriteOptions,
        json::text,
        semantics::FieldValidation,
        validation::Errors,
        verbs::{delete::DeleteOptions, options::flag},
    },
    status::{About, Status},
};

impl HandledRequest<'_> {
    /// Parses the options of a deletion, from the body or the query.
    pub(super) fn delete_options(&self) -> Result<DeleteOptions, Status> {
        if self.body.is_empty() {
            return DeleteOptions::parse(None, self.info.query.iter());
        }
        let (body, format) = self.text("DeleteOptions", "v1", true)?;
        let body = decode::plain("DeleteOptions", &body, format)?;
        let (kind, version) = (text(&body, "kind"), text(&body, "apiVersion"));
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(Status::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?}"
            )));
        }
        DeleteOptions::parse(Some(&body), self.info.query.iter())
    }

    /// Parses the options that all writes have in common.
    pub(super) fn write_options(&self, verb: &str) -> Result<WriteOptions, Status> {
        let mut options = WriteOptions::default();
        if !matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection") {
            return Ok(options);
        }
        let mut errors = Errors::default();
        for (key, value) in self.info.query.iter() {
            match (key, value) {
                ("dryRun", "All") => options.dry_run = true,
                ("dryRun", other) => errors.not_supported("dryRun", json!([other]), &["All"]),
                ("fieldManager", value) => {
                    if value.len() > 128 {
                        errors.too_long("fieldManager", 128);
                    }
                    value.clone_into(&mut options.field_manager);
                }
                ("fieldValidation", "" | "Warn") => {}
                ("fieldValidation", "Ignore") => options.field_validation = FieldValidation::Ignore,
                ("fieldValidation", "Strict") => options.field_validation = FieldValidation::Strict,
                ("fieldValidation", other) => {
                    errors.not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
                }
                ("force", value) => options.force = Some(flag(value)),
                _ => {}
            }
        }
        let apply = self.content_type().is_some_and(|t| t.starts_with("application/apply-patch"));
        if verb == "patch" && !apply && options.force.is_some() {
            errors.forbidden("force", "may not be specified for non-apply patch");
        }
        if verb == "patch" && apply && options.field_manager.is_empty() {
            errors.required("fieldManager", "is required for apply patch");
        }
        if !errors.is_empty() {
            let kind = match verb {
                "create" => "CreateOptions",
                "update" => "UpdateOptions",
                "patch" => "PatchOptions",
                _ => "DeleteOptions",
            };
            return Err(Status::invalid(About { group: "meta.k8s.io", kind, name: "" }, &errors));
        }
        if options.field_manager.is_empty() {
            // The default manager is the first part of the user agent.
            let agent = self.header(header::USER_AGENT).unwrap_or_default();
            let agent = agent.split('/').next().unwrap_or_default();
            let printable: String = agent.chars().filter(|c| !c.is_control()).take(128).collect();
            options.field_manager = if printable.is_empty() { "unknown".to_owned() } else { printable };
        }
        Ok(options)
    }
}
