//! `ValidatingAdmissionPolicy`: refuses, warns or notes.

use serde_json::{Value, json};

use super::{
    Binding, by_policy,
    compile::{self, Policy, Rule},
    constraints_match, ignores_failures, param_type, params,
};
use crate::{
    admission::{
        Attributes, Plugin,
        cache::Compiled,
        conditions::{BUDGET, Inputs, failed},
        matching::is_exempt,
        request::{Asking, namespace_object},
    },
    cel::EvalError,
    registry::{
        Registry,
        descriptor::Descriptor,
        json::{list, text},
    },
    status::Status,
};

/// The longest message that an expression may give.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The plugin.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicy {
    policies: Compiled<Policy>,
    bindings: Compiled<Binding>,
}

impl Default for ValidatingAdmissionPolicy {
    fn default() -> Self {
        Self {
            policies: Compiled::new(
                "admissionregistration.k8s.io/validatingadmissionpolicies",
                compile::validating,
            ),
            bindings: Compiled::new(
                "admissionregistration.k8s.io/validatingadmissionpolicybindings",
                Binding::of,
            ),
        }
    }
}

/// What speaks against a write.
struct Denial {
    binding: Option<String>,
    policy: String,
    message: String,
    reason: String,
}

/// What one evaluation found about one validation: nothing, or a message and a reason.
type Finding = Option<(String, String)>;

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if is_exempt(attributes) {
            return Ok(());
        }
        let bindings = self.bindings.all(registry);
        if bindings.is_empty() {
            return Ok(());
        }
        let bindings = by_policy(&bindings);
        let mut denials = Vec::new();
        for policy in self.policies.all(registry) {
            if let Some(bindings) = bindings.get(policy.name.as_str()) {
                let bindings = bindings.iter().map(|binding| &***binding);
                judge(&policy, bindings, registry, attributes, &mut denials);
            }
        }
        denials.first().map_or(Ok(()), |denial| Err(refusal(denial, attributes)))
    }
}

fn refusal(denial: &Denial, attributes: &Attributes<'_>) -> Status {
    let message = match &denial.binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{}' with binding '{binding}' denied request: {}",
            denial.policy, denial.message
        ),
        None => format!("ValidatingAdmissionPolicy '{}' denied request: {}", denial.policy, denial.message),
    };
    let mut status = attributes.forbid(&message).causes(vec![json!({"message": message})]);
    let reason = if denial.reason.is_empty() { "Invalid" } else { &denial.reason };
    status.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = reason.to_owned().into();
    status
}

/// Evaluates a policy under each of its bindings.
fn judge<'b>(
    policy: &Policy,
    bindings: impl Iterator<Item = &'b Binding>,
    registry: &Registry,
    attributes: &Attributes<'_>,
    denials: &mut Vec<Denial>,
) {
    let ignore = ignores_failures(&policy.spec);
    let misconfigured = |binding: Option<&Binding>, why: &str| {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let denial = Denial {
            binding: binding.map(|binding| binding.name.clone()),
            policy: policy.name.clone(),
            message: format!("failed to configure {what}: {why}"),
            reason: String::new(),
        };
        (!ignore).then_some(denial)
    };
    let ty = match constraints_match(&policy.spec, registry, attributes) {
        Ok(Some(ty)) => ty,
        Ok(None) => return,
        Err(why) => return denials.extend(misconfigured(None, &why.message)),
    };
    let param_type = match param_type(&policy.spec, registry) {
        Ok(found) => found,
        Err(why) => return denials.extend(misconfigured(None, &why)),
    };
    for binding in bindings {
        match binding.matches(registry, attributes) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                denials.extend(misconfigured(Some(binding), &why.message));
                continue;
            }
        }
        match params::collect(binding, param_type.as_ref(), registry, attributes.namespace()) {
            Err(why) => denials.extend(misconfigured(Some(binding), &why)),
            Ok(params) => {
                for params in params {
                    let findings = evaluate(policy, &ty, params, registry, attributes);
                    for (message, reason) in findings.into_iter().flatten() {
                        act(policy, binding, &message, &reason, attributes, denials);
                    }
                }
            }
        }
    }
}

/// Does what the binding says about a finding.
fn act(
    policy: &Policy,
    binding: &Binding,
    message: &str,
    reason: &str,
    attributes: &Attributes<'_>,
    denials: &mut Vec<Denial>,
) {
    for action in list(&binding.spec, "validationActions").iter().filter_map(Value::as_str) {
        match action {
            "Deny" => denials.push(Denial {
                binding: Some(binding.name.clone()),
                policy: policy.name.clone(),
                message: message.to_owned(),
                reason: reason.to_owned(),
            }),
            "Warn" => attributes.call.warn(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                policy.name, binding.name
            )),
            _ => tracing::info!(
                target: "audit", policy = policy.name, binding = binding.name, message, "validation failed"
            ),
        }
    }
}

/// Evaluates all expressions of a policy; what is found about each validation.
fn evaluate(
    policy: &Policy,
    ty: &Descriptor,
    params: Value,
    registry: &Registry,
    attributes: &Attributes<'_>,
) -> Vec<Finding> {
    let ignore = ignores_failures(&policy.spec);
    let failure = |why: String| if ignore { None } else { Some((why, String::new())) };
    let mut inputs = Inputs { params, ..Inputs::of(attributes, ty) };
    if !policy.conditions.is_empty() {
        match policy.conditions.hold(&inputs, registry, attributes, ignore) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return vec![failure(why)],
        }
    }
    inputs.namespace = namespace_object(registry, attributes);
    let asking = Asking { registry, attributes };
    let values = inputs.activate_asking(&policy.variables, &asking);
    let mut budget = BUDGET;
    let mut judged = Vec::new();
    for rule in &policy.rules {
        let outcome = match &rule.program {
            Err(why) => Err(format!("compilation error: {why}")),
            Ok(program) => match program.evaluate(&values, &mut budget) {
                Ok(value) => Ok(value == Value::Bool(true)),
                // None of the others is run, and none counts.
                Err(EvalError::OutOfBudget) => return vec![failure(EvalError::OutOfBudget.to_string())],
                Err(why) => Err(failed(&rule.text, &why)),
            },
        };
        judged.push((rule, outcome));
    }
    let mut out = Vec::new();
    let (messages, too_expensive) = messages(policy, &inputs, &mut budget);
    for ((rule, outcome), message) in judged.into_iter().zip(messages) {
        out.push(match outcome {
            Err(why) => failure(why),
            Ok(_) if too_expensive => {
                failure(format!("failed messageExpression: {}", EvalError::OutOfBudget))
            }
            Ok(true) => None,
            Ok(false) => Some((shown(rule, message), text(&rule.written, "reason").to_owned())),
        });
    }
    out.extend(annotate(policy, &inputs, &asking).into_iter().map(failure));
    out
}

/// What the expressions of messages give, and whether they cost too much.
fn messages(policy: &Policy, inputs: &Inputs, budget: &mut u64) -> (Vec<Option<String>>, bool) {
    let values = inputs.activate(&policy.variables);
    let mut out = Vec::new();
    let mut too_expensive = false;
    for rule in &policy.rules {
        let message = match &rule.message {
            Some(Ok(program)) if !too_expensive => match program.evaluate(&values, budget) {
                Ok(Value::String(text)) => Some(text),
                Err(EvalError::OutOfBudget) => {
                    too_expensive = true;
                    None
                }
                _ => None,
            },
            _ => None,
        };
        out.push(message);
    }
    (out, too_expensive)
}

/// The message of a validation that failed: the expression's, the written one, or the expression itself.
fn shown(rule: &Rule, given: Option<String>) -> String {
    let given = given.map(|text| text.trim().to_owned());
    let usable = |text: &String| !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    given.filter(usable).unwrap_or_else(|| match text(&rule.written, "message").trim() {
        "" => format!("failed expression: {}", rule.text.trim()),
        message => message.to_owned(),
    })
}

/// Evaluates the audit annotations; what went wrong with them.
fn annotate(policy: &Policy, inputs: &Inputs, asking: &Asking<'_>) -> Vec<String> {
    let values = inputs.activate_asking(&policy.variables, asking);
    let mut budget = BUDGET;
    let mut out = Vec::new();
    for ((text, program), written) in
        policy.annotations.iter().zip(crate::registry::json::objects(&policy.spec, "auditAnnotations"))
    {
        let value = match program {
            Err(why) => Err(format!("compilation error: {why}")),
            Ok(program) => program.evaluate(&values, &mut budget).map_err(|why| failed(text, &why)),
        };
        match value {
            Ok(Value::String(value)) if !value.trim().is_empty() => {
                let key = format!("{}/{}", policy.name, self::text(written, "key"));
                tracing::info!(target: "audit", key, value = value.trim(), "annotation");
            }
            Ok(Value::Null | Value::String(_)) => {}
            Ok(_) => out.push(format!(
                "valueExpression '{text}' resulted in unsupported return type. Return type must be either string or null."
            )),
            Err(why) => out.push(why),
        }
    }
    out
}
