//! The database: a StatefulSet with a volume, and the Secret with its password.

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::StatefulSet,
        core::v1::{EnvVar, EnvVarSource, PersistentVolumeClaim, Secret, SecretKeySelector, VolumeMount},
    },
};
use kubewright::{
    client::{OwnerError, set_controller_reference},
    prelude::*,
};

use crate::{
    CloudManager,
    workloads::{container, label},
};

/// Name of the volume claim of each Pod.
const DATA: &str = "datadir";

/// The name of the Secret with the password.
pub fn secret_name(manager: &CloudManager) -> String {
    format!("{}auth", manager.spec.db.stateful_set.name)
}

/// Brings the Secret into its desired state.
pub fn secret(manager: &CloudManager, secret: &mut Secret) {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let data = [("username", "root"), ("password", manager.spec.db.root_pass.expose())];
    secret.data = Some(data.map(|(key, value)| (key.to_owned(), bytes(value))).into());
}

/// Brings the StatefulSet into its desired state.
pub fn stateful_set(manager: &CloudManager, set: &mut StatefulSet) -> Result<(), OwnerError> {
    let server = &manager.spec.db.stateful_set;
    label(manager, "db", &mut set.spec.selector, &mut set.spec.template);

    let container = container(&mut set.spec.template, "db-container");
    container.image = Some(server.image.clone());
    let password = SecretKeySelector {
        key: "password".to_owned(),
        name: secret_name(manager),
        ..SecretKeySelector::default()
    };
    container.env = Some(vec![EnvVar {
        name: "MARIADB_ROOT_PASSWORD".to_owned(),
        value_from: Some(EnvVarSource { secret_key_ref: Some(password), ..EnvVarSource::default() }),
        ..EnvVar::default()
    }]);
    container.volume_mounts = Some(vec![VolumeMount {
        name: DATA.to_owned(),
        mount_path: "/var/lib/mysql".to_owned(),
        ..VolumeMount::default()
    }]);

    claim(manager, set)
}

/// Sets the volume claim of each Pod. It is immutable in an existing StatefulSet, and the server's error says
/// so.
fn claim(manager: &CloudManager, set: &mut StatefulSet) -> Result<(), OwnerError> {
    let storage = &manager.spec.db.stateful_set.storage;
    let templates = set.spec.volume_claim_templates.get_or_insert_default();
    if templates.is_empty() {
        let mut template = PersistentVolumeClaim::default();
        template.metadata.name = Some(DATA.to_owned());
        template.metadata.namespace = manager.namespace();
        // Claims outlive their StatefulSet; these are deleted with the CloudManager.
        set_controller_reference(manager, &mut template)?;
        templates.push(template);
    }
    let spec = templates[0].spec.get_or_insert_default();
    spec.storage_class_name = Some(storage.class.clone());
    spec.access_modes = Some(vec![storage.access_modes.clone()]);
    let requests = spec.resources.get_or_insert_default().requests.get_or_insert_default();
    requests.insert("storage".to_owned(), storage.size.clone());
    Ok(())
}
