//! Objects of a served version of a CRD: pruning, defaulting, preparation and validation.
//!
//! A write is decoded by the caller, then goes through [`CustomResource::prune`] and
//! [`CustomResource::apply_defaults`]; one of the `prepare_*` functions resets fields that the endpoint may
//! not change and sets the generation, and the matching `validate_*` function returns the errors: schema,
//! scale, list types, and CEL rules if the earlier checks passed. [`Versions`] has all versions of a CRD and
//! converts objects between them and storage.
//!
//! Pitfall: a write through `/status` validates the status alone, so its messages have paths relative to it
//! (`phase in body`, not `status.phase in body`).

pub mod columns;
mod deprecation;
mod embedded;
mod metadata;
pub mod scale;
mod versions;

use std::sync::Arc;

use serde_json::Value;

use super::{
    jsonpath::JsonPath,
    props::{Props, set},
};
use crate::{
    cel::rules::{Budget, Findings, Rules},
    schema::{
        Gvk, Node, SchemaError, TypeRef,
        canonical::canonicalise,
        default::apply_defaults,
        field::{ErrorKind, FieldError},
        lists,
        prune::prune,
        validate::Validator,
    },
};
use columns::Column;
use scale::ScalePaths;

pub use versions::Versions;

/// Error compiling a version of a CRD.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The version does not exist.
    #[error("definition {definition:?} has no version {version:?}: serve one of spec.versions")]
    NoVersion {
        /// The name of the CRD.
        definition: String,
        /// The requested version.
        version: String,
    },
    /// The schema is invalid; a validated CRD never has such a schema.
    #[error(
        "definition {definition:?}, version {version:?}: {source}; validate the definition before serving it"
    )]
    Schema {
        /// The name of the CRD.
        definition: String,
        /// The requested version.
        version: String,
        /// The error of the schema.
        source: SchemaError,
    },
}

/// Version of a custom resource, compiled once and shared by all requests.
#[derive(Debug, Clone)]
pub struct CustomResource {
    gvk: Gvk,
    schema: TypeRef,
    validator: Validator,
    status_validator: Option<Validator>,
    rules: Option<Rules>,
    has_status: bool,
    scale: Option<ScalePaths>,
    columns: Vec<Column>,
    selectable: Vec<(String, JsonPath)>,
    warning: Option<String>,
    written: Option<Arc<Value>>,
    fingerprint: u64,
}

impl CustomResource {
    /// Compiles a version of a CRD.
    ///
    /// ```
    /// use kubewright_apiserver::crd::resource::CustomResource;
    /// use serde_json::json;
    ///
    /// let crd = json!({"metadata": {"name": "demos.example.com"}, "spec": {
    ///     "group": "example.com", "names": {"plural": "demos", "kind": "Demo"},
    ///     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
    ///         "type": "object", "properties": {"spec": {"type": "object", "properties": {
    ///             "name": {"type": "string", "pattern": "^test$"}}}}}}}]}});
    /// let demos = CustomResource::new(&crd, "v1")?;
    /// let mut demo = json!({"apiVersion": "example.com/v1", "kind": "Demo", "metadata": {"name": "a"},
    ///                       "spec": {"name": "hello", "banana": 1}});
    /// assert_eq!(demos.prune(&mut demo), [r#"unknown field "spec.banana""#]);
    /// demos.prepare_create(&mut demo);
    /// let found = demos.validate_create(&demo);
    /// assert_eq!(
    ///     found.errors[0].to_string(),
    ///     "spec.name: Invalid value: \"hello\": spec.name in body should match '^test$'"
    /// );
    /// # Ok::<(), kubewright_apiserver::crd::resource::ResourceError>(())
    /// ```
    pub fn new(crd: &Value, version: &str) -> Result<Self, ResourceError> {
        let definition = || crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let no_version =
            || ResourceError::NoVersion { definition: definition(), version: version.to_owned() };
        let bad =
            |source| ResourceError::Schema { definition: definition(), version: version.to_owned(), source };
        let versions = crd["spec"]["versions"].as_array().ok_or_else(no_version)?;
        let written = versions.iter().find(|known| known["name"] == version).ok_or_else(no_version)?;
        let openapi = &written["schema"]["openAPIV3Schema"];
        let schema = openapi;
        let open = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = if schema.is_object() { schema } else { &open };
        let has_status = written["subresources"]["status"].is_object();
        let status_schema = Props::new(schema).property("status").filter(|_| has_status);
        let names = &crd["spec"]["names"];
        let kind = names["kind"].as_str().unwrap_or_default();
        let selectable = Props::new(written).list("selectableFields").iter().filter_map(|field| {
            let text = Props::new(field).text("jsonPath");
            Some((text.trim_start_matches('.').to_owned(), JsonPath::parse(text).ok()?))
        });
        Ok(Self {
            gvk: Gvk::new(crd["spec"]["group"].as_str().unwrap_or_default(), version, kind),
            schema: TypeRef::from_structural(schema).map_err(bad)?,
            validator: Validator::new(schema).map_err(bad)?,
            status_validator: status_schema.map(Validator::new).transpose().map_err(bad)?,
            rules: Rules::compile(schema, true),
            has_status,
            scale: ScalePaths::new(&written["subresources"]["scale"]),
            columns: columns::from_definition(Props::new(written).list("additionalPrinterColumns")),
            selectable: selectable.collect(),
            warning: deprecation::warning(&crd["spec"], version),
            written: openapi.is_object().then(|| Arc::new(openapi.clone())),
            fingerprint: fingerprint(version, openapi),
        })
    }

    /// Returns group, version and kind.
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the schema, for apply and managedFields.
    pub fn schema(&self) -> &TypeRef {
        &self.schema
    }

    /// Returns the `openAPIV3Schema` of the CRD, for publishing.
    pub fn openapi(&self) -> Option<&Arc<Value>> {
        self.written.as_ref()
    }

    /// Returns an identifier of the schema: objects written under the same one need no pruning and defaulting
    /// on read.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns whether there is a status subresource.
    pub fn has_status(&self) -> bool {
        self.has_status
    }

    /// Returns the paths of the scale subresource, if there is one.
    pub fn scale(&self) -> Option<&ScalePaths> {
        self.scale.as_ref()
    }

    /// Returns the printer columns after the name; the age if the CRD has none.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the warning sent with every response of a deprecated version.
    pub fn deprecation_warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Removes unknown fields and returns them, as field validation reports them.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune(&self.schema, object)
    }

    /// Sets the defaults of the schema: on every write, and on every read from storage.
    pub fn apply_defaults(&self, object: &mut Value) {
        apply_defaults(&self.schema, object);
    }

    /// Returns the schema of `metadata`.
    pub(crate) fn metadata(&self) -> Option<&Node> {
        Some(self.schema.as_object()?.field("metadata")?.node.node())
    }

    /// Canonicalises metadata, which has a Go type even in custom resources.
    pub(crate) fn canonicalise_metadata(&self, object: &mut Value) {
        if let (Some(node), Some(value)) = (self.metadata(), object.get_mut("metadata")) {
            canonicalise(node, value);
        }
    }

    /// Converts an object of another version of the same CRD (conversion strategy None).
    pub fn convert(&self, object: &mut Value) {
        if object["apiVersion"] != self.gvk.api_version() {
            set(object, &["apiVersion"], self.gvk.api_version());
            self.prune(object);
        }
    }

    /// Returns the names of the selectable fields, besides name and namespace.
    pub fn selectable_fields(&self) -> impl Iterator<Item = &str> {
        self.selectable.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the value of a selectable field, by its index in [`Self::selectable_fields`]; empty if absent.
    pub fn selected(&self, object: &Value, field: usize) -> String {
        let found = self.selectable.get(field).and_then(|(_, path)| path.find(object).into_iter().next());
        match found {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// Prepares a create: generation 1, and no status if there is a status subresource.
    pub fn prepare_create(&self, object: &mut Value) {
        if let (true, Value::Object(map)) = (self.has_status, &mut *object) {
            map.remove("status");
        }
        set(object, &["metadata", "generation"], 1);
    }

    /// Prepares an update: keeps the status if there is a status subresource, and increments the generation
    /// for changes outside of metadata.
    pub fn prepare_update(&self, new: &mut Value, old: &Value) {
        if let (true, Value::Object(map)) = (self.has_status, &mut *new) {
            match old.get("status") {
                Some(status) => map.insert("status".to_owned(), status.clone()),
                None => map.remove("status"),
            };
        }
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        let changed = content(new) != content(old);
        set(new, &["metadata", "generation"], generation + i64::from(changed));
    }

    /// Prepares a status update: keeps everything else except for managedFields.
    pub fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        let (status, managed) = (new.get("status").cloned(), new["metadata"].get("managedFields").cloned());
        *new = old.clone();
        if let Value::Object(map) = &mut *new {
            match status {
                Some(status) => map.insert("status".to_owned(), status),
                None => map.remove("status"),
            };
        }
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            match managed {
                Some(managed) => metadata.insert("managedFields".to_owned(), managed),
                None => metadata.remove("managedFields"),
            };
        }
    }

    /// Validates a new object; includes warnings about its finalizers.
    pub fn validate_create(&self, object: &Value) -> Findings {
        let mut errors = self.check_type(object);
        if errors.is_empty() {
            errors.extend(metadata::shape(object));
            errors.extend(self.validator.validate(object));
            errors.extend(self.scale.iter().flat_map(|scale| scale.validate(object, true)));
            errors.extend(embedded::validate(&self.schema, object));
            errors.extend(lists::validate(&self.schema, object));
        }
        let mut found = self.with_rules(errors, object, None);
        found.warnings.extend(metadata::finalizers(object, None));
        found
    }

    /// Validates an update. Errors of unchanged values are dropped (ratcheting).
    pub fn validate_update(&self, new: &Value, old: &Value) -> Findings {
        let mut errors = self.check_type(new);
        if errors.is_empty() {
            errors.extend(metadata::shape(new));
            errors.extend(self.validator.validate_update(new, old));
            errors.extend(self.scale.iter().flat_map(|scale| scale.validate(new, true)));
            errors.extend(embedded::validate(&self.schema, new));
            errors.extend(self.list_errors(new, old));
        }
        let mut found = self.with_rules(errors, new, Some(old));
        found.warnings.extend(metadata::finalizers(new, Some(old)));
        found
    }

    /// Validates a status update.
    pub fn validate_status_update(&self, new: &Value, old: &Value) -> Findings {
        let mut errors = self.check_type(new);
        if errors.is_empty() {
            if let (Some(validator), Some(status)) = (&self.status_validator, new.get("status")) {
                let before = old.get("status").unwrap_or(&Value::Null);
                errors.extend(prefixed(validator.validate_update(status, before), "status"));
            }
            errors.extend(self.scale.iter().flat_map(|scale| scale.validate(new, false)));
            errors.extend(self.list_errors(new, old));
        }
        self.with_rules(errors, new, Some(old))
    }

    fn check_type(&self, object: &Value) -> Vec<FieldError> {
        let mut out = Vec::new();
        for (name, wanted) in [("kind", self.gvk.kind.clone()), ("apiVersion", self.gvk.api_version())] {
            let found = object[name].as_str().unwrap_or_default();
            if found != wanted {
                out.push(FieldError::new(ErrorKind::Invalid, name, found, format!("must be {wanted}")));
            }
        }
        out
    }

    /// Validates list types; lists that were invalid before may stay so.
    fn list_errors(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let errors = lists::validate(&self.schema, new);
        if errors.is_empty() || lists::validate(&self.schema, old).is_empty() { errors } else { Vec::new() }
    }

    /// Runs the CEL rules, provided that all values have the types that the rules were compiled for.
    fn with_rules(&self, mut errors: Vec<FieldError>, new: &Value, old: Option<&Value>) -> Findings {
        let Some(rules) = &self.rules else { return Findings { errors, warnings: Vec::new() } };
        let blocks = |error: &FieldError| {
            matches!(
                error.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            errors.push(FieldError::new(ErrorKind::Invalid, "", Value::Null, detail));
            return Findings { errors, warnings: Vec::new() };
        }
        let mut found = rules.validate("", new, old, true, &mut Budget::per_object());
        errors.append(&mut found.errors);
        Findings { errors, warnings: found.warnings }
    }
}

/// Computes a number that identifies a version and its schema; stable across restarts.
fn fingerprint(version: &str, schema: &Value) -> u64 {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(version.as_bytes());
    context.update(b"/");
    context.update(schema.to_string().as_bytes());
    let digest = context.finish();
    digest.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Returns the fields except metadata.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata").collect()
}

/// Prefixes the paths of errors of a part of an object.
pub(crate) fn prefixed(errors: Vec<FieldError>, prefix: &str) -> Vec<FieldError> {
    let place = |mut error: FieldError| {
        error.field = match &*error.field {
            "<nil>" => prefix.to_owned(),
            field if field.starts_with('[') => format!("{prefix}{field}"),
            field => format!("{prefix}.{field}"),
        };
        error
    };
    errors.into_iter().map(place).collect()
}
