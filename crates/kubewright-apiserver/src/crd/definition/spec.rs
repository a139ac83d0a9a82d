//! Validation of a CRD as a whole, and of updates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    approval, columns, conversion, defaults, forbidden,
    head::{deprecation_warning, group_and_scope, validate_names},
    invalid, openapi, required, structural,
    view::{Version, VersionFields, View},
};
use crate::{
    crd::{
        names,
        props::{Props, any},
    },
    schema::{field::FieldError, validate::Validator},
};

/// Rules that an update may violate because the stored CRD violates them already (ratcheting).
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent rules")]
pub(super) struct Strictness {
    pub(super) require_schema: bool,
    pub(super) known_types: bool,
    pub(super) structural: bool,
    pub(super) pruned_defaults: bool,
    pub(super) atomic_sets: bool,
    pub(super) map_keys: bool,
    /// An unchanged schema is not rejected for the cost of a rule.
    pub(super) rule_cost: bool,
}

impl Strictness {
    const ALL: Self = Self {
        require_schema: true,
        known_types: true,
        structural: true,
        pruned_defaults: true,
        atomic_sets: true,
        map_keys: true,
        rule_cost: true,
    };

    fn for_update(old: &View<'_>) -> Self {
        let none = |ask: &dyn Fn(Props<'_>) -> bool| !old.schemas().any(|schema| any(schema, ask));
        Self {
            require_schema: old.versions.iter().all(|version| version.schema.is_some()),
            known_types: none(&|props| !openapi::is_known_type(props.kind())),
            structural: old.schemas().all(|schema| structural::validate(schema, "").is_empty()),
            pruned_defaults: old.schemas().all(defaults::are_pruned),
            atomic_sets: none(&openapi::has_granular_set),
            map_keys: none(&|props| !openapi::map_keys(props, "").is_empty()),
            rule_cost: true,
        }
    }
}

/// Validates a new CRD. Its name is validated with the metadata of all types.
pub fn validate_create(crd: &Value) -> Vec<FieldError> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    let mut out = Vec::new();
    let names = &crd["spec"]["names"];
    let wanted = format!(
        "{}.{}",
        names["plural"].as_str().unwrap_or_default(),
        crd["spec"]["group"].as_str().unwrap_or_default()
    );
    if !name.is_empty() && name != wanted {
        out.push(invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    out.extend(validate_spec(crd, None));
    out.extend(validate_common(crd, None));
    out
}

/// Validates an updated CRD.
///
/// ```
/// use kubewright_apiserver::crd::definition;
/// use serde_json::json;
///
/// let old = json!({"metadata": {"name": "demos.example.com"}, "spec": {
///     "group": "example.com", "scope": "Namespaced", "conversion": {"strategy": "None"},
///     "names": {"plural": "demos", "singular": "demo", "kind": "Demo", "listKind": "DemoList"},
///     "versions": [{"name": "v1", "served": true, "storage": true,
///                   "schema": {"openAPIV3Schema": {"type": "object"}}}]},
///     "status": {"storedVersions": ["v1"], "conditions": [{"type": "Established", "status": "True"}]}});
/// let mut new = old.clone();
/// new["spec"]["scope"] = "Cluster".into();
/// let errors = definition::validate_update(&new, &old);
/// assert_eq!(errors[0].to_string(), "spec.scope: Invalid value: \"Cluster\": field is immutable");
/// ```
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = validate_spec(new, Some(old));
    let mut immutable = |pointer: &str, field: &str| {
        let (new, old) = (new.pointer(pointer), old.pointer(pointer));
        if new != old {
            out.push(invalid(field, new.cloned().unwrap_or_default(), "field is immutable"));
        }
    };
    if super::status::is_true(old, "Established") {
        immutable("/spec/scope", "spec.scope");
        immutable("/spec/names/kind", "spec.names.kind");
    }
    immutable("/spec/group", "spec.group");
    immutable("/spec/names/plural", "spec.names.plural");
    out.extend(validate_common(new, Some(old)));
    out
}

/// Validates an updated status.
pub fn validate_status_update(new: &Value) -> Vec<FieldError> {
    validate_names(Props::new(&new["status"]["acceptedNames"]), "status.acceptedNames")
}

fn validate_common(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = validate_status_update(crd);
    out.extend(stored_versions(crd));
    out.extend(approval::validate(crd, old));
    let preserves = |crd: &Value| crd["spec"]["preserveUnknownFields"] == true;
    if preserves(crd) && !old.is_some_and(preserves) {
        out.push(invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    out
}

fn stored_versions(crd: &Value) -> Vec<FieldError> {
    const FIELD: &str = "status.storedVersions";
    let stored = Props::new(&crd["status"]).texts("storedVersions");
    if stored.is_empty() {
        return vec![invalid(FIELD, Value::Null, "must have at least one stored version")];
    }
    let versions = View::new(crd).versions;
    let mut out = Vec::new();
    for version in versions.iter().filter(|version| version.storage && !stored.contains(&version.name)) {
        let detail = format!("must have the storage version {}", version.name);
        out.push(invalid(FIELD, crd["status"]["storedVersions"].clone(), detail));
    }
    for (i, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.name == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            out.push(invalid(format!("{FIELD}[{i}]"), *name, detail));
        }
    }
    out
}

fn validate_spec(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = Props::new(&crd["spec"]);
    let view = View::new(crd);
    let old_view = old.map(View::new);
    let mut strict = old_view.as_ref().map_or(Strictness::ALL, Strictness::for_update);
    if !spec.flag("preserveUnknownFields") {
        strict.structural = true;
    }
    let mut out = group_and_scope(spec);
    for (i, version) in view.versions.iter().enumerate() {
        let missing = version.schema.is_none();
        let field = || format!("spec.versions[{i}].schema.openAPIV3Schema");
        if strict.require_schema && missing {
            out.push(required(field(), ""));
        } else if missing && version.definition.flag("served") {
            out.push(required(field(), "because otherwise all fields are pruned"));
        }
    }
    let unchanged = |version: &Version<'_>| {
        old_view.as_ref().is_some_and(|old| {
            old.versions.iter().any(|before| before.name == version.name && before.schema == version.schema)
        })
    };
    let kept_selectable = |name: &str, fields: &[Value]| {
        let before = old_view.as_ref().and_then(|old| match name {
            "" => Some(old.shared.selectable),
            name => {
                old.versions.iter().find(|version| version.name == name).map(|version| version.own.selectable)
            }
        });
        before == Some(fields)
    };
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (i, version) in view.versions.iter().enumerate() {
        let path = format!("spec.versions[{i}]");
        unique &= seen.insert(version.name);
        let reasons = names::label_1035(version.name);
        if !reasons.is_empty() {
            out.push(invalid(format!("{path}.name"), version.name, reasons.join(",")));
        }
        out.extend(deprecation_warning(version, &path));
        let strict = Strictness { rule_cost: !unchanged(version), ..strict };
        let kept = kept_selectable(version.name, version.own.selectable);
        out.extend(validate_version_fields(
            &version.own,
            version.schema,
            version.has_status,
            &path,
            "schema",
            strict,
            kept,
        ));
    }
    if !unique {
        out.push(
            invalid("spec.versions", Value::Null, "must contain unique version names")
                .with_displayed_value(view.go_versions()),
        );
    }
    if view.versions.iter().filter(|version| version.storage).count() != 1 {
        out.push(
            invalid("spec.versions", Value::Null, "must have exactly one version marked as storage version")
                .with_displayed_value(view.go_versions()),
        );
    }
    if let Some(first) = view.versions.first().map(|version| version.name).filter(|name| !name.is_empty()) {
        let reasons = names::label_1035(first);
        if !reasons.is_empty() {
            out.push(invalid("spec.version", first, reasons.join(",")));
        }
    }
    let given = Props::new(spec.get("names").unwrap_or(&Value::Null));
    for name in ["plural", "singular", "kind", "listKind"] {
        if given.text(name).is_empty() {
            out.push(required(format!("spec.names.{name}"), ""));
        }
    }
    out.extend(validate_names(given, "spec.names"));
    let any_status = view.versions.iter().any(|version| version.has_status);
    let strict = Strictness { rule_cost: !view.versions.first().is_some_and(unchanged), ..strict };
    let kept = kept_selectable("", view.shared.selectable);
    let shared = view.shared;
    out.extend(validate_version_fields(
        &shared,
        shared.schema,
        any_status,
        "spec",
        "validation",
        strict,
        kept,
    ));
    if let Some(conversion) = spec.get("conversion") {
        if spec.flag("preserveUnknownFields") && conversion["strategy"] != "None" {
            let strategy = conversion["strategy"].clone();
            let detail = "must be None if spec.preserveUnknownFields is true";
            out.push(invalid("spec.conversion.strategy", strategy, detail));
        }
        out.extend(conversion::validate(conversion, old.map(|old| &old["spec"]["conversion"])));
    }
    out
}

fn validate_version_fields(
    fields: &VersionFields<'_>,
    schema: Option<&Value>,
    has_status: bool,
    path: &str,
    schema_name: &str,
    strict: Strictness,
    kept_selectable: bool,
) -> Vec<FieldError> {
    let mut out = Vec::new();
    if let Some(schema) = fields.schema {
        out.extend(validate_schema(schema, has_status, &format!("{path}.{schema_name}"), strict));
    }
    if let Some(subresources) = fields.subresources {
        out.extend(columns::subresources(subresources, &format!("{path}.subresources")));
    }
    out.extend(columns::printer_columns(fields.columns, &format!("{path}.additionalPrinterColumns")));
    if !fields.selectable.is_empty() {
        let field = format!("{path}.selectableFields");
        match schema {
            None => out.push(invalid(field, "", "may only be set when validations.schema is included")),
            Some(schema) => {
                out.extend(columns::selectable_fields(fields.selectable, schema, &field, kept_selectable));
            }
        }
    }
    out
}

/// Validates one schema: its root, its structure, its defaults, then every node and its rules.
fn validate_schema(schema: &Value, has_status: bool, path: &str, strict: Strictness) -> Vec<FieldError> {
    let at = format!("{path}.openAPIV3Schema");
    let mut out: Vec<_> = openapi::root(schema, has_status, &at).into_iter().collect();
    if Props::new(schema).flag("nullable") {
        out.push(forbidden(format!("{at}.nullable"), "nullable cannot be true at the root"));
    }
    let mut with_rules = false;
    let mut unreadable = None;
    if strict.structural {
        if let Some(reason) = structural::unsupported(schema) {
            unreadable = Some(invalid(at.as_str(), "", reason));
        } else {
            let mut errors = structural::validate(schema, &at);
            if errors.is_empty() {
                errors = defaults::validate(schema, &at, strict.pruned_defaults);
            }
            with_rules = errors.is_empty();
            out.extend(errors);
        }
    }
    out.extend(openapi::validate(schema, &at, strict, with_rules));
    if out.is_empty() {
        out.extend(unreadable);
    }
    if out.is_empty()
        && let Err(error) = Validator::new(schema)
    {
        out.push(invalid(path, "", format!("error building validator: {error}")));
    }
    out
}
