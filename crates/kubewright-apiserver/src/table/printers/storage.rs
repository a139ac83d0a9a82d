//! Printers of volumes, claims and storage classes.

use serde_json::Value;

use super::{Printer, count, or_none, printer, shown};
use crate::{
    registry::json::{Json, at, list, meta, name, object, objects, text, text_at},
    table::{
        age::age,
        columns::{AGE, Column, NAME, number, text as column, wide},
    },
};

fn modes(parent: Option<&Json>) -> String {
    let short = parent.map(|p| list(p, "accessModes")).unwrap_or_default().iter().filter_map(|m| {
        Some(match m.as_str()? {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            _ => return None,
        })
    });
    short.collect::<Vec<_>>().join(",")
}

fn class_of(object_: &Json) -> String {
    let annotation =
        object(meta(object_), "annotations").map(|a| text(a, "volume.beta.kubernetes.io/storage-class"));
    match annotation {
        Some(class) if !class.is_empty() => class.to_owned(),
        _ => text_at(object_, &["spec", "storageClassName"]).to_owned(),
    }
}

fn unset(text: &str) -> Value {
    if text.is_empty() { "<unset>".into() } else { text.into() }
}

pub(super) static CLAIM: Printer = printer(
    &[
        NAME,
        column("Status"),
        column("Volume"),
        column("Capacity"),
        column("Access Modes"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
    ],
    |claim, now| {
        let volume = text_at(claim, &["spec", "volumeName"]);
        let phase = if meta(claim).contains_key("deletionTimestamp") {
            "Terminating"
        } else {
            text_at(claim, &["status", "phase"])
        };
        // The actual capacity of a claim, not the requested one.
        let bound = object(claim, "status").filter(|_| !volume.is_empty());
        let capacity = bound.and_then(|s| at(s, &["capacity", "storage"]));
        vec![
            name(claim).into(),
            phase.into(),
            volume.into(),
            shown(capacity).into(),
            modes(bound).into(),
            class_of(claim).into(),
            unset(text_at(claim, &["spec", "volumeAttributesClassName"])),
            age(claim, now),
            unset(text_at(claim, &["spec", "volumeMode"])),
        ]
    },
);

pub(super) static VOLUME: Printer = printer(
    &[
        NAME,
        column("Capacity"),
        column("Access Modes"),
        column("Reclaim Policy"),
        column("Status"),
        column("Claim"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        column("Reason"),
        AGE,
        wide("VolumeMode"),
    ],
    |volume, now| {
        let spec = object(volume, "spec");
        let claim = match (
            text_at(volume, &["spec", "claimRef", "namespace"]),
            text_at(volume, &["spec", "claimRef", "name"]),
        ) {
            ("", "") => String::new(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        let phase = if meta(volume).contains_key("deletionTimestamp") {
            "Terminating"
        } else {
            text_at(volume, &["status", "phase"])
        };
        vec![
            name(volume).into(),
            shown(at(volume, &["spec", "capacity", "storage"])).into(),
            modes(spec).into(),
            text_at(volume, &["spec", "persistentVolumeReclaimPolicy"]).into(),
            phase.into(),
            claim.into(),
            class_of(volume).into(),
            unset(text_at(volume, &["spec", "volumeAttributesClassName"])),
            text_at(volume, &["status", "reason"]).into(),
            age(volume, now),
            unset(text_at(volume, &["spec", "volumeMode"])),
        ]
    },
);

const fn boolean(name: &'static str) -> Column {
    Column { name, kind: "boolean", format: "", priority: 0 }
}

fn flag(object_: &Json, path: &[&str]) -> Value {
    at(object_, path).and_then(Value::as_bool).unwrap_or(false).into()
}

pub(super) static CLASS: Printer = printer(
    &[
        NAME,
        column("Provisioner"),
        column("ReclaimPolicy"),
        column("VolumeBindingMode"),
        column("AllowVolumeExpansion"),
        AGE,
    ],
    |class, now| {
        let annotations = object(meta(class), "annotations");
        let default =
            annotations.is_some_and(|a| text(a, "storageclass.kubernetes.io/is-default-class") == "true");
        let shown_name = if default { format!("{} (default)", name(class)) } else { name(class).to_owned() };
        vec![
            shown_name.into(),
            text(class, "provisioner").into(),
            text(class, "reclaimPolicy").into(),
            text(class, "volumeBindingMode").into(),
            flag(class, &["allowVolumeExpansion"]),
            age(class, now),
        ]
    },
);

pub(super) static DRIVER: Printer = printer(
    &[
        NAME,
        boolean("AttachRequired"),
        boolean("PodInfoOnMount"),
        boolean("StorageCapacity"),
        column("TokenRequests"),
        boolean("RequiresRepublish"),
        column("Modes"),
        AGE,
    ],
    |driver, now| {
        let empty = Json::new();
        let spec = object(driver, "spec").unwrap_or(&empty);
        let modes: Vec<&str> = list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
        let tokens: Vec<&str> = objects(spec, "tokenRequests").map(|t| text(t, "audience")).collect();
        vec![
            name(driver).into(),
            flag(spec, &["attachRequired"]),
            flag(spec, &["podInfoOnMount"]),
            flag(spec, &["storageCapacity"]),
            unset(&tokens.join(",")),
            flag(spec, &["requiresRepublish"]),
            or_none(&modes.join(",")),
            age(driver, now),
        ]
    },
);

pub(super) static CSI_NODE: Printer = printer(&[NAME, number("Drivers"), AGE], |node, now| {
    let drivers = object(node, "spec").map_or(0, |s| count(s, "drivers"));
    vec![name(node).into(), drivers.into(), age(node, now)]
});

pub(super) static ATTACHMENT: Printer = printer(
    &[NAME, column("Attacher"), column("PV"), column("Node"), boolean("Attached"), AGE],
    |attachment, now| {
        vec![
            name(attachment).into(),
            text_at(attachment, &["spec", "attacher"]).into(),
            text_at(attachment, &["spec", "source", "persistentVolumeName"]).into(),
            text_at(attachment, &["spec", "nodeName"]).into(),
            flag(attachment, &["status", "attached"]),
            age(attachment, now),
        ]
    },
);
