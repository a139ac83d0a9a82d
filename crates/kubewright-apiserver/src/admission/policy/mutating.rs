//! `MutatingAdmissionPolicy`: changes objects by expressions that give patches.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Binding, atomics, by_policy,
    compile::{self, Policy, Rule, mutation},
    constraints_match, ignores_failures, param_type, params,
};
use crate::{
    admission::Context,
    admission::{
        Attributes, Operation, Plugin,
        cache::Compiled,
        conditions::{BUDGET, Inputs, failed},
        matching::is_exempt,
        request::{Asking, namespace_object},
    },
    patch::json as json_patch,
    registry::{
        descriptor::{Descriptor, Json},
        json::{meta, meta_mut, text},
        schematic,
        semantics::{FieldValidation, Format, Manager, Patch, PatchKind},
    },
    status::Status,
};

/// The plugin.
#[derive(Debug)]
pub(crate) struct MutatingAdmissionPolicy {
    policies: Compiled<Policy>,
    bindings: Compiled<Binding>,
}

impl Default for MutatingAdmissionPolicy {
    fn default() -> Self {
        Self {
            policies: Compiled::new(
                "admissionregistration.k8s.io/mutatingadmissionpolicies",
                compile::mutating,
            ),
            bindings: Compiled::new(
                "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
                Binding::of,
            ),
        }
    }
}

/// A policy in force with one set of parameters.
struct Invocation<'p> {
    policy: &'p Policy,
    binding: &'p Binding,
    ty: Arc<Descriptor>,
    params: Value,
}

impl Invocation<'_> {
    fn key(&self) -> String {
        let params = self.params.as_object().map(|params| {
            let metadata = meta(params);
            format!("{}/{}", text(metadata, "namespace"), text(metadata, "name"))
        });
        format!("{}:{}:{}", self.policy.name, self.binding.name, params.unwrap_or_default())
    }
}

/// Errors, by policy.
struct Trouble {
    message: String,
    /// Whether it came up while a policy ran, and not while it was looked up.
    ran: bool,
}

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        // There is nothing to change about a deletion.
        if attributes.operation == Operation::Delete || is_exempt(attributes) {
            return Ok(());
        }
        let bindings = self.bindings.all(context);
        if bindings.is_empty() {
            return Ok(());
        }
        attributes.show_managers();
        let bindings = by_policy(&bindings);
        let policies = self.policies.all(context);
        let mut trouble = Vec::new();
        let mut invocations = Vec::new();
        for policy in &policies {
            if let Some(bindings) = bindings.get(policy.name.as_str()) {
                let bindings = bindings.iter().map(|binding| &***binding);
                select(policy, bindings, context, attributes, &mut invocations, &mut trouble);
            }
        }
        run(self.name(), &invocations, context, attributes, &mut trouble);
        refusal(&trouble, attributes)
    }
}

fn refusal(trouble: &[Trouble], attributes: &Attributes<'_>) -> Result<(), Status> {
    let Some(first) = trouble.first() else { return Ok(()) };
    let causes = trouble.iter().map(|trouble| json!({"message": trouble.message})).collect();
    let mut status = attributes.forbid("").causes(causes);
    status.message.clone_from(&first.message);
    if first.ran {
        status.reason = "Invalid".into();
    }
    Err(status)
}

/// The bindings of a policy that are about a write, with their parameters.
fn select<'p>(
    policy: &'p Policy,
    bindings: impl Iterator<Item = &'p Binding>,
    context: &Context<'_>,
    attributes: &Attributes<'_>,
    invocations: &mut Vec<Invocation<'p>>,
    trouble: &mut Vec<Trouble>,
) {
    let ignore = ignores_failures(&policy.spec);
    let mut misconfigured = |binding: Option<&Binding>, why: &str| {
        let message = match binding {
            Some(binding) => format!(
                "policy '{}' with binding '{}' denied request: failed to configure binding: {why}",
                policy.name, binding.name
            ),
            None => format!("policy {:?} denied request: failed to configure policy: {why}", policy.name),
        };
        if !ignore {
            trouble.push(Trouble { message, ran: false });
        }
    };
    let ty = match constraints_match(&policy.spec, context, attributes) {
        Ok(Some(ty)) => ty,
        Ok(None) => return,
        Err(why) => return misconfigured(None, &why.message),
    };
    let param_type = match param_type(&policy.spec, &context.objects.types()) {
        Ok(found) => found,
        Err(why) => return misconfigured(None, &why),
    };
    for binding in bindings {
        match binding.matches(context, attributes) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                misconfigured(Some(binding), &why.message);
                continue;
            }
        }
        match params::collect(binding, param_type.as_ref(), context, attributes.namespace()) {
            Err(why) => misconfigured(Some(binding), &why),
            Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                policy,
                binding,
                ty: Arc::clone(&ty),
                params,
            })),
        }
    }
}

/// Runs the mutations one after another.
fn run(
    plugin: &'static str,
    invocations: &[Invocation<'_>],
    context: &Context<'_>,
    attributes: &mut Attributes<'_>,
    trouble: &mut Vec<Trouble>,
) {
    let again = attributes.rounds.again;
    if again && attributes.rounds.of(plugin).left.as_ref().is_some_and(|left| *left != attributes.object) {
        attributes.rounds.of(plugin).object_changed();
    }
    for invocation in invocations {
        let ignore = ignores_failures(&invocation.policy.spec);
        let mut fails = |why: String| {
            if !ignore {
                let message = format!(
                    "policy '{}' with binding '{}' denied request: {why}",
                    invocation.policy.name, invocation.binding.name
                );
                trouble.push(Trouble { message, ran: true });
            }
        };
        let inputs = Inputs { params: invocation.params.clone(), ..Inputs::of(attributes, &invocation.ty) };
        match invocation.policy.conditions.hold(&inputs, context, attributes, ignore) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                fails(why);
                continue;
            }
        }
        let key = invocation.key();
        if again && !attributes.rounds.of(plugin).is_asked_again(&key) {
            continue;
        }
        let mut changed = false;
        for rule in &invocation.policy.rules {
            match mutate(invocation, rule, context, attributes) {
                Err(why) => fails(why),
                Ok(None) => {}
                Ok(Some(object)) => {
                    let managers = meta(&attributes.object).get("managedFields").cloned().unwrap_or_default();
                    attributes.rounds.managers.get_or_insert(managers);
                    attributes.take_back(&invocation.ty, object);
                    changed = true;
                }
            }
        }
        if changed {
            attributes.rounds.of(plugin).object_changed();
            attributes.rounds.wanted = true;
        }
        if text(&invocation.policy.spec, "reinvocationPolicy") == "IfNeeded" {
            attributes.rounds.of(plugin).invoked(key);
        }
    }
    if !invocations.is_empty() {
        attributes.rounds.of(plugin).left = Some(attributes.object.clone());
    }
}

/// Returns the object after a mutation; `None` if it does not change.
fn mutate(
    invocation: &Invocation<'_>,
    rule: &Rule,
    context: &Context<'_>,
    attributes: &Attributes<'_>,
) -> Result<Option<Json>, String> {
    let program = rule.program.as_ref().map_err(Clone::clone)?;
    let inputs = Inputs {
        params: invocation.params.clone(),
        namespace: namespace_object(context, attributes),
        ..Inputs::of(attributes, &invocation.ty)
    };
    let Value::Object(before) = &inputs.object else { return Ok(None) };
    let asking = Asking { context, attributes };
    let values = inputs.activate_asking(&invocation.policy.variables, &asking);
    let mut budget = BUDGET;
    let given = program.evaluate(&values, &mut budget).map_err(|why| failed(&rule.text, &why))?;
    let patched = match mutation(&rule.written).0 {
        "jsonPatch" => patched(before, &given)?,
        _ => applied(&invocation.ty, before, given)?,
    };
    let Some(mut patched) = patched else { return Ok(None) };
    if attributes.call.subresource != "scale" {
        patched = with_defaults(&invocation.ty, &patched).map_err(|status| status.message)?;
    }
    Ok((patched != *before).then_some(patched))
}

/// Returns the object with defaults, as if a client had sent it.
pub(in crate::admission) fn with_defaults(ty: &Descriptor, object: &Json) -> Result<Json, Status> {
    let body = serde_json::to_vec(object).unwrap_or_default();
    let decoded = schematic::decode(ty, &body, Format::Json, FieldValidation::Ignore)?;
    let mut object = decoded.object;
    object.insert("kind".into(), ty.kind.as_ref().into());
    object.insert("apiVersion".into(), ty.api_version().into());
    crate::registry::verbs::canonicalise_and_default(ty, &mut object);
    Ok(object)
}

fn patched(before: &Json, patch: &Value) -> Result<Option<Json>, String> {
    match json_patch::apply(Value::Object(before.clone()), patch) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err("JSON Patch: the object is none any more".to_owned()),
        // A test that does not hold means that the patch is not for this object.
        Err(why) if why.to_string().contains("test failed") => Ok(None),
        Err(why) => Err(format!("JSON Patch: {why}")),
    }
}

/// Merges an apply configuration, without field ownership.
fn applied(ty: &Descriptor, before: &Json, given: Value) -> Result<Option<Json>, String> {
    let atomics = atomics::find(ty, &given);
    if !atomics.is_empty() {
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let Value::Object(mut configuration) = given else { return Err("invalid return type".to_owned()) };
    configuration.insert("kind".into(), ty.kind.as_ref().into());
    configuration.insert("apiVersion".into(), ty.api_version().into());
    let patch = Patch {
        kind: PatchKind::Apply,
        body: &serde_json::to_vec(&configuration).unwrap_or_default(),
        validation: FieldValidation::Ignore,
        manager: Manager { name: "mutating-admission-policy".into(), subresource: "", now: "" },
        force: true,
    };
    let decoded = schematic::patch(ty, Some(before), &patch)
        .map_err(|status| format!("error applying patch: {}", status.message))?;
    let mut object = decoded.object;
    match meta(before).get("managedFields") {
        Some(managers) => meta_mut(&mut object).insert("managedFields".into(), managers.clone()),
        None => meta_mut(&mut object).remove("managedFields"),
    };
    Ok(Some(object))
}
