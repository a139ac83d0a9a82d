//! What a policy's expressions get wrong about the types that they match.
//!
//! Expressions see objects without types, so a field that does not exist is found out when an object is judged, and not
//! when the policy is written. This check goes over the types that a policy names and says what will not work.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    admission::conditions::{compile, names},
    cel::Decl,
    registry::{
        Registry,
        descriptor::{Descriptor, Json},
        json::{list, object, objects, text},
        objectmeta,
    },
    schema::{Gvk, Schemas},
};

/// More types than this are not looked at.
const MOST_TYPES: usize = 10;

/// The status of a `ValidatingAdmissionPolicy` as a cluster's controller writes it: which generation was looked at, and
/// what its expressions get wrong about the built-in types that it matches.
///
/// ```
/// use kubewright_apiserver::{ApiServer, admission::policy::checked_status};
/// use serde_json::json;
///
/// let server = ApiServer::builder().in_process()?;
/// let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]});
/// let policy = json!({
///     "metadata": {"name": "p", "generation": 3},
///     "spec": {
///         "matchConstraints": {"resourceRules": [rule]},
///         "validations": [{"expression": "object.spec.replicas < 5"}, {"expression": "object.spec.replicsa < 5"}],
///     },
/// });
/// let status = checked_status(server.registry(), policy.as_object().unwrap());
/// assert_eq!(status["observedGeneration"], 3);
/// let warnings = status["typeChecking"]["expressionWarnings"].as_array().unwrap();
/// assert_eq!(warnings.len(), 1);
/// assert_eq!(warnings[0]["fieldRef"], "spec.validations[1].expression");
/// assert!(warnings[0]["warning"].as_str().unwrap().starts_with("apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'"));
/// # Ok::<(), kubewright_apiserver::StartError>(())
/// ```
pub fn checked_status(registry: &Registry, policy: &Json) -> Value {
    let warnings = type_warnings(registry, policy);
    let checking = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    json!({"observedGeneration": objectmeta::generation(policy), "typeChecking": checking})
}

fn gvk(ty: &Descriptor) -> Gvk {
    Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref())
}

/// The type of the objects of a built-in kind.
fn decl(ty: &Descriptor) -> Option<Arc<Decl>> {
    Schemas::builtin().lookup(&gvk(ty)).map(|shape| Decl::from_type(&shape))
}

fn type_warnings(registry: &Registry, policy: &Json) -> Vec<Value> {
    let empty = Json::new();
    let spec = object(policy, "spec").unwrap_or(&empty);
    let types: Vec<_> = types(registry, spec).into_iter().filter_map(|ty| Some((decl(&ty)?, ty))).collect();
    let params = super::param_type(spec, registry).ok().flatten().and_then(|ty| decl(&ty));
    let has_params = spec.contains_key("paramKind");
    let check = |expression: &str| -> String {
        let mut found = Vec::new();
        for (object, ty) in &types {
            let mut environment = names(Some(object), has_params, params.as_ref(), true);
            for variable in objects(spec, "variables") {
                environment = environment.with_variables();
                let program = compile(text(variable, "expression"), &environment, &[]);
                environment.add_variable(text(variable, "name"), &program);
            }
            if let Err(why) = compile(expression, &environment, &[]) {
                let why = why.strip_prefix("compilation failed: ").unwrap_or(&why);
                found.push(format!("{}: {why}\n", gvk(ty)));
            }
        }
        found.join("\n")
    };
    let mut out = Vec::new();
    for (n, validation) in objects(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = text(validation, field);
            let warning = if expression.is_empty() { String::new() } else { check(expression) };
            if !warning.is_empty() {
                out.push(json!({"fieldRef": format!("spec.validations[{n}].{field}"), "warning": warning}));
            }
        }
    }
    out
}

/// The types that the rules of a policy name; a rule with a wildcard names none.
fn types(registry: &Registry, spec: &Json) -> Vec<Arc<Descriptor>> {
    let served = registry.types();
    let empty = Json::new();
    let constraints = object(spec, "matchConstraints").unwrap_or(&empty);
    let mut out: Vec<Arc<Descriptor>> = Vec::new();
    for rule in objects(constraints, "resourceRules") {
        let texts = |key: &str| -> Vec<&str> { list(rule, key).iter().filter_map(Value::as_str).collect() };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        let resources = texts("resources");
        let named = |ty: &&Arc<Descriptor>| {
            groups.contains(&ty.group.as_ref())
                && versions.contains(&ty.version.as_ref())
                && resources.contains(&ty.plural.as_ref())
        };
        out.extend(served.all().iter().filter(named).cloned());
    }
    out.sort_by(|a, b| (&a.group, &a.version, &a.kind).cmp(&(&b.group, &b.version, &b.kind)));
    out.dedup_by(|a, b| Arc::ptr_eq(a, b));
    out.truncate(MOST_TYPES);
    out
}
