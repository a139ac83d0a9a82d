//! `PodSecurity`: the levels `baseline` and `restricted`, by labels of the namespace.

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::{Attributes, Operation, Plugin, security_profiles};
use crate::{
    registry::{
        Registry,
        json::{Json, at, list, meta, object, objects, text},
        validation::Errors,
    },
    status::Status,
};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodSecurity;

const PREFIX: &str = "pod-security.kubernetes.io/";
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const MODES: [&str; 3] = ["enforce", "audit", "warn"];

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation == Operation::Delete {
            return Ok(());
        }
        if attributes.is("", "namespaces") {
            return validate_labels(attributes);
        }
        let Some((spec, is_pod)) = pod_spec(attributes) else { return Ok(()) };
        let namespace = registry.storage.get("namespaces", &ObjectKey::cluster(attributes.call.namespace));
        let Some(namespace) = namespace else { return Ok(()) };
        let level = |mode: &str| {
            let level = namespace.meta.label(&format!("{PREFIX}{mode}")).unwrap_or("privileged").to_owned();
            let version =
                namespace.meta.label(&format!("{PREFIX}{mode}-version")).unwrap_or("latest").to_owned();
            (level, version)
        };
        let (enforced, version) = level("enforce");
        let violations = check(spec, &enforced);
        if is_pod && attributes.operation == Operation::Create && !violations.is_empty() {
            let why = format!("violates PodSecurity \"{enforced}:{version}\": {}", violations.join(", "));
            return Err(attributes.forbid(&why));
        }
        let (warned, version) = level("warn");
        let violations = check(spec, &warned);
        if !violations.is_empty() {
            attributes
                .call
                .warn(format!("would violate PodSecurity \"{warned}:{version}\": {}", violations.join(", ")));
        }
        Ok(())
    }
}

fn validate_labels(attributes: &Attributes<'_>) -> Result<(), Status> {
    let mut errors = Errors::default();
    let labels = object(meta(&attributes.object), "labels");
    for mode in MODES {
        let key = format!("{PREFIX}{mode}");
        if let Some(level) = labels.and_then(|l| l.get(&key)).and_then(Value::as_str)
            && !LEVELS.contains(&level)
        {
            errors.invalid(
                format!("metadata.labels[{key}]"),
                level,
                "must be one of privileged, baseline, restricted",
            );
        }
        let key = format!("{PREFIX}{mode}-version");
        if let Some(version) = labels.and_then(|l| l.get(&key)).and_then(Value::as_str) {
            let known =
                version == "latest" || version.strip_prefix("v1.").is_some_and(|n| n.parse::<u32>().is_ok());
            if !known {
                errors.invalid(format!("metadata.labels[{key}]"), version, "must be \"latest\" or \"v1.x\"");
            }
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = crate::registry::json::name(&attributes.object);
    Err(attributes.call.invalid(name, &errors))
}

/// The pod spec of a pod or of a workload's template.
fn pod_spec<'a>(attributes: &'a Attributes<'_>) -> Option<(&'a Json, bool)> {
    if !attributes.call.subresource.is_empty() {
        return None;
    }
    let path: &[&str] = match (attributes.ty().group.as_ref(), attributes.ty().kind.as_ref()) {
        ("", "Pod") => return Some((object(&attributes.object, "spec")?, true)),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        ("", "PodTemplate") => &["template", "spec"],
        _ => return None,
    };
    Some((at(&attributes.object, path)?.as_object()?, false))
}

/// Every rule that a pod breaks at a level.
fn check(spec: &Json, level: &str) -> Vec<String> {
    let mut found = Vec::new();
    if level == "baseline" || level == "restricted" {
        baseline(spec, level, &mut found);
        security_profiles::check(spec, &mut found);
    }
    if level == "restricted" {
        restricted(spec, &mut found);
    }
    found
}

pub(super) fn containers(spec: &Json) -> impl Iterator<Item = &Json> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| objects(spec, list))
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn named(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("{n:?}")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("container{plural} {}", quoted.join(", "))
}

fn offenders(spec: &Json, bad: impl Fn(&Json) -> bool) -> Vec<&str> {
    containers(spec).filter(|c| bad(c)).map(|c| text(c, "name")).collect()
}

pub(super) fn is_true(parent: &Json, path: &[&str]) -> bool {
    at(parent, path).and_then(Value::as_bool) == Some(true)
}

const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn baseline(spec: &Json, level: &str, found: &mut Vec<String>) {
    let host: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|k| is_true(spec, &[k]))
        .map(|k| format!("{k}=true"))
        .collect();
    if !host.is_empty() {
        found.push(format!("host namespaces ({})", host.join(", ")));
    }
    let privileged = offenders(spec, |c| is_true(c, &["securityContext", "privileged"]));
    if !privileged.is_empty() {
        found.push(format!(
            "privileged ({} must not set securityContext.privileged=true)",
            named(&privileged)
        ));
    }
    if level == "baseline" {
        let capable = offenders(spec, |c| {
            at(c, &["securityContext", "capabilities", "add"]).and_then(Value::as_array).is_some_and(|l| {
                l.iter().filter_map(Value::as_str).any(|c| !BASELINE_CAPABILITIES.contains(&c))
            })
        });
        if !capable.is_empty() {
            found.push(format!("non-default capabilities ({} must not include such capabilities in securityContext.capabilities.add)", named(&capable)));
        }
    }
    let paths: Vec<String> = objects(spec, "volumes")
        .filter(|v| v.contains_key("hostPath"))
        .map(|v| format!("{:?}", text(v, "name")))
        .collect();
    if !paths.is_empty() {
        let plural = if paths.len() == 1 { "" } else { "s" };
        found.push(format!("hostPath volumes (volume{plural} {})", paths.join(", ")));
    }
    let ports = offenders(spec, |c| {
        objects(c, "ports").any(|p| p.get("hostPort").and_then(Value::as_i64).unwrap_or(0) != 0)
    });
    if !ports.is_empty() {
        found.push(format!("hostPort ({} uses hostPorts)", named(&ports)));
    }
    let mount = offenders(spec, |c| {
        at(c, &["securityContext", "procMount"]).and_then(Value::as_str).is_some_and(|m| m != "Default")
    });
    if !mount.is_empty() {
        found.push(format!("procMount ({} must not set securityContext.procMount)", named(&mount)));
    }
    if level == "baseline" {
        let unconfined = |c: &Json| {
            at(c, &["securityContext", "seccompProfile", "type"]).is_some_and(|t| t == "Unconfined")
        };
        let loose = offenders(spec, unconfined);
        if unconfined(spec) || !loose.is_empty() {
            found.push("seccompProfile (pod or container must not set securityContext.seccompProfile.type to \"Unconfined\")".into());
        }
    }
}

fn restricted(spec: &Json, found: &mut Vec<String>) {
    let allowed = [
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let volumes: Vec<String> = objects(spec, "volumes")
        .filter(|v| v.keys().any(|k| !allowed.contains(&k.as_str())))
        .map(|v| format!("{:?}", text(v, "name")))
        .collect();
    if !volumes.is_empty() {
        found.push(format!(
            "restricted volume types (volumes {} use restricted volume types)",
            volumes.join(", ")
        ));
    }
    let escalates = offenders(spec, |c| {
        at(c, &["securityContext", "allowPrivilegeEscalation"]).and_then(Value::as_bool) != Some(false)
    });
    if !escalates.is_empty() {
        found.push(format!(
            "allowPrivilegeEscalation != false ({} must set securityContext.allowPrivilegeEscalation=false)",
            named(&escalates)
        ));
    }
    let keeps = offenders(spec, |c| {
        let drops = object(c, "securityContext").and_then(|s| object(s, "capabilities"));
        !drops.is_some_and(|d| list(d, "drop").iter().any(|v| v == "ALL"))
    });
    if !keeps.is_empty() {
        found.push(format!(
            "unrestricted capabilities ({} must set securityContext.capabilities.drop=[\"ALL\"])",
            named(&keeps)
        ));
    }
    let pod_non_root = is_true(spec, &["securityContext", "runAsNonRoot"]);
    let rooted =
        offenders(spec, |c| match at(c, &["securityContext", "runAsNonRoot"]).and_then(Value::as_bool) {
            Some(non_root) => !non_root,
            None => !pod_non_root,
        });
    if !rooted.is_empty() {
        found.push(format!(
            "runAsNonRoot != true (pod or {} must set securityContext.runAsNonRoot=true)",
            named(&rooted)
        ));
    }
    let zero = |c: &Json| at(c, &["securityContext", "runAsUser"]).and_then(Value::as_i64) == Some(0);
    let zeros = offenders(spec, zero);
    if zero(spec) || !zeros.is_empty() {
        let who = match (zero(spec), zeros.is_empty()) {
            (true, true) => "pod".to_owned(),
            (true, false) => format!("pod and {}", named(&zeros)),
            _ => named(&zeros),
        };
        found.push(format!("runAsUser=0 ({who} must not set runAsUser=0)"));
    }
    let profile = |c: &Json| {
        at(c, &["securityContext", "seccompProfile", "type"])
            .and_then(Value::as_str)
            .map(|t| matches!(t, "RuntimeDefault" | "Localhost"))
    };
    let pod_profile = profile(spec).unwrap_or(false);
    let loose = offenders(spec, |c| !profile(c).unwrap_or(pod_profile));
    if !loose.is_empty() {
        found.push(format!(
            "seccompProfile (pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\")",
            named(&loose)
        ));
    }
}
