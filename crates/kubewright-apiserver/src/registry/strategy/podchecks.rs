//! Checks of pod specs, wherever they stand.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::registry::{
    json::{Json, list, object, objects, text},
    validation::{Errors, names},
};

/// Checks a pod spec; `field` is where it stands.
pub(super) fn validate_spec(spec: &Json, field: &str, errors: &mut Errors) {
    let volumes: BTreeSet<&str> = objects(spec, "volumes").map(|v| text(v, "name")).collect();
    validate_volumes(spec, field, errors);
    let mut seen = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    if list(spec, "containers").is_empty() {
        errors.required(format!("{field}.containers"), "");
    }
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for (n, container) in objects(spec, kind).enumerate() {
            let at = format!("{field}.{kind}[{n}]");
            let name = text(container, "name");
            if kind == "ephemeralContainers" && container.contains_key("ports") {
                errors.forbidden(format!("{at}.ports"), "cannot be set for an Ephemeral Container");
            }
            validate_container(container, &at, &volumes, errors);
            if !name.is_empty() && !seen.insert(name) {
                errors.duplicate(format!("{at}.name"), name);
            }
            if kind == "containers" {
                validate_host_ports(container, &at, &mut host_ports, errors);
            }
        }
    }
    let choice = |key: &str, allowed: &[&str], errors: &mut Errors| {
        let value = text(spec, key);
        if value.is_empty() {
            errors.required(format!("{field}.{key}"), "");
        } else if !allowed.contains(&value) {
            errors.not_supported(format!("{field}.{key}"), value, allowed);
        }
    };
    choice("restartPolicy", &["Always", "OnFailure", "Never"], errors);
    choice("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    named(spec, "nodeName", field, names::subdomain, errors);
    named(spec, "serviceAccountName", field, names::subdomain, errors);
    named(spec, "priorityClassName", field, names::subdomain, errors);
    named(spec, "runtimeClassName", field, names::subdomain, errors);
    if let Some(seconds) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        errors.invalid(
            format!("{field}.activeDeadlineSeconds"),
            seconds,
            "must be between 1 and 2147483647, inclusive",
        );
    }
    named(spec, "hostname", field, names::label, errors);
    named(spec, "subdomain", field, names::label, errors);
    if let Some(context) = object(spec, "securityContext") {
        validate_ids(context, &format!("{field}.securityContext"), errors);
    }
    validate_tolerations(spec, field, errors);
    validate_affinity(spec, field, errors);
    validate_spread(spec, field, errors);
}

fn named(spec: &Json, key: &str, field: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let value = text(spec, key);
    if !value.is_empty() {
        for why in rule(value) {
            errors.invalid(format!("{field}.{key}"), value, &why);
        }
    }
}

fn validate_volumes(spec: &Json, field: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (n, volume) in objects(spec, "volumes").enumerate() {
        let at = format!("{field}.volumes[{n}]");
        let name = text(volume, "name");
        if name.is_empty() {
            errors.required(format!("{at}.name"), "");
        } else {
            for why in names::label(name) {
                errors.invalid(format!("{at}.name"), name, &why);
            }
            if !seen.insert(name) {
                errors.duplicate(format!("{at}.name"), name);
            }
        }
        for (n, source) in volume.keys().filter(|k| *k != "name").enumerate() {
            if n > 0 {
                errors.forbidden(format!("{at}.{source}"), "may not specify more than 1 volume type");
            }
        }
        if let Some(secret) = object(volume, "secret")
            && text(secret, "secretName").is_empty()
        {
            errors.required(format!("{at}.secret.secretName"), "");
        }
        if let Some(map) = object(volume, "configMap")
            && text(map, "name").is_empty()
        {
            errors.required(format!("{at}.configMap.name"), "");
        }
        if let Some(claim) = object(volume, "persistentVolumeClaim")
            && text(claim, "claimName").is_empty()
        {
            errors.required(format!("{at}.persistentVolumeClaim.claimName"), "");
        }
    }
}

fn validate_container(container: &Json, at: &str, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(format!("{at}.name"), "");
    } else {
        for why in names::label(name) {
            errors.invalid(format!("{at}.name"), name, &why);
        }
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.required(format!("{at}.image"), "");
    } else if image != image.trim() {
        errors.invalid(format!("{at}.image"), image, "must not have leading or trailing whitespace");
    }
    validate_ports(container, at, errors);
    for (n, env) in objects(container, "env").enumerate() {
        let name = text(env, "name");
        if name.is_empty() {
            errors.required(format!("{at}.env[{n}].name"), "");
        } else if name.contains(['=', '\0']) {
            errors.invalid(format!("{at}.env[{n}].name"), name, "a valid environment variable name must consist only of printable ASCII characters other than '='");
        }
        if env.contains_key("value") && env.contains_key("valueFrom") && !text(env, "value").is_empty() {
            errors.invalid(
                format!("{at}.env[{n}].valueFrom"),
                "",
                "may not be specified when `value` is not empty",
            );
        }
    }
    let mut paths = BTreeSet::new();
    for (n, mount) in objects(container, "volumeMounts").enumerate() {
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(format!("{at}.volumeMounts[{n}].name"), "");
        } else if !volumes.contains(name) {
            errors.not_found(format!("{at}.volumeMounts[{n}].name"), name);
        }
        if path.is_empty() {
            errors.required(format!("{at}.volumeMounts[{n}].mountPath"), "");
        } else if !paths.insert(path) {
            errors.invalid(format!("{at}.volumeMounts[{n}].mountPath"), path, "must be unique");
        }
    }
    let policy = text(container, "imagePullPolicy");
    if !matches!(policy, "Always" | "IfNotPresent" | "Never") {
        errors.not_supported(format!("{at}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
    validate_resources(container, at, errors);
    if let Some(context) = object(container, "securityContext") {
        validate_ids(context, &format!("{at}.securityContext"), errors);
        let is = |key: &str, value: bool| context.get(key).and_then(Value::as_bool) == Some(value);
        if is("privileged", true) && is("allowPrivilegeEscalation", false) {
            errors.invalid(
                format!("{at}.securityContext"),
                Value::Object(context.clone()),
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            );
        }
    }
}

fn validate_ports(container: &Json, at: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (n, port) in objects(container, "ports").enumerate() {
        let here = format!("{at}.ports[{n}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let why = names::port_name(name);
            if !why.is_empty() {
                for why in why {
                    errors.invalid(format!("{here}.name"), name, &why);
                }
            } else if !seen.insert(name) {
                errors.duplicate(format!("{here}.name"), name);
            }
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or(0) {
            0 => errors.required(format!("{here}.containerPort"), ""),
            number if !(1..=65_535).contains(&number) => errors.invalid(
                format!("{here}.containerPort"),
                number,
                "must be between 1 and 65535, inclusive",
            ),
            _ => {}
        }
        let host = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0);
        if host != 0 && !(1..=65_535).contains(&host) {
            errors.invalid(format!("{here}.hostPort"), host, "must be between 1 and 65535, inclusive");
        }
        let protocol = text(port, "protocol");
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            errors.not_supported(format!("{here}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        }
    }
}

fn validate_host_ports(container: &Json, at: &str, taken: &mut BTreeSet<String>, errors: &mut Errors) {
    for (n, port) in objects(container, "ports").enumerate() {
        let Some(host) = port.get("hostPort").and_then(Value::as_i64).filter(|p| *p > 0) else { continue };
        let key = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
        if !taken.insert(key.clone()) {
            errors.duplicate(format!("{at}.ports[{n}].hostPort"), key);
        }
    }
}

fn validate_resources(container: &Json, at: &str, errors: &mut Errors) {
    let Some(resources) = object(container, "resources") else { return };
    let limits = object(resources, "limits");
    for kind in ["limits", "requests"] {
        for (name, quantity) in object(resources, kind).into_iter().flatten() {
            let field = format!("{at}.resources.{kind}[{name}]");
            for why in names::qualified(name) {
                errors.invalid(field.as_str(), name.as_str(), &why);
            }
            let Some(value) = super::super::quantity::parse(quantity) else { continue };
            if value < 0 {
                errors.invalid(field.as_str(), quantity.clone(), "must be greater than or equal to 0");
            }
            if kind == "requests"
                && let Some(limit) = limits.and_then(|l| l.get(name)).and_then(super::super::quantity::parse)
                && value > limit
            {
                let why = format!("must be less than or equal to {name} limit of {}", shown(limits, name));
                errors.invalid(format!("{at}.resources.requests"), quantity.clone(), &why);
            }
        }
    }
}

fn shown(limits: Option<&Json>, name: &str) -> String {
    match limits.and_then(|l| l.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn validate_ids(context: &Json, at: &str, errors: &mut Errors) {
    for key in ["runAsUser", "runAsGroup", "fsGroup"] {
        if let Some(id) = context.get(key).and_then(Value::as_i64)
            && !(0..=i64::from(i32::MAX)).contains(&id)
        {
            errors.invalid(format!("{at}.{key}"), id, "must be between 0 and 2147483647, inclusive");
        }
    }
}

fn validate_tolerations(spec: &Json, field: &str, errors: &mut Errors) {
    for (n, toleration) in objects(spec, "tolerations").enumerate() {
        let at = format!("{field}.tolerations[{n}]");
        let (key, operator, value) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "value"));
        if !key.is_empty() {
            for why in names::qualified(key) {
                errors.invalid(format!("{at}.key"), key, &why);
            }
        }
        if key.is_empty() && operator != "Exists" {
            errors.invalid(
                format!("{at}.operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        let effect = text(toleration, "effect");
        if toleration.contains_key("tolerationSeconds") && effect != "NoExecute" {
            errors.invalid(
                format!("{at}.effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator {
            "Equal" | "" => {
                for why in names::label_value(value) {
                    errors.invalid(format!("{at}.operator"), value, &why);
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.invalid(
                        format!("{at}.operator"),
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    );
                }
            }
            other => errors.not_supported(format!("{at}.operator"), other, &["Equal", "Exists"]),
        }
        if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            errors.not_supported(
                format!("{at}.effect"),
                effect,
                &["NoExecute", "NoSchedule", "PreferNoSchedule"],
            );
        }
    }
}

fn validate_affinity(spec: &Json, field: &str, errors: &mut Errors) {
    let Some(node) = object(spec, "affinity").and_then(|a| object(a, "nodeAffinity")) else { return };
    let Some(required) = object(node, "requiredDuringSchedulingIgnoredDuringExecution") else { return };
    let at = format!("{field}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");
    if list(required, "nodeSelectorTerms").is_empty() {
        errors.required(format!("{at}.nodeSelectorTerms"), "must have at least one node selector term");
    }
    for (n, term) in objects(required, "nodeSelectorTerms").enumerate() {
        for (m, expression) in objects(term, "matchExpressions").enumerate() {
            let here = format!("{at}.nodeSelectorTerms[{n}].matchExpressions[{m}]");
            let values = list(expression, "values");
            match text(expression, "operator") {
                "In" | "NotIn" if values.is_empty() => errors.required(
                    format!("{here}.values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ),
                "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
                    format!("{here}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
                "Gt" | "Lt" if values.len() != 1 => errors.required(
                    format!("{here}.values"),
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                ),
                "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
                other => errors.invalid(format!("{here}.operator"), other, "not a valid selector operator"),
            }
        }
    }
}

fn validate_spread(spec: &Json, field: &str, errors: &mut Errors) {
    for (n, constraint) in objects(spec, "topologySpreadConstraints").enumerate() {
        let at = format!("{field}.topologySpreadConstraints[{n}]");
        let skew = constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(0);
        if skew <= 0 {
            errors.invalid(format!("{at}.maxSkew"), skew, "must be greater than zero");
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.required(format!("{at}.topologyKey"), "can not be empty");
        }
        let when = text(constraint, "whenUnsatisfiable");
        if !matches!(when, "DoNotSchedule" | "ScheduleAnyway") {
            errors.not_supported(
                format!("{at}.whenUnsatisfiable"),
                when,
                &["DoNotSchedule", "ScheduleAnyway"],
            );
        }
    }
}
