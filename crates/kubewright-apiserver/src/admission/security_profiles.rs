//! Checks of the baseline standard on kernel settings: sysctls, `SELinux`, `AppArmor`, host processes of Windows.

use std::collections::BTreeSet;

use serde_json::Value;

use super::podsecurity::{containers, is_true, named};
use crate::registry::json::{Json, at, object, objects, text};

const SYSCTLS: [&str; 14] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Adds every rule that a pod breaks.
pub(super) fn check(spec: &Json, found: &mut Vec<String>) {
    let security = at(spec, &["securityContext"]).and_then(Value::as_object);
    let sysctls: Vec<&str> = security
        .into_iter()
        .flat_map(|security| objects(security, "sysctls"))
        .map(|sysctl| text(sysctl, "name"))
        .filter(|name| !SYSCTLS.contains(name))
        .collect();
    if !sysctls.is_empty() {
        found.push(format!("forbidden sysctls ({})", sysctls.join(", ")));
    }
    selinux(spec, found);
    apparmor(spec, found);
    let process = |holder: &Json| is_true(holder, &["securityContext", "windowsOptions", "hostProcess"]);
    if let Some(who) = setters(spec, process) {
        found.push(format!(
            "hostProcess ({who} must not set securityContext.windowsOptions.hostProcess=true)"
        ));
    }
}

/// `pod and container "a"`: who of the pod and its containers does it.
fn setters(spec: &Json, mut does: impl FnMut(&Json) -> bool) -> Option<String> {
    let mut who = Vec::new();
    if does(spec) {
        who.push("pod".to_owned());
    }
    let names: Vec<&str> = containers(spec).filter(|c| does(c)).map(|c| text(c, "name")).collect();
    if !names.is_empty() {
        who.push(named(&names));
    }
    (!who.is_empty()).then(|| who.join(" and "))
}

fn part<'a>(holder: &'a Json, key: &str) -> Option<&'a Json> {
    object(object(holder, "securityContext")?, key)
}

fn quoted(values: &BTreeSet<String>) -> String {
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
}

fn selinux(spec: &Json, found: &mut Vec<String>) {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let who = setters(spec, |holder| {
        let Some(options) = part(holder, "seLinuxOptions") else { return false };
        let kind = text(options, "type");
        let bad = !SELINUX_TYPES.contains(&kind);
        if bad {
            types.insert(kind.to_owned());
        }
        let (has_user, has_role) = (!text(options, "user").is_empty(), !text(options, "role").is_empty());
        user |= has_user;
        role |= has_role;
        bad || has_user || has_role
    });
    let Some(who) = who else { return };
    let mut what = Vec::new();
    if !types.is_empty() {
        let plural = if types.len() == 1 { "" } else { "s" };
        what.push(format!("type{plural} {}", quoted(&types)));
    }
    for (set, key) in [(user, "user"), (role, "role")] {
        if set {
            what.push(format!("{key} may not be set"));
        }
    }
    found.push(format!(
        "seLinuxOptions ({who} set forbidden securityContext.seLinuxOptions: {})",
        what.join("; ")
    ));
}

fn apparmor(spec: &Json, found: &mut Vec<String>) {
    let mut values = BTreeSet::new();
    let who = setters(spec, |holder| {
        let Some(profile) = part(holder, "appArmorProfile") else { return false };
        let kind = text(profile, "type");
        let bad = !matches!(kind, "RuntimeDefault" | "Localhost");
        if bad {
            values.insert(kind.to_owned());
        }
        bad
    });
    let Some(who) = who else { return };
    let plural = if values.len() == 1 { "" } else { "s" };
    found.push(format!(
        "forbidden AppArmor profile{plural} ({who} must not set AppArmor profile type to {})",
        quoted(&values)
    ));
}
