//! Expressions about a request: which names they have, and `matchConditions`.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{
    Attributes,
    request::{Asking, describe, request_resource},
};
use crate::{
    cel::{Activation, Decl, Environment, EvalError, Program},
    registry::{
        Registry,
        descriptor::Descriptor,
        json::{Json, objects, text},
    },
};

/// The most that all expressions of one kind in a policy may cost.
pub(super) const BUDGET: u64 = 10_000_000;
/// The most that all match conditions together may cost.
const CONDITIONS_BUDGET: u64 = BUDGET / 4;

fn declare(schema: &Value) -> Arc<Decl> {
    Decl::from_schema(schema, false).expect("the schema is written out here and has a type").unescaped()
}

static REQUEST: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let kind = object(json!({"group": text, "version": text, "kind": text}));
    let resource = object(json!({"group": text, "version": text, "resource": text}));
    let user = object(json!({
        "username": text, "uid": text, "groups": texts,
        "extra": {"type": "object", "additionalProperties": texts},
    }));
    declare(&object(json!({
        "kind": kind, "resource": resource, "subResource": text, "requestKind": kind, "requestResource": resource,
        "requestSubResource": text, "name": text, "namespace": text, "operation": text, "userInfo": user,
        "dryRun": {"type": "boolean"}, "options": {"x-kubernetes-int-or-string": true},
    })))
});

static NAMESPACE: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer"});
    let texts = json!({"type": "array", "items": text});
    let labels = json!({"type": "object", "additionalProperties": text});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let condition = object(json!({
        "status": text, "type": text, "lastTransitionTime": time, "message": text, "reason": text,
    }));
    declare(&object(json!({
        "metadata": object(json!({
            "name": text, "generateName": text, "namespace": text, "labels": labels, "annotations": labels,
            "UID": text, "creationTimestamp": time, "deletionGracePeriodSeconds": number,
            "deletionTimestamp": time, "generation": number, "resourceVersion": text, "finalizers": texts,
        })),
        "spec": object(json!({"finalizers": texts})),
        "status": object(json!({"conditions": {"type": "array", "items": condition}, "phase": text})),
    })))
});

/// The names of all expressions about a request; `object` and `params` typed where a type is given.
pub(crate) fn names(
    object: Option<&Arc<Decl>>,
    has_params: bool,
    params: Option<&Arc<Decl>>,
    authorizer: bool,
) -> Environment {
    let add = |names: Environment, name: &str, decl: Option<&Arc<Decl>>| match decl {
        Some(decl) => names.with_typed(name, decl),
        None => names.with_dynamic(name),
    };
    let mut names = add(add(Environment::default(), "object", object), "oldObject", object);
    names = names.with_typed("namespaceObject", &NAMESPACE).with_typed("request", &REQUEST);
    if has_params {
        names = add(names, "params", params);
    }
    if authorizer { names.with_authorizer() } else { names }
}

/// Compiles an expression that must give one of the types, in the words of a refusal.
pub(crate) fn compile(text: &str, names: &Environment, wanted: &[&str]) -> Result<Program, String> {
    let program = Program::compile(text, names).map_err(|error| format!("compilation failed: {error}"))?;
    let output = program.output();
    match wanted {
        [] => Ok(program),
        wanted if wanted.contains(&output.as_str()) => Ok(program),
        [one] => Err(format!("must evaluate to {one} but got {output}")),
        several => Err(format!("must evaluate to one of [{}] but got {output}", several.join(" "))),
    }
}

/// What an evaluation failed with, in the words of a refusal.
pub(super) fn failed(text: &str, failure: &EvalError) -> String {
    match failure {
        EvalError::OutOfBudget => failure.to_string(),
        _ => format!("expression '{text}' resulted in error: {failure}"),
    }
}

/// The values of one request.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) object: Value,
    pub(super) old: Value,
    pub(super) request: Value,
    pub(super) namespace: Value,
    pub(super) params: Value,
}

impl Inputs {
    /// The values of a write that matched as `ty`; without a namespace, as match conditions have it.
    pub(super) fn of(attributes: &Attributes<'_>, ty: &Descriptor) -> Self {
        Self {
            object: attributes.object_as(ty),
            old: attributes.old_as(ty),
            request: Value::Object(describe(attributes, ty)),
            namespace: Value::Null,
            params: Value::Null,
        }
    }

    /// The values as expressions find them.
    pub(super) fn activate<'v>(
        &'v self,
        variables: &'v [(String, Result<Program, String>)],
    ) -> Activation<'v> {
        Activation::new(variables)
            .with_value("object", &self.object)
            .with_value("oldObject", &self.old)
            .with_value("request", &self.request)
            .with_value("namespaceObject", &self.namespace)
            .with_value("params", &self.params)
    }

    /// The same with `authorizer`.
    pub(super) fn activate_asking<'v>(
        &'v self,
        variables: &'v [(String, Result<Program, String>)],
        asking: &'v Asking<'v>,
    ) -> Activation<'v> {
        self.activate(variables).with_authorizer(asking, request_resource(asking.attributes))
    }
}

/// The compiled `matchConditions` of a policy or a webhook.
#[derive(Debug)]
pub(super) struct Conditions {
    programs: Vec<(String, Result<Program, String>)>,
}

impl Conditions {
    pub(super) fn compile(parent: &Json, has_params: bool) -> Self {
        let names = names(None, has_params, None, true);
        let one = |condition: &Json| {
            let text = text(condition, "expression");
            (text.to_owned(), compile(text, &names, &["bool"]))
        };
        Self { programs: objects(parent, "matchConditions").map(one).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Whether all hold; one that does not decides even if others fail. `ignore` is the failure policy.
    pub(super) fn hold(
        &self,
        inputs: &Inputs,
        registry: &Registry,
        attributes: &Attributes<'_>,
        ignore: bool,
    ) -> Result<bool, String> {
        let asking = Asking { registry, attributes };
        let activation = inputs.activate_asking(&[], &asking);
        let mut budget = CONDITIONS_BUDGET;
        let mut errors = Vec::new();
        for (text, program) in &self.programs {
            match program {
                Err(why) => errors.push(format!("compilation error: {why}")),
                Ok(program) => match program.evaluate(&activation, &mut budget) {
                    Ok(Value::Bool(false)) => return Ok(false),
                    Ok(_) => {}
                    Err(EvalError::OutOfBudget) => {
                        return if ignore { Ok(false) } else { Err(EvalError::OutOfBudget.to_string()) };
                    }
                    Err(failure) => errors.push(failed(text, &failure)),
                },
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if ignore => Ok(false),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}
