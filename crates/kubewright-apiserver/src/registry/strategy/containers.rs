//! Validation of containers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{podvolumes, resources};
use crate::registry::{
    json::Json,
    validation::{
        Errors,
        at::{NOT_NEGATIVE, ObjectAt, PORT, local_path},
        names,
    },
};

/// List of a pod spec that a container is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Regular,
    Init,
    Ephemeral,
}

impl Role {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Regular => "containers",
            Self::Init => "initContainers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

/// Context of a container: its pod.
pub(super) struct Pod<'a> {
    pub(super) volumes: BTreeSet<&'a str>,
    pub(super) claims: BTreeSet<&'a str>,
    pub(super) grace: Option<i64>,
}

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Validates a container.
pub(super) fn validate(container: &ObjectAt<'_>, role: Role, pod: &Pod<'_>, errors: &mut Errors) {
    container.required("name", errors);
    container.named("name", names::label, errors);
    container.required("image", errors);
    required_choice(
        container,
        "terminationMessagePolicy",
        &["File", "FallbackToLogsOnError"],
        &["File", "FallbackToLogsOnError"],
        errors,
    );
    validate_ports(container, errors);
    for env in container.each("env") {
        validate_env(&env, errors);
    }
    validate_env_from(container, errors);
    validate_mounts(container, pod, errors);
    validate_devices(container, pod, errors);
    required_choice(
        container,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    if let Some(resources) = container.child("resources") {
        resources::validate(&resources, &pod.claims, errors);
    }
    if let Some(context) = container.child("securityContext") {
        validate_security(&context, errors);
    }
    match role {
        Role::Regular => validate_lifecycle(container, pod, errors),
        Role::Init => validate_init(container, pod, errors),
        Role::Ephemeral => {
            for key in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
                if container.has(key) {
                    errors.forbidden(container.path(key), "cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// Validates a required choice, which defaulting sets if absent; `listed` is the order in the message.
fn required_choice(at: &ObjectAt<'_>, key: &str, allowed: &[&str], listed: &[&str], errors: &mut Errors) {
    let value = at.text(key);
    if value.is_empty() {
        errors.required(at.path(key), "");
    } else if !allowed.contains(&value) {
        errors.not_supported(at.path(key), value, listed);
    }
}

fn validate_init(container: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    container.choice("restartPolicy", &["Always", "Never", "OnFailure"], errors);
    if container.text("restartPolicy") == "Always" {
        return validate_lifecycle(container, pod, errors);
    }
    for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.has(key) {
            let why = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(container.path(key), why);
        }
    }
}

fn validate_lifecycle(container: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    if let Some(lifecycle) = container.child("lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.child(key) {
                validate_handler(&handler, pod, errors);
            }
        }
    }
    for key in PROBES {
        let Some(probe) = container.child(key) else { continue };
        validate_handler(&probe, pod, errors);
        probe.not_negative(
            &[
                "initialDelaySeconds",
                "timeoutSeconds",
                "periodSeconds",
                "successThreshold",
                "failureThreshold",
            ],
            errors,
        );
        let grace = probe.number("terminationGracePeriodSeconds");
        if key == "readinessProbe" {
            if grace.is_some() {
                let why = "must not be set for readinessProbes";
                errors.invalid(probe.path("terminationGracePeriodSeconds"), grace, why);
            }
            continue;
        }
        if let Some(seconds) = grace.filter(|seconds| *seconds <= 0) {
            errors.invalid(probe.path("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
        }
        if let Some(count) = probe.number("successThreshold").filter(|count| *count != 1) {
            errors.invalid(probe.path("successThreshold"), count, "must be 1");
        }
    }
}

fn validate_handler(handler: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let mut kinds = HANDLERS.iter().filter(|kind| handler.has(kind));
    let Some(kind) = kinds.next() else {
        return errors.required(&handler.field, "must specify a handler type");
    };
    if let Some(action) = handler.child(kind) {
        validate_action(kind, &action, pod, errors);
    }
    for other in kinds {
        errors.forbidden(handler.path(other), "may not specify more than 1 handler type");
    }
}

fn validate_action(kind: &str, action: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    match kind {
        "exec" if action.list("command").is_empty() => errors.required(action.path("command"), ""),
        "httpGet" => {
            action.required("path", errors);
            action.port("port", errors);
            action.choice("scheme", &["HTTP", "HTTPS"], errors);
            for header in action.each("httpHeaders") {
                let name = header.text("name");
                let token = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
                if name.is_empty() || !name.bytes().all(token) {
                    errors.invalid(action.path("httpHeaders"), name, "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
                }
            }
        }
        "tcpSocket" => action.port("port", errors),
        "grpc" => {
            let port = action.number("port").unwrap_or(0);
            if !(1..=65_535).contains(&port) {
                errors.invalid(action.path("port"), port, PORT);
            }
        }
        "sleep" => {
            let seconds = action.number("seconds").unwrap_or(0);
            let most = pod.grace.unwrap_or(0);
            if seconds < 0 || seconds > most {
                let why =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
                errors.invalid(&action.field, seconds, &why);
            }
        }
        _ => {}
    }
}

fn validate_ports(container: &ObjectAt<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in container.each("ports") {
        let name = port.text("name");
        if !name.is_empty() {
            let why = names::port_name(name);
            if !why.is_empty() {
                for why in why {
                    errors.invalid(port.path("name"), name, &why);
                }
            } else if !seen.insert(name) {
                errors.duplicate(port.path("name"), name);
            }
        }
        match port.number("containerPort").unwrap_or(0) {
            0 => errors.required(port.path("containerPort"), ""),
            number if !(1..=65_535).contains(&number) => {
                errors.invalid(port.path("containerPort"), number, PORT);
            }
            _ => {}
        }
        let host = port.number("hostPort").unwrap_or(0);
        if host != 0 && !(1..=65_535).contains(&host) {
            errors.invalid(port.path("hostPort"), host, PORT);
        }
        port.choice("protocol", &["SCTP", "TCP", "UDP"], errors);
    }
}

/// Validates that host ports are unique among the containers that run together.
pub(super) fn validate_host_ports(
    container: &ObjectAt<'_>,
    taken: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    for port in container.each("ports") {
        let Some(host) = port.number("hostPort").filter(|host| *host > 0) else { continue };
        let key = format!("{}/{}/{host}", port.text("protocol"), port.text("hostIP"));
        if !taken.insert(key.clone()) {
            errors.duplicate(port.path("hostPort"), key);
        }
    }
}

const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

fn is_env_name(name: &str) -> bool {
    name.bytes().all(|c| (b' '..=b'~').contains(&c) && c != b'=')
}

fn validate_env(env: &ObjectAt<'_>, errors: &mut Errors) {
    let name = env.text("name");
    if name.is_empty() {
        errors.required(env.path("name"), "");
    } else if !is_env_name(name) {
        errors.invalid(env.path("name"), name, ENV_NAME);
    }
    let Some(from) = env.child("valueFrom") else { return };
    let mut sources = 0;
    if let Some(field) = from.child("fieldRef") {
        sources += 1;
        podvolumes::validate_field_ref(&field, podvolumes::ENV_PATHS, errors);
    }
    if let Some(resource) = from.child("resourceFieldRef") {
        sources += 1;
        podvolumes::validate_resource_ref(&resource, false, errors);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(selector) = from.child(key) {
            sources += 1;
            selector.required("name", errors);
            if selector.text("key").is_empty() {
                errors.required(selector.path("key"), "");
            } else {
                selector.named("key", names::config_key, errors);
            }
        }
    }
    if from.has("fileKeyRef") {
        sources += 1;
    }
    let why = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !env.text("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(&from.field, "", why);
}

fn validate_env_from(container: &ObjectAt<'_>, errors: &mut Errors) {
    for from in container.each("envFrom") {
        let prefix = from.text("prefix");
        if !prefix.is_empty() && !is_env_name(prefix) {
            errors.invalid(from.path("prefix"), prefix, ENV_NAME);
        }
        let mut sources = 0;
        for key in ["configMapRef", "secretRef"] {
            if let Some(reference) = from.child(key) {
                sources += 1;
                reference.required("name", errors);
            }
        }
        match sources {
            1 => {}
            0 => errors.invalid(
                container.path("envFrom"),
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            ),
            _ => errors.invalid(
                container.path("envFrom"),
                "",
                "may not have more than one field specified at a time",
            ),
        }
    }
}

fn validate_mounts(container: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let devices: Vec<(&str, &str)> =
        container.each("volumeDevices").map(|d| (d.text("name"), d.text("devicePath"))).collect();
    let mut paths = BTreeSet::new();
    // Upstream reports the list, not the entry, for the fields of a mount.
    let list = container.path("volumeMounts");
    for mount in container.each("volumeMounts") {
        let (name, path) = (mount.text("name"), mount.text("mountPath"));
        mount.required("name", errors);
        if !pod.volumes.contains(name) {
            errors.not_found(mount.path("name"), name);
        }
        mount.required("mountPath", errors);
        if !paths.insert(path) {
            errors.invalid(mount.path("mountPath"), path, "must be unique");
        }
        if devices.iter().any(|(device, _)| *device == name) {
            errors.invalid(mount.path("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|(_, device)| *device == path) {
            let why = "must not already exist as a path in volumeDevices";
            errors.invalid(mount.path("mountPath"), path, why);
        }
        for key in ["subPath", "subPathExpr"] {
            let sub = mount.text(key);
            if key == "subPathExpr" && !sub.is_empty() && mount.has("subPath") {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(mount.path(key), sub, why);
            }
            local_path(sub, &list.child(key), errors);
        }
        let propagation = mount.text("mountPropagation");
        let privileged = container.child("securityContext").is_some_and(|context| context.is("privileged"));
        if propagation == "Bidirectional" && !privileged {
            errors.forbidden(
                format!("{list}.mountPropagation"),
                "Bidirectional mount propagation is available only to privileged containers",
            );
        }
        let modes = ["Bidirectional", "HostToContainer", "None"];
        if !propagation.is_empty() && !modes.contains(&propagation) {
            errors.not_supported(format!("{list}.mountPropagation"), propagation, &modes);
        }
    }
}

fn validate_devices(container: &ObjectAt<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for device in container.each("volumeDevices") {
        let (name, path) = (device.text("name"), device.text("devicePath"));
        device.required("name", errors);
        if !name.is_empty() && !pod.volumes.contains(name) {
            errors.not_found(device.path("name"), name);
        }
        if path.is_empty() {
            errors.required(device.path("devicePath"), "");
        } else if !paths.insert(path) {
            errors.invalid(device.path("devicePath"), path, "must be unique");
        } else {
            crate::registry::validation::at::no_backsteps(path, &device.path("devicePath"), errors);
        }
    }
}

/// Validates user and group ids.
pub(super) fn validate_ids(context: &ObjectAt<'_>, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        if let Some(id) = context.number(key)
            && !(0..=i64::from(i32::MAX)).contains(&id)
        {
            errors.invalid(context.path(key), id, "must be between 0 and 2147483647, inclusive");
        }
    }
}

fn validate_security(context: &ObjectAt<'_>, errors: &mut Errors) {
    validate_ids(context, &["runAsUser", "runAsGroup"], errors);
    context.choice("procMount", &["Default", "Unmasked"], errors);
    validate_profiles(context, errors);
    let escalates = context.object.get("allowPrivilegeEscalation").and_then(Value::as_bool);
    if escalates != Some(false) {
        return;
    }
    let refuse = |why: &str, errors: &mut Errors| {
        errors.invalid(&context.field, go_security_context(context.object), why);
    };
    if context.is("privileged") {
        refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true", errors);
    }
    let adds = context.child("capabilities").map(|c| c.list("add")).unwrap_or_default();
    if adds.iter().any(|capability| capability == "CAP_SYS_ADMIN") {
        refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN", errors);
    }
}

/// Formats a security context like Go prints its internal form: with every field.
fn go_security_context(context: &Json) -> Value {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    FIELDS
        .iter()
        .map(|(shown, key)| ((*shown).to_owned(), context.get(*key).cloned().unwrap_or_default()))
        .collect::<Json>()
        .into()
}

/// Validates seccomp and `AppArmor` profiles of a pod or a container.
pub(super) fn validate_profiles(context: &ObjectAt<'_>, errors: &mut Errors) {
    for key in ["seccompProfile", "appArmorProfile"] {
        let Some(profile) = context.child(key) else { continue };
        let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
        let kind = profile.text("type");
        if kind.is_empty() {
            errors.required(profile.path("type"), "type is required when seccompProfile is set");
        } else if !kinds.contains(&kind) {
            errors.not_supported(profile.path("type"), kind, &kinds);
        }
        let local = profile.text("localhostProfile");
        if kind == "Localhost" && local.is_empty() {
            let why = if key == "seccompProfile" {
                "must be set when seccomp type is Localhost"
            } else {
                "must be set when AppArmor type is Localhost"
            };
            errors.required(profile.path("localhostProfile"), why);
        }
        if kind == "Localhost" && key == "seccompProfile" {
            local_path(local, &profile.path("localhostProfile"), errors);
        }
        if kind != "Localhost" && profile.has("localhostProfile") {
            let why = if key == "seccompProfile" {
                "can only be set when seccomp type is Localhost"
            } else {
                "can only be set when AppArmor type is Localhost"
            };
            errors.invalid(profile.path("localhostProfile"), local, why);
        }
    }
}

/// Validates that grace periods are not negative.
pub(super) fn validate_grace(spec: &ObjectAt<'_>, errors: &mut Errors) {
    if let Some(seconds) = spec.number("terminationGracePeriodSeconds").filter(|seconds| *seconds < 0) {
        errors.invalid(spec.path("terminationGracePeriodSeconds"), seconds, NOT_NEGATIVE);
    }
}
