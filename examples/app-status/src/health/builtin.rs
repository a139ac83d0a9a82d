//! Health of built-in kinds.

use super::{Fields, Health, State};

/// The health of a built-in kind; `None` for others.
pub(super) fn health(api_version: &str, kind: &str, object: Fields<'_>) -> Option<Health> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match (group, kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => cron_job(object),
        ("", "Pod") => pod(object),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => phase(object, "Bound", "Lost"),
        ("", "PersistentVolume") => volume(object),
        ("", "Namespace") => phase(object, "Active", ""),
        ("", "Node") => node(object),
        ("networking.k8s.io", "Ingress") => ingress(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        // Kinds without a status are ready once they exist.
        (
            "" | "rbac.authorization.k8s.io" | "storage.k8s.io" | "coordination.k8s.io" | "discovery.k8s.io",
            _,
        ) if object.at("/status").is_none() => Health::new(State::Ready, ""),
        _ => return None,
    })
}

/// Health by a number of ready parts, with a reason if they are not enough.
fn counted(ready: i64, of: i64, waits: Option<String>) -> Health {
    let health = match waits {
        Some(why) => Health::new(State::Progressing, why),
        None if ready < of => Health::new(State::Progressing, ""),
        None => Health::new(State::Ready, ""),
    };
    health.parts(ready, of)
}

fn deployment(object: Fields<'_>) -> Health {
    let count = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let (updated, available) = (count("updatedReplicas"), count("availableReplicas"));
    if let Some(stuck) = object
        .condition("Progressing")
        .filter(|held| held.is("False") && held.reason() == "ProgressDeadlineExceeded")
    {
        return Health::new(State::Failed, stuck.words()).parts(available, wanted);
    }
    if let Some(refused) = object.condition("ReplicaFailure").filter(|held| held.is("True")) {
        return Health::new(State::Failed, refused.words()).parts(available, wanted);
    }
    let waits = if updated < wanted {
        Some(format!("{updated} of {wanted} updated"))
    } else if count("replicas") > updated {
        Some(format!("{} old to go", count("replicas") - updated))
    } else {
        None
    };
    counted(available, wanted, waits)
}

fn replica_set(object: Fields<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let ready = object.number("/status/readyReplicas").unwrap_or(0);
    match object.condition("ReplicaFailure").filter(|held| held.is("True")) {
        Some(refused) => Health::new(State::Failed, refused.words()).parts(ready, wanted),
        None => counted(ready, wanted, None),
    }
}

fn stateful_set(object: Fields<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let ready = object.number("/status/readyReplicas").unwrap_or(0);
    let updated = object.number("/status/updatedReplicas").unwrap_or(0);
    let partition = object.number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    let rolls = object.text("/spec/updateStrategy/type") != Some("OnDelete") && updated < wanted - partition;
    counted(ready, wanted, (rolls && ready == wanted).then(|| format!("{updated} of {wanted} updated")))
}

fn daemon_set(object: Fields<'_>) -> Health {
    let count = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    let (wanted, updated) = (count("desiredNumberScheduled"), count("updatedNumberScheduled"));
    if object.number("/status/observedGeneration").is_none() {
        return Health::new(State::Progressing, "");
    }
    counted(
        count("numberAvailable"),
        wanted,
        (updated < wanted).then(|| format!("{updated} of {wanted} updated")),
    )
}

fn job(object: Fields<'_>) -> Health {
    let wanted = object.number("/spec/completions").unwrap_or(1);
    let succeeded = object.number("/status/succeeded").unwrap_or(0);
    let condition = |wanted: &str| object.condition(wanted).filter(|held| held.is("True"));
    let health = if let Some(failed) = condition("Failed") {
        Health::new(State::Failed, failed.words())
    } else if condition("Complete").is_some() {
        Health::new(State::Done, "")
    } else if object.is("/spec/suspend") {
        Health::new(State::Suspended, "")
    } else {
        let active = object.number("/status/active").unwrap_or(0);
        Health::new(State::Progressing, format!("{active} running"))
    };
    health.parts(succeeded, wanted)
}

fn cron_job(object: Fields<'_>) -> Health {
    if object.is("/spec/suspend") {
        return Health::new(State::Suspended, "");
    }
    let last = object.text("/status/lastScheduleTime").map(|time| format!("last run {time}"));
    Health::new(State::Ready, last.unwrap_or_default())
}

fn pod(object: Fields<'_>) -> Health {
    let containers = object.list("/spec/containers").count();
    let ready = object.list("/status/containerStatuses").filter(|container| container.is("/ready")).count();
    let health = match object.text("/status/phase").unwrap_or("Pending") {
        "Succeeded" => Health::new(State::Done, ""),
        "Failed" => {
            let words = object.text("/status/message").or(object.text("/status/reason"));
            Health::new(State::Failed, words.unwrap_or_default())
        }
        _ if object.condition("Ready").is_some_and(|held| held.is("True")) => Health::new(State::Ready, ""),
        phase => stuck(object).unwrap_or_else(|| waiting(object, phase)),
    };
    health.parts(i64::try_from(ready).unwrap_or(i64::MAX), i64::try_from(containers).unwrap_or(i64::MAX))
}

/// A container that needs intervention.
fn stuck(object: Fields<'_>) -> Option<Health> {
    let statuses =
        object.list("/status/initContainerStatuses").chain(object.list("/status/containerStatuses"));
    let mut reasons = statuses.filter_map(|container| container.text("/state/waiting/reason"));
    let bad = [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
    ];
    reasons.find(|reason| bad.contains(reason)).map(|reason| Health::new(State::Failed, reason))
}

fn waiting(object: Fields<'_>, phase: &str) -> Health {
    let unscheduled = object.condition("PodScheduled").filter(|held| held.is("False"));
    let mut reasons = object
        .list("/status/containerStatuses")
        .filter_map(|container| container.text("/state/waiting/reason"));
    let words =
        unscheduled.map_or_else(|| reasons.next().unwrap_or(phase).to_owned(), super::Condition::words);
    Health::new(State::Progressing, words)
}

fn service(object: Fields<'_>) -> Health {
    let address = object.text("/spec/clusterIP").unwrap_or_default();
    match object.text("/spec/type") {
        Some("LoadBalancer") => match object.list("/status/loadBalancer/ingress").next() {
            Some(given) => {
                let outside = given.text("/ip").or(given.text("/hostname")).unwrap_or_default();
                Health::new(State::Ready, outside)
            }
            None => Health::new(State::Progressing, "waits for its load balancer"),
        },
        Some("ExternalName") => {
            Health::new(State::Ready, object.text("/spec/externalName").unwrap_or_default())
        }
        _ => Health::new(State::Ready, address),
    }
}

fn phase(object: Fields<'_>, good: &str, bad: &str) -> Health {
    match object.text("/status/phase").unwrap_or("Pending") {
        phase if phase == good => Health::new(State::Ready, phase),
        phase if phase == bad => Health::new(State::Failed, phase),
        phase => Health::new(State::Progressing, phase),
    }
}

fn volume(object: Fields<'_>) -> Health {
    match object.text("/status/phase").unwrap_or("Pending") {
        phase @ ("Available" | "Bound") => Health::new(State::Ready, phase),
        "Failed" => Health::new(State::Failed, object.text("/status/message").unwrap_or("Failed")),
        phase => Health::new(State::Progressing, phase),
    }
}

fn node(object: Fields<'_>) -> Health {
    let cordoned = if object.is("/spec/unschedulable") { "cordoned" } else { "" };
    match object.condition("Ready") {
        Some(held) if held.is("True") => Health::new(State::Ready, cordoned),
        Some(held) => Health::new(State::NotReady, held.words()),
        None => Health::new(State::Progressing, ""),
    }
}

fn ingress(object: Fields<'_>) -> Health {
    let hosts: Vec<&str> = object.list("/spec/rules").filter_map(|rule| rule.text("/host")).collect();
    Health::new(State::Ready, hosts.join(", "))
}

fn definition(object: Fields<'_>) -> Health {
    match (object.condition("NamesAccepted"), object.condition("Established")) {
        (Some(names), _) if names.is("False") => Health::new(State::Failed, names.words()),
        (_, Some(established)) if established.is("True") => Health::new(State::Ready, ""),
        _ => Health::new(State::Progressing, ""),
    }
}
