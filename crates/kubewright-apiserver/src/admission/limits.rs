//! `LimitRanger`: defaults for containers, and bounds for containers, pods and claims.

use serde_json::Value;

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    registry::{
        json::{Json, at, default, meta_mut, object, object_mut, objects, objects_mut, text},
        quantity,
    },
    status::Status,
};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitRanger;

/// All limits of a namespace.
fn limits(context: &Context<'_>, namespace: &str) -> Vec<Json> {
    let collection = context.objects.snapshot().collection("limitranges");
    collection
        .range(Some(namespace), None)
        .filter_map(|(_, o)| o.decode().get("spec").and_then(Value::as_object).cloned())
        .flat_map(|spec| objects(&spec, "limits").cloned().collect::<Vec<_>>())
        .collect()
}

fn amount(resources: Option<&Json>, kind: &str, name: &str) -> Option<i128> {
    quantity::parse(at(resources?, &[kind, name])?)
}

fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let limits = limits(context, attributes.call.namespace);
        let mut notes = Vec::new();
        for limit in limits.iter().filter(|l| text(l, "type") == "Container") {
            let spec = object_mut(&mut attributes.object, "spec");
            for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
                for container in objects_mut(spec, list) {
                    let name = text(container, "name").to_owned();
                    for (key, from, label) in
                        [("requests", "defaultRequest", "request"), ("limits", "default", "limit")]
                    {
                        let mut set = Vec::new();
                        for (resource, value) in object(limit, from).into_iter().flatten() {
                            let given = object_mut(object_mut(container, "resources"), key);
                            if !given.contains_key(resource) {
                                default(given, resource, value.clone());
                                set.push(resource.as_str());
                            }
                        }
                        if !set.is_empty() {
                            set.sort_unstable();
                            notes.push(format!("{} {label} for {what} {name}", set.join(", ")));
                        }
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            object_mut(meta_mut(&mut attributes.object), "annotations")
                .insert("kubernetes.io/limit-ranger".into(), note.into());
        }
        Ok(())
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create {
            return Ok(());
        }
        let mut problems = Vec::new();
        if attributes.is("", "pods") {
            let empty = Json::new();
            let spec = object(&attributes.object, "spec").unwrap_or(&empty);
            for limit in limits(context, attributes.call.namespace) {
                match text(&limit, "type") {
                    "Container" => {
                        for list in ["containers", "initContainers"] {
                            for container in objects(spec, list) {
                                check(&limit, "Container", object(container, "resources"), &mut problems);
                            }
                        }
                    }
                    "Pod" => check_pod(&limit, spec, &mut problems),
                    _ => {}
                }
            }
        } else if attributes.is("", "persistentvolumeclaims") {
            let resources = object(&attributes.object, "spec").and_then(|s| object(s, "resources"));
            for limit in limits(context, attributes.call.namespace) {
                if text(&limit, "type") == "PersistentVolumeClaim" {
                    check(&limit, "PersistentVolumeClaim", resources, &mut problems);
                }
            }
        }
        match problems.as_slice() {
            [] => Ok(()),
            [one] => Err(attributes.forbid(one)),
            many => Err(attributes.forbid(&format!("[{}]", many.join(", ")))),
        }
    }
}

/// Minimum, maximum and ratio of one thing's resources.
fn check(limit: &Json, kind: &str, resources: Option<&Json>, problems: &mut Vec<String>) {
    let of = |which: &str, name: &str| shown(resources.and_then(|r| at(r, &[which, name])));
    for (name, least) in object(limit, "min").into_iter().flatten() {
        let Some(least_value) = quantity::parse(least) else { continue };
        match amount(resources, "requests", name) {
            None => problems.push(format!(
                "minimum {name} usage per {kind} is {}.  No request is specified",
                shown(Some(least))
            )),
            Some(asked) if asked < least_value => problems.push(format!(
                "minimum {name} usage per {kind} is {}, but request is {}",
                shown(Some(least)),
                of("requests", name)
            )),
            Some(_) => {}
        }
    }
    for (name, most) in object(limit, "max").into_iter().flatten() {
        let Some(most_value) = quantity::parse(most) else { continue };
        let (which, label) =
            if kind == "PersistentVolumeClaim" { ("requests", "request") } else { ("limits", "limit") };
        match amount(resources, which, name) {
            None => problems.push(format!(
                "maximum {name} usage per {kind} is {}.  No limit is specified",
                shown(Some(most))
            )),
            Some(asked) if asked > most_value => problems.push(format!(
                "maximum {name} usage per {kind} is {}, but {label} is {}",
                shown(Some(most)),
                of(which, name)
            )),
            Some(_) => {}
        }
    }
    for (name, ratio) in object(limit, "maxLimitRequestRatio").into_iter().flatten() {
        let Some(most) = quantity::parse(ratio) else { continue };
        let (request, bound) = (amount(resources, "requests", name), amount(resources, "limits", name));
        let prefix = format!("{name} max limit to request ratio per {kind} is {}", shown(Some(ratio)));
        match (request.filter(|r| *r != 0), bound.filter(|l| *l != 0)) {
            (None, _) => problems.push(format!("{prefix}, but no request is specified or request is 0")),
            (_, None) => problems.push(format!("{prefix}, but no limit is specified or limit is 0")),
            (Some(request), Some(bound)) if bound * 1000 > most * request => {
                let millionths = bound * 1_000_000 / request;
                problems.push(format!(
                    "{prefix}, but provided ratio is {}.{:06}",
                    millionths / 1_000_000,
                    millionths % 1_000_000
                ));
            }
            _ => {}
        }
    }
}

/// The sum over a pod's containers.
fn check_pod(limit: &Json, spec: &Json, problems: &mut Vec<String>) {
    let sum = |which: &str, name: &str| -> i128 {
        objects(spec, "containers").filter_map(|c| amount(object(c, "resources"), which, name)).sum()
    };
    for (name, most) in object(limit, "max").into_iter().flatten() {
        if quantity::parse(most).is_some_and(|most| sum("limits", name) > most) {
            problems.push(format!(
                "maximum {name} usage per Pod is {}, but limit is {}",
                shown(Some(most)),
                quantity::format(sum("limits", name), quantity::is_binary(most))
            ));
        }
    }
    for (name, least) in object(limit, "min").into_iter().flatten() {
        if quantity::parse(least).is_some_and(|least| sum("requests", name) < least) {
            problems.push(format!(
                "minimum {name} usage per Pod is {}, but request is {}",
                shown(Some(least)),
                quantity::format(sum("requests", name), quantity::is_binary(least))
            ));
        }
    }
}
