//! `ResourceQuota`: what a namespace may hold.
//!
//! A quota counts from the moment its status has numbers (the quota controller, or a test, writes the first ones).
//! Every creation is charged here, in the quota's own status, before it is stored.

use serde_json::Value;

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    registry::{
        json::{Json, at, list, name, object, object_mut, objects, text},
        quantity,
    },
    status::Status,
    storage::Expect,
};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResourceQuota;

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let call = attributes.call;
        if attributes.operation != Operation::Create
            || !attributes.ty().namespaced()
            || !call.subresource.is_empty()
            || attributes.is("", "resourcequotas")
        {
            return Ok(());
        }
        let keys: Vec<_> = context
            .objects
            .snapshot()
            .collection("resourcequotas")
            .range(Some(call.namespace), None)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            loop {
                let Some(stored) = context.objects.get("resourcequotas", &key) else { break };
                let quota = stored.decode();
                let charged = charge(attributes, &quota).map_err(|why| attributes.forbid(&why))?;
                let (Some(charged), false) = (charged, call.options.dry_run) else { break };
                let Some(ty) = context.objects.types().get("", "v1", "resourcequotas").cloned() else {
                    break;
                };
                // A lost race is counted again.
                let expect = Expect::Revision(stored.revision);
                if context.quotas().put("resourcequotas", &key, expect, ty.draft(&charged)).is_ok() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The quota after the creation; `None` when it does not count it; the refusal when it does not fit.
fn charge(attributes: &Attributes<'_>, quota: &Json) -> Result<Option<Json>, String> {
    let Some(hard) = at(quota, &["status", "hard"]).and_then(Value::as_object) else { return Ok(None) };
    if !in_scope(attributes, quota) {
        return Ok(None);
    }
    let usage = usage(attributes, hard);
    if attributes.is("", "pods") {
        require_all(attributes, quota, hard)?;
    }
    let (mut requested, mut used_text, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    let mut charged = quota.clone();
    for (resource, amount, binary) in &usage {
        let used_value = at(quota, &["status", "used", resource]);
        let used = used_value.and_then(quantity::parse).unwrap_or(0);
        let most = hard.get(resource).and_then(quantity::parse).unwrap_or(0);
        let total = used + amount;
        if total > most && *amount > 0 {
            let text = |value: i128| quantity::format(value, *binary);
            requested.push(format!("{resource}={}", text(*amount)));
            used_text.push(format!("{resource}={}", text(used)));
            limited.push(format!("{resource}={}", text(most)));
        }
        let text = quantity::format(total, *binary);
        object_mut(object_mut(&mut charged, "status"), "used").insert(resource.clone(), text.into());
    }
    if !requested.is_empty() {
        return Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            name(quota),
            requested.join(","),
            used_text.join(","),
            limited.join(",")
        ));
    }
    Ok(if usage.is_empty() { None } else { Some(charged) })
}

/// Scopes restrict a quota to some pods.
fn in_scope(attributes: &Attributes<'_>, quota: &Json) -> bool {
    let scopes = object(quota, "spec").map(|s| list(s, "scopes")).unwrap_or_default();
    if scopes.is_empty() {
        return true;
    }
    if !attributes.is("", "pods") {
        return false;
    }
    let pod = &attributes.object;
    let best_effort = at(pod, &["status", "qosClass"]).is_some_and(|q| q == "BestEffort");
    let terminating = at(pod, &["spec", "activeDeadlineSeconds"]).is_some();
    scopes.iter().filter_map(Value::as_str).all(|scope| match scope {
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        _ => false,
    })
}

/// Returns the usage of each limited resource by the new object, with its notation.
fn usage(attributes: &Attributes<'_>, hard: &Json) -> Vec<(String, i128, bool)> {
    let ty = attributes.ty();
    let counted = if ty.group.is_empty() {
        format!("count/{}", ty.plural)
    } else {
        format!("count/{}.{}", ty.plural, ty.group)
    };
    let mut usage = Vec::new();
    for (resource, most) in hard {
        let binary = quantity::is_binary(most) || resource.contains("memory") || resource.contains("storage");
        let amount = if *resource == counted || (ty.group.is_empty() && *resource == *ty.plural) {
            Some(1000)
        } else if attributes.is("", "pods") {
            of_pod(&attributes.object, resource)
        } else if attributes.is("", "persistentvolumeclaims") && resource == "requests.storage" {
            at(&attributes.object, &["spec", "resources", "requests", "storage"]).and_then(quantity::parse)
        } else if attributes.is("", "services") {
            of_service(&attributes.object, resource)
        } else {
            None
        };
        if let Some(amount) = amount {
            usage.push((resource.clone(), amount, binary));
        }
    }
    usage
}

fn of_service(service: &Json, resource: &str) -> Option<i128> {
    let kind = at(service, &["spec", "type"]).and_then(Value::as_str).unwrap_or_default();
    match resource {
        "services.loadbalancers" => (kind == "LoadBalancer").then_some(1000),
        "services.nodeports" => matches!(kind, "NodePort" | "LoadBalancer").then(|| {
            let ports = object(service, "spec").map_or(0, |s| list(s, "ports").len());
            i128::try_from(ports).unwrap_or(0) * 1000
        }),
        _ => None,
    }
}

/// `cpu`, `requests.cpu` and `limits.cpu` name parts of a container's resources.
fn part(resource: &str) -> Option<(&str, &str)> {
    match resource.split_once('.') {
        Some((which @ ("requests" | "limits"), name)) => Some((which, name)),
        _ if matches!(resource, "cpu" | "memory" | "ephemeral-storage") => Some(("requests", resource)),
        _ => None,
    }
}

fn of_pod(pod: &Json, resource: &str) -> Option<i128> {
    let (which, name) = part(resource)?;
    let spec = object(pod, "spec")?;
    let of = |c: &Json| at(c, &["resources", which, name]).and_then(quantity::parse).unwrap_or(0);
    let running: i128 = objects(spec, "containers").map(of).sum();
    let starting = objects(spec, "initContainers").map(of).max().unwrap_or(0);
    Some(running.max(starting))
}

/// A compute quota wants every container to say what it takes.
fn require_all(attributes: &Attributes<'_>, quota: &Json, hard: &Json) -> Result<(), String> {
    let Some(spec) = object(&attributes.object, "spec") else { return Ok(()) };
    let mut missing = Vec::new();
    for resource in hard.keys() {
        let Some((which, resource_name)) = part(resource) else { continue };
        let silent: Vec<&str> = objects(spec, "containers")
            .chain(objects(spec, "initContainers"))
            .filter(|c| at(c, &["resources", which, resource_name]).is_none())
            .map(|c| text(c, "name"))
            .collect();
        if !silent.is_empty() {
            missing.push(format!("{resource} for: {}", silent.join(",")));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("failed quota: {}: must specify {}", name(quota), missing.join("; ")))
}
