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
    },
};

/// More types than this are not looked at.
const MOST_TYPES: usize = 10;

/// The `status.typeChecking.expressionWarnings` of a `ValidatingAdmissionPolicy`; `decl` knows the types of objects.
pub fn type_warnings(
    registry: &Registry,
    policy: &Json,
    decl: &dyn Fn(&Descriptor) -> Option<Arc<Decl>>,
) -> Vec<Value> {
    let empty = Json::new();
    let spec = object(policy, "spec").unwrap_or(&empty);
    let types = types(registry, spec);
    let params = super::param_type(spec, registry).ok().flatten().and_then(|ty| decl(&ty));
    let has_params = spec.contains_key("paramKind");
    let check = |expression: &str| -> String {
        let mut found = Vec::new();
        for ty in &types {
            let Some(object) = decl(ty) else { continue };
            let mut environment = names(Some(&object), has_params, params.as_ref(), true);
            for variable in objects(spec, "variables") {
                environment = environment.composed();
                let program = compile(text(variable, "expression"), &environment, &[]);
                environment.add_variable(text(variable, "name"), &program);
            }
            if let Err(why) = compile(expression, &environment, &[]) {
                let why = why.strip_prefix("compilation failed: ").unwrap_or(&why);
                found.push(format!("{}, Kind={}: {why}\n", ty.api_version(), ty.kind));
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
