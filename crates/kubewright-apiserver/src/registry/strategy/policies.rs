//! Defaults and validation of admission policies and their bindings.

use serde_json::Value;

use super::{
    PLAIN, Strategy,
    templates::validate_selector,
    webhooks::{one_of, validate_rule},
};
use crate::{
    admission::{compile_expression, expression_names, mutation_of},
    cel::Environment,
    registry::{
        json::{Json, default_text, list, name, object, object_mut, objects, objects_mut, text},
        validation::{Errors, names},
    },
};

pub(super) static VALIDATING: Strategy = Strategy {
    default: default_policy,
    validate: |new, errors| validate_policy(new, None, errors),
    validate_update: |new, old, errors| validate_policy(new, Some(old), errors),
    ..PLAIN
};

pub(super) static MUTATING: Strategy = Strategy {
    default: default_policy,
    validate: |new, errors| validate_policy(new, None, errors),
    validate_update: |new, old, errors| validate_policy(new, Some(old), errors),
    ..PLAIN
};

pub(super) static BINDING: Strategy = Strategy {
    default: |object| default_matches(object_mut(object, "spec"), "matchResources"),
    validate: validate_binding,
    validate_update: |new, _, errors| validate_binding(new, errors),
    ..PLAIN
};

/// Maximum number of match conditions.
const MAX_CONDITIONS: usize = 64;
/// Maximum number of audit annotations.
const MAX_ANNOTATIONS: usize = 20;
/// Maximum length of an audit annotation's expression.
const MAX_ANNOTATION: usize = 5 * 1024;

fn default_policy(object: &mut Json) {
    let spec = object_mut(object, "spec");
    default_text(spec, "failurePolicy", "Fail");
    default_matches(spec, "matchConstraints");
}

fn default_matches(parent: &mut Json, key: &str) {
    if let Some(matches) = parent.get_mut(key).and_then(Value::as_object_mut) {
        object_mut(matches, "namespaceSelector");
        object_mut(matches, "objectSelector");
        default_text(matches, "matchPolicy", "Equivalent");
        for list in ["resourceRules", "excludeResourceRules"] {
            for rule in objects_mut(matches, list) {
                default_text(rule, "scope", "*");
            }
        }
    }
}

fn validate_policy(new: &Json, old: Option<&Json>, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(new, "spec").unwrap_or(&empty);
    let mutating = text(new, "kind") == "MutatingAdmissionPolicy";
    let has_params = spec.contains_key("paramKind");
    one_of(spec, "failurePolicy", "spec", &["Fail", "Ignore"], errors);
    if let Some(kind) = object(spec, "paramKind") {
        validate_param_kind(kind, "spec.paramKind", errors);
    }
    match object(spec, "matchConstraints") {
        None => errors.required("spec.matchConstraints", ""),
        Some(criteria) => {
            validate_matches(criteria, "spec.matchConstraints", errors);
            if list(criteria, "resourceRules").is_empty() {
                errors.required("spec.matchConstraints.resourceRules", "");
            }
            if mutating {
                reject_delete_rules(criteria, "spec.matchConstraints", errors);
            }
        }
    }
    let old_spec = old.and_then(|old| object(old, "spec"));
    let unchanged = |key: &str| old_spec.is_some_and(|old| old.get(key) == spec.get(key));
    if !(unchanged("paramKind") && unchanged("matchConditions")) {
        validate_conditions(spec, has_params, "spec.matchConditions", errors);
    }
    let mut environment = expression_names(None, has_params, None, true);
    for (n, variable) in objects(spec, "variables").enumerate() {
        environment = environment.with_variables();
        validate_variable(variable, &mut environment, &format!("spec.variables[{n}]"), errors);
    }
    if mutating {
        validate_mutations(spec, environment, errors);
    } else {
        validate_validations(new, spec, &environment, errors);
    }
}

fn compiles(text: &str, environment: &Environment, wanted: &[&str], at: String, errors: &mut Errors) {
    if let Err(why) = compile_expression(text, environment, wanted) {
        errors.invalid(at, text, &why);
    }
}

fn validate_param_kind(kind: &Json, at: &str, errors: &mut Errors) {
    let version = text(kind, "apiVersion");
    let here = format!("{at}.apiVersion");
    let parts: Vec<&str> = version.split('/').collect();
    let (group, bare) = match parts.as_slice() {
        [group, version] => (*group, *version),
        [version] => ("", *version),
        _ => ("", ""),
    };
    if version.is_empty() {
        errors.required(here.as_str(), "");
    } else if parts.len() > 2 {
        errors.invalid(here.as_str(), version, &format!("unexpected GroupVersion string: {version}"));
    } else {
        let why = names::subdomain(group);
        if !group.is_empty() && !why.is_empty() {
            errors.invalid(here.as_str(), group, &why.join(","));
        }
        let why = names::label1035(bare);
        if bare.is_empty() {
            errors.invalid(here.as_str(), version, "version must be specified");
        } else if !why.is_empty() {
            errors.invalid(here.as_str(), bare, &why.join(","));
        }
    }
    let kind = text(kind, "kind");
    let why = names::label1035(&kind.to_lowercase());
    if kind.is_empty() {
        errors.required(format!("{at}.kind"), "");
    } else if !why.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", why.join(","));
        errors.invalid(format!("{at}.kind"), kind, &why);
    }
}

fn validate_matches(criteria: &Json, at: &str, errors: &mut Errors) {
    one_of(criteria, "matchPolicy", at, &["Equivalent", "Exact"], errors);
    for selector in ["namespaceSelector", "objectSelector"] {
        if let Some(written) = object(criteria, selector) {
            validate_selector(written, &format!("{at}.{selector}"), errors);
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for (n, rule) in objects(criteria, rules).enumerate() {
            let at = format!("{at}.{rules}[{n}]");
            let resource_names = list(rule, "resourceNames");
            for (m, named) in resource_names.iter().enumerate() {
                let here = format!("{at}.resourceNames[{m}]");
                for why in path_segment(named.as_str().unwrap_or_default()) {
                    errors.invalid(here.as_str(), named.clone(), &why);
                }
                if resource_names[..m].contains(named) {
                    errors.duplicate(here, named.clone());
                }
            }
            validate_rule(rule, &at, errors);
        }
    }
}

/// Returns the errors of a path segment.
fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let held = ["/", "%"].into_iter().filter(|part| name.contains(part));
    held.map(|part| format!("may not contain '{part}'")).collect()
}

fn reject_delete_rules(criteria: &Json, at: &str, errors: &mut Errors) {
    let known = ["*", "CONNECT", "CREATE", "UPDATE"];
    for rule in objects(criteria, "resourceRules") {
        for operation in list(rule, "operations").iter().filter(|o| !known.iter().any(|known| *o == known)) {
            errors.not_supported(format!("{at}.resourceRules.operations"), operation.clone(), &known);
        }
    }
}

/// Validates the `matchConditions` of a policy or a webhook.
pub(super) fn validate_conditions(parent: &Json, has_params: bool, at: &str, errors: &mut Errors) {
    let conditions: Vec<&Json> = objects(parent, "matchConditions").collect();
    if conditions.is_empty() {
        return;
    }
    if conditions.len() > MAX_CONDITIONS {
        errors.too_many(at, conditions.len(), MAX_CONDITIONS);
    }
    let environment = expression_names(None, has_params, None, true);
    for (n, condition) in conditions.iter().enumerate() {
        let here = format!("{at}[{n}]");
        match text(condition, "expression").trim() {
            "" => errors.required(format!("{here}.expression"), ""),
            expression => compiles(expression, &environment, &["bool"], format!("{here}.expression"), errors),
        }
        let named = text(condition, "name");
        if named.is_empty() {
            errors.required(format!("{here}.name"), "");
            continue;
        }
        for why in names::qualified(named) {
            errors.invalid(format!("{here}.name"), named, &why);
        }
        if conditions[..n].iter().any(|before| text(before, "name") == named) {
            errors.duplicate(format!("{here}.name"), named);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && letters.all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !crate::cel::is_reserved(name)
}

fn validate_variable(variable: &Json, environment: &mut Environment, at: &str, errors: &mut Errors) {
    let named = text(variable, "name");
    if named.trim().is_empty() {
        errors.required(format!("{at}.name"), "name is not specified");
    } else if !is_identifier(named) {
        errors.invalid(format!("{at}.name"), named, "must be a valid CEL identifier");
    }
    let expression = text(variable, "expression");
    if expression.trim().is_empty() {
        return errors.required(format!("{at}.expression"), "expression is not specified");
    }
    let program = compile_expression(expression, environment, &[]);
    if let Err(why) = &program {
        errors.invalid(format!("{at}.expression"), expression, why);
    }
    environment.add_variable(named, &program);
}

fn validate_validations(policy: &Json, spec: &Json, environment: &Environment, errors: &mut Errors) {
    let annotations: Vec<&Json> = objects(spec, "auditAnnotations").collect();
    if list(spec, "validations").is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.required("spec.validations", why);
        errors.required("spec.auditAnnotations", why);
        return;
    }
    let has_params = spec.contains_key("paramKind");
    let messages = expression_names(None, has_params, None, false).with_variables_of(environment);
    for (n, validation) in objects(spec, "validations").enumerate() {
        validate_validation(validation, environment, &messages, &format!("spec.validations[{n}]"), errors);
    }
    if annotations.len() > MAX_ANNOTATIONS {
        let why = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        errors.invalid(
            "spec.auditAnnotations",
            spec.get("auditAnnotations").cloned().unwrap_or_default(),
            &why,
        );
    }
    for (n, annotation) in annotations.iter().enumerate() {
        let at = format!("spec.auditAnnotations[{n}]");
        let key = text(annotation, "key");
        let full = format!("{}/{key}", name(policy));
        for why in names::qualified(&full) {
            errors.invalid(format!("{at}.key"), full.as_str(), &why);
        }
        let here = format!("{at}.valueExpression");
        let expression = text(annotation, "valueExpression");
        match expression.trim() {
            "" => errors.required(here, "valueExpression is not specified"),
            trimmed if trimmed.len() > MAX_ANNOTATION => {
                errors.required(here, &format!("must not exceed {MAX_ANNOTATION} bytes in length"));
            }
            trimmed => {
                if let Err(why) = compile_expression(trimmed, environment, &["string", "null_type"]) {
                    errors.invalid(here, expression, &why);
                }
            }
        }
        if annotations[..n].iter().any(|before| text(before, "key") == key) {
            errors.duplicate(format!("{at}.key"), key);
        }
    }
}

fn validate_validation(
    validation: &Json,
    environment: &Environment,
    messages: &Environment,
    at: &str,
    errors: &mut Errors,
) {
    let expression = text(validation, "expression");
    if expression.trim().is_empty() {
        errors.required(format!("{at}.expression"), "expression is not specified");
    } else {
        compiles(expression, environment, &["bool"], format!("{at}.expression"), errors);
    }
    let (message, expression) = (text(validation, "message"), text(validation, "messageExpression"));
    if !expression.is_empty() && expression.trim().is_empty() {
        errors.invalid(format!("{at}.messageExpression"), expression, "must be non-empty if specified");
    } else if !expression.is_empty() {
        compiles(expression, messages, &["string"], format!("{at}.messageExpression"), errors);
    }
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(format!("{at}.message"), message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(format!("{at}.message"), message, "must not contain line breaks");
    }
    one_of(validation, "reason", at, &["Forbidden", "Invalid", "RequestEntityTooLarge"], errors);
}

fn validate_mutations(spec: &Json, environment: Environment, errors: &mut Errors) {
    let environment = environment.with_variables().with_patches();
    if list(spec, "mutations").is_empty() {
        errors.required("spec.mutations", "mutations must contain at least one item");
    }
    for (n, mutation) in objects(spec, "mutations").enumerate() {
        let at = format!("spec.mutations[{n}]");
        let patch_type = text(mutation, "patchType");
        let other = match patch_type {
            "" => {
                errors.required(format!("{at}.patchType"), "");
                continue;
            }
            "JSONPatch" => "applyConfiguration",
            "ApplyConfiguration" => "jsonPatch",
            unknown => {
                let known = ["ApplyConfiguration", "JSONPatch"];
                errors.not_supported(format!("{at}.patchType"), unknown, &known);
                continue;
            }
        };
        let (field, wanted) = mutation_of(mutation);
        match object(mutation, field) {
            None => errors.required(
                format!("{at}.{field}"),
                &format!("must be specified when patchType is {patch_type}"),
            ),
            Some(patch) => {
                let here = format!("{at}.{field}.expression");
                match text(patch, "expression").trim() {
                    "" => errors.required(here, ""),
                    expression => compiles(expression, &environment, &[wanted], here, errors),
                }
            }
        }
        if mutation.contains_key(other) {
            let why = format!("must not be specified when patchType is {patch_type}");
            errors.invalid(format!("{at}.{other}"), format!("{{{other}}}"), &why);
        }
    }
    if text(spec, "reinvocationPolicy").is_empty() {
        errors.required("spec.reinvocationPolicy", "");
    }
    one_of(spec, "reinvocationPolicy", "spec", &["IfNeeded", "Never"], errors);
}

fn validate_binding(binding: &Json, errors: &mut Errors) {
    let empty = Json::new();
    let spec = object(binding, "spec").unwrap_or(&empty);
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        errors.required("spec.policyName", "");
    } else {
        for why in names::subdomain(policy) {
            errors.invalid("spec.policyName", policy, &why);
        }
    }
    if let Some(reference) = object(spec, "paramRef") {
        validate_param_ref(reference, errors);
    }
    if let Some(criteria) = object(spec, "matchResources") {
        validate_matches(criteria, "spec.matchResources", errors);
        if text(binding, "kind") == "MutatingAdmissionPolicyBinding" {
            reject_delete_rules(criteria, "spec.matchResources", errors);
        }
    }
    if text(binding, "kind") == "ValidatingAdmissionPolicyBinding" {
        validate_actions(list(spec, "validationActions"), errors);
    }
}

fn validate_param_ref(reference: &Json, errors: &mut Errors) {
    let named = text(reference, "name");
    let selector = object(reference, "selector");
    let exclusive = "name and selector are mutually exclusive";
    if !named.is_empty() {
        for why in path_segment(named) {
            errors.invalid("spec.paramRef.name", named, &why);
        }
        if selector.is_some() {
            errors.forbidden("spec.paramRef.name", exclusive);
        }
    }
    if let Some(selector) = selector {
        validate_selector(selector, "spec.paramRef.selector", errors);
        if !named.is_empty() {
            errors.forbidden("spec.paramRef.selector", exclusive);
        }
    }
    if named.is_empty() && selector.is_none() {
        errors.required("spec.paramRef", "one of name or selector must be specified");
    }
    let action = text(reference, "parameterNotFoundAction");
    if action.is_empty() {
        errors.required("spec.paramRef.parameterNotFoundAction", "");
    } else if !matches!(action, "Allow" | "Deny") {
        errors.not_supported("spec.paramRef.parameterNotFoundAction", action, &["Deny", "Allow"]);
    }
}

fn validate_actions(actions: &[Value], errors: &mut Errors) {
    if actions.is_empty() {
        errors.required("spec.validationActions", "");
    }
    for (n, action) in actions.iter().enumerate() {
        let field = format!("spec.validationActions[{n}]");
        if !action.as_str().is_some_and(|a| matches!(a, "Audit" | "Deny" | "Warn")) {
            errors.not_supported(field.as_str(), action.clone(), &["Audit", "Deny", "Warn"]);
        }
        if actions[..n].contains(action) {
            errors.duplicate(field, action.clone());
        }
    }
    let has = |wanted: &str| actions.iter().any(|a| a == wanted);
    if has("Deny") && has("Warn") {
        errors.invalid(
            "spec.validationActions",
            Value::Array(actions.to_vec()),
            "must not contain both Deny and Warn (repeating the same validation failure information in the API \
             response and headers serves no purpose)",
        );
    }
}
