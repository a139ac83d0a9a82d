//! Defaults and validation of webhook configurations.

use serde_json::Value;

use super::{PLAIN, Strategy, policies::validate_conditions, templates::validate_selector};
use crate::{
    admission::REVIEWS,
    registry::{
        json::{Json, default, default_text, list, object, object_mut, objects, objects_mut, text},
        validation::{Errors, names},
    },
};

pub(super) static MUTATING: Strategy = Strategy {
    default: |object| default_webhooks(object, true),
    validate: |new, errors| validate(new, None, errors),
    validate_update: |new, old, errors| validate(new, Some(old), errors),
    warnings: warn_about_review_rules,
    ..PLAIN
};

pub(super) static VALIDATING: Strategy = Strategy {
    default: |object| default_webhooks(object, false),
    validate: |new, errors| validate(new, None, errors),
    validate_update: |new, old, errors| validate(new, Some(old), errors),
    warnings: warn_about_review_rules,
    ..PLAIN
};

/// `AdmissionReview` versions that the server can send.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

fn default_webhooks(object: &mut Json, mutating: bool) {
    for hook in objects_mut(object, "webhooks") {
        default_text(hook, "failurePolicy", "Fail");
        default_text(hook, "matchPolicy", "Equivalent");
        object_mut(hook, "namespaceSelector");
        object_mut(hook, "objectSelector");
        default(hook, "timeoutSeconds", 10);
        if mutating {
            default_text(hook, "reinvocationPolicy", "Never");
        }
        for rule in objects_mut(hook, "rules") {
            default_text(rule, "scope", "*");
        }
        if let Some(service) =
            hook.get_mut("clientConfig").and_then(|c| c.get_mut("service")).and_then(Value::as_object_mut)
        {
            default(service, "port", 443);
        }
    }
}

/// Warns about rules for review resources, which are never sent to webhooks.
fn warn_about_review_rules(configuration: &Json, _: Option<&Json>, warnings: &mut Vec<String>) {
    for (n, hook) in objects(configuration, "webhooks").enumerate() {
        for (m, rule) in objects(hook, "rules").enumerate() {
            let has = |key: &str, wanted: &str| list(rule, key).iter().any(|item| item == wanted);
            if has("apiGroups", "*") || has("resources", "*") {
                continue;
            }
            for (group, resource) in REVIEWS {
                if has("apiGroups", group) && has("resources", resource) {
                    warnings.push(format!(
                        "webhooks[{n}].rules[{m}]: {resource}.{group} is excluded from admission webhooks; this rule will \
                         have no effect"
                    ));
                }
            }
        }
    }
}

fn hooks(configuration: &Json) -> Vec<&Json> {
    objects(configuration, "webhooks").collect()
}

fn is_known_version(version: &Value) -> bool {
    VERSIONS.iter().any(|known| version == known)
}

/// Violations of an old configuration that an update may keep (ratcheting).
#[expect(clippy::struct_excessive_bools, reason = "independent rules")]
struct Ratcheting {
    side_effects: bool,
    versions: bool,
    names: bool,
    conditions: bool,
}

impl Ratcheting {
    fn new(new: &Json, old: Option<&Json>) -> Self {
        let Some(old) = old else {
            return Self { side_effects: false, versions: false, names: false, conditions: false };
        };
        let (new, old) = (hooks(new), hooks(old));
        let names: std::collections::BTreeSet<_> = old.iter().map(|hook| text(hook, "name")).collect();
        let knows_none = |hook: &&Json| {
            let versions = list(hook, "admissionReviewVersions");
            !versions.is_empty() && !versions.iter().any(is_known_version)
        };
        let conditions = |hook: &&Json| hook.get("matchConditions").cloned();
        Self {
            side_effects: old.iter().any(|hook| !NO_SIDE_EFFECTS.contains(&text(hook, "sideEffects"))),
            versions: old.iter().any(knows_none),
            names: names.len() < old.len(),
            conditions: new.iter().map(conditions).eq(old.iter().map(conditions)),
        }
    }
}

fn validate(new: &Json, old: Option<&Json>, errors: &mut Errors) {
    let ratcheting = Ratcheting::new(new, old);
    let mut seen = Vec::new();
    for (n, hook) in objects(new, "webhooks").enumerate() {
        let at = format!("webhooks[{n}]");
        validate_hook(hook, &at, &ratcheting, errors);
        validate_versions(hook, &format!("{at}.admissionReviewVersions"), ratcheting.versions, errors);
        let name = text(hook, "name");
        if !ratcheting.names && !name.is_empty() {
            if seen.contains(&name) {
                errors.duplicate(format!("{at}.name"), name);
            }
            seen.push(name);
        }
    }
}

/// Validates that a string is one of the known values.
pub(super) fn one_of(parent: &Json, key: &str, at: &str, known: &[&str], errors: &mut Errors) {
    let value = text(parent, key);
    if !value.is_empty() && !known.contains(&value) {
        errors.not_supported(format!("{at}.{key}"), value, known);
    }
}

fn validate_hook(hook: &Json, at: &str, ratcheting: &Ratcheting, errors: &mut Errors) {
    qualified_name(text(hook, "name"), &format!("{at}.name"), errors);
    for (n, rule) in objects(hook, "rules").enumerate() {
        validate_rule(rule, &format!("{at}.rules[{n}]"), errors);
    }
    one_of(hook, "failurePolicy", at, &["Fail", "Ignore"], errors);
    one_of(hook, "matchPolicy", at, &["Equivalent", "Exact"], errors);
    let classes: &[&str] =
        if ratcheting.side_effects { &["None", "NoneOnDryRun", "Some", "Unknown"] } else { &NO_SIDE_EFFECTS };
    if text(hook, "sideEffects").is_empty() {
        errors.required(format!("{at}.sideEffects"), &format!("must specify one of {}", classes.join(", ")));
    }
    one_of(hook, "sideEffects", at, classes, errors);
    let limit = hook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(limit) = limit.filter(|limit| !(1..=30).contains(limit)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(format!("{at}.timeoutSeconds"), limit, why);
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        if let Some(written) = object(hook, selector) {
            validate_selector(written, &format!("{at}.{selector}"), errors);
        }
    }
    one_of(hook, "reinvocationPolicy", at, &["IfNeeded", "Never"], errors);
    validate_client(hook, &format!("{at}.clientConfig"), errors);
    if !ratcheting.conditions {
        validate_conditions(hook, false, &format!("{at}.matchConditions"), errors);
    }
}

fn qualified_name(name: &str, at: &str, errors: &mut Errors) {
    let why = names::subdomain(name);
    if name.is_empty() {
        errors.required(at, "");
    } else if !why.is_empty() {
        errors.invalid(at, name, &why.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid(at, name, "should be a domain with at least three segments separated by dots");
    }
}

fn validate_versions(hook: &Json, at: &str, ratcheting: bool, errors: &mut Errors) {
    let versions = list(hook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.required(at, &format!("must specify one of {}", VERSIONS.join(", ")));
        return;
    }
    for (n, version) in versions.iter().enumerate() {
        let here = format!("{at}[{n}]");
        if versions[..n].contains(version) {
            errors.invalid(here, version.clone(), "duplicate version");
            continue;
        }
        for why in names::label1035(version.as_str().unwrap_or_default()) {
            errors.invalid(here.as_str(), version.clone(), &why);
        }
    }
    if !ratcheting && !versions.iter().any(is_known_version) {
        let why = format!("must include at least one of {}", VERSIONS.join(", "));
        errors.invalid(at, Value::Array(versions.to_vec()), &why);
    }
}

/// Validates a rule of a webhook or a policy: operations, groups, versions, resources, scope.
pub(super) fn validate_rule(rule: &Json, at: &str, errors: &mut Errors) {
    not_beside_wildcard(rule, "operations", "operations", at, errors);
    for (n, operation) in list(rule, "operations").iter().enumerate() {
        let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        if !known.iter().any(|known| operation == known) {
            errors.not_supported(format!("{at}.operations[{n}]"), operation.clone(), &known);
        }
    }
    not_beside_wildcard(rule, "apiGroups", "API groups", at, errors);
    not_beside_wildcard(rule, "apiVersions", "API versions", at, errors);
    for (n, _) in list(rule, "apiVersions").iter().enumerate().filter(|(_, version)| *version == "") {
        errors.required(format!("{at}.apiVersions[{n}]"), "");
    }
    validate_resources(list(rule, "resources"), &format!("{at}.resources"), errors);
    one_of(rule, "scope", at, &["*", "Cluster", "Namespaced"], errors);
}

fn not_beside_wildcard(rule: &Json, key: &str, what: &str, at: &str, errors: &mut Errors) {
    let items = list(rule, key);
    let field = format!("{at}.{key}");
    if items.is_empty() {
        errors.required(field, "");
    } else if items.len() > 1 && items.iter().any(|item| item == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.invalid(field, Value::Array(items.to_vec()), &why);
    }
}

fn validate_resources(resources: &[Value], at: &str, errors: &mut Errors) {
    if resources.is_empty() {
        errors.required(at, "");
    }
    let (mut all_below, mut below_all) = (Vec::new(), Vec::new());
    let mut without_subresource = false;
    for (n, written) in resources.iter().enumerate() {
        let written = written.as_str().unwrap_or_default();
        let here = format!("{at}[{n}]");
        if written.is_empty() {
            errors.required(here, "");
            continue;
        }
        let Some((resource, subresource)) = written.split_once('/') else {
            without_subresource = written != "*";
            continue;
        };
        if all_below.contains(&resource) {
            let why = format!("if '{resource}/*' is present, must not specify {written}");
            errors.invalid(here.as_str(), written, &why);
        }
        if below_all.contains(&subresource) {
            let why = format!("if '*/{subresource}' is present, must not specify {written}");
            errors.invalid(here.as_str(), written, &why);
        }
        if subresource == "*" {
            all_below.push(resource);
        }
        if resource == "*" {
            below_all.push(subresource);
        }
    }
    let has = |wanted: &str| resources.iter().any(|resource| resource == wanted);
    let whole = || Value::Array(resources.to_vec());
    if resources.len() > 1 && has("*/*") {
        errors.invalid(at, whole(), "if '*/*' is present, must not specify other resources");
    }
    if has("*") && without_subresource {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(at, whole(), why);
    }
}

fn validate_client(hook: &Json, at: &str, errors: &mut Errors) {
    let empty = Json::new();
    let config = object(hook, "clientConfig").unwrap_or(&empty);
    match (config.get("url").and_then(Value::as_str), object(config, "service")) {
        (Some(url), None) => validate_url(url, &format!("{at}.url"), errors),
        (None, Some(service)) => validate_service(service, &format!("{at}.service"), errors),
        _ => errors.required(at, "exactly one of url or service is required"),
    }
}

fn validate_url(url: &str, at: &str, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let place = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = place.rsplit_once('@').map_or((None, place), |(user, host)| (Some(user), host));
    if scheme != "https" {
        errors.invalid(at, scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        errors.invalid(at, "", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        errors.invalid(at, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        errors.invalid(at, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        errors.invalid(at, query, "query parameters are not permitted in the URL");
    }
}

fn validate_service(service: &Json, at: &str, errors: &mut Errors) {
    // kube-apiserver validates the namespace under the field `name` and vice versa.
    for (field, checked) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, checked).is_empty() {
            errors.required(format!("{at}.{field}"), "");
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(format!("{at}.port"), port, why);
    }
    let path = text(service, "path");
    let at = format!("{at}.path");
    match path {
        "" | "/" => return,
        "//" => return errors.invalid(at, path, "segment[0] may not be empty"),
        _ => {}
    }
    if !path.starts_with('/') {
        errors.invalid(at.as_str(), path, "must start with a '/'");
    }
    let mut steps = path.chars();
    steps.next();
    let steps = steps.as_str();
    for (n, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(at.as_str(), path, &format!("segment[{n}] may not be empty"));
            continue;
        }
        for why in names::subdomain(step) {
            errors.invalid(at.as_str(), path, &format!("segment[{n}]: {why}"));
        }
    }
}
