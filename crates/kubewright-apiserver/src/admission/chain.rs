//! The plugins of a server, in order.

use std::sync::Arc;

use serde_json::Value;

use super::{
    AlwaysDeny, AlwaysPullImages, Attributes, CertificateApproval, CertificateSigning, CertificateSubject,
    ClaimResize, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds,
    ExtendedResourceToleration, LimitAntiAffinity, LimitRanger, NamespaceExists, NamespaceLifecycle,
    OwnerReferences, Plugin, PodNodeSelector, PodSecurity, Priority, RemotePlugin, ResourceQuota,
    RuntimeClass, ServiceAccount, StorageProtection, TaintNodes,
    policy::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy},
    webhook::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook, Webhooks},
};
use crate::{
    apply::ManagedFields,
    registry::{
        Registry,
        json::{meta, meta_mut},
    },
    status::Status,
};

/// The order of the plugins that there are. What users of the cluster bring comes after everything that is built in,
/// and what is charged comes last.
const ORDER: [&str; 28] = [
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    OWN,
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
];
/// The place of plugins that the server does not know.
const OWN: &str = "";

/// The plugins that are there but off.
fn optional(name: &str) -> Option<Slot> {
    Some(Slot::Local(match name {
        "AlwaysDeny" => Arc::new(AlwaysDeny),
        "AlwaysPullImages" => Arc::new(AlwaysPullImages),
        "ExtendedResourceToleration" => Arc::new(ExtendedResourceToleration),
        "LimitPodHardAntiAffinityTopology" => Arc::new(LimitAntiAffinity),
        "NamespaceExists" => Arc::new(NamespaceExists),
        "OwnerReferencesPermissionEnforcement" => Arc::new(OwnerReferences),
        "PodNodeSelector" => Arc::new(PodNodeSelector),
        "ServiceAccount" => Arc::new(ServiceAccount),
        _ => return None,
    }))
}

/// A name that no plugin has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no admission plugin {name:?} to switch {switch}; known are: {known}")]
pub struct UnknownPlugin {
    /// The name.
    pub name: String,
    /// `on` or `off`.
    pub switch: &'static str,
    /// The names that there are.
    pub known: String,
}

#[derive(Clone)]
enum Slot {
    Local(Arc<dyn Plugin>),
    Remote(Arc<dyn RemotePlugin>),
}

impl Slot {
    fn name(&self) -> &'static str {
        match self {
            Self::Local(plugin) => plugin.name(),
            Self::Remote(plugin) => plugin.name(),
        }
    }

    fn rank(&self) -> Option<usize> {
        let place = |name: &str| ORDER.iter().position(|known| *known == name);
        place(self.name()).or_else(|| place(OWN))
    }
}

/// The plugins of a server, in order.
#[derive(Clone, Default)]
pub struct Chain {
    slots: Vec<Slot>,
    /// Whether there are plugins that the server does not know.
    has_others: bool,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Chain {
    /// The plugins that are on by default.
    pub fn standard() -> Self {
        Self::calling(Webhooks::default())
    }

    /// The same, with webhooks called in a way of one's own.
    pub fn calling(webhooks: Webhooks) -> Self {
        Self::default()
            .own(NamespaceLifecycle)
            .own(LimitRanger)
            .own(TaintNodes)
            .own(PodSecurity)
            .own(Priority::default())
            .own(DefaultTolerationSeconds)
            .own(DefaultStorageClass)
            .own(StorageProtection)
            .own(ClaimResize)
            .own(RuntimeClass)
            .own(CertificateApproval)
            .own(CertificateSigning)
            .own(CertificateSubject)
            .own(DefaultIngressClass)
            .own(MutatingAdmissionPolicy::default())
            .own_remote(MutatingAdmissionWebhook::new(webhooks.clone()))
            .own(ValidatingAdmissionPolicy::default())
            .own_remote(ValidatingAdmissionWebhook::new(webhooks))
            .own(ResourceQuota)
    }

    fn own(self, plugin: impl Plugin) -> Self {
        self.insert(Slot::Local(Arc::new(plugin)))
    }

    fn own_remote(self, plugin: impl RemotePlugin) -> Self {
        self.insert(Slot::Remote(Arc::new(plugin)))
    }

    /// Adds a plugin, before those that run what users of the cluster bring.
    #[must_use]
    pub fn with(self, plugin: impl Plugin) -> Self {
        Self { has_others: true, ..self.own(plugin) }
    }

    /// Adds a plugin that asks outside of the process.
    #[must_use]
    pub fn with_remote(self, plugin: impl RemotePlugin) -> Self {
        Self { has_others: true, ..self.own_remote(plugin) }
    }

    /// Whether there are plugins of which the server does not know what they look at.
    pub(crate) fn has_others(&self) -> bool {
        self.has_others
    }

    fn insert(mut self, slot: Slot) -> Self {
        let rank = slot.rank();
        let at = self.slots.iter().position(|other| other.rank() > rank).unwrap_or(self.slots.len());
        self.slots.insert(at, slot);
        self
    }

    /// Switches a plugin on that the server has but does not use unless told to, as `--enable-admission-plugins` does.
    pub fn enable(self, name: &str) -> Result<Self, UnknownPlugin> {
        if self.names().any(|known| known == name) {
            return Ok(self);
        }
        if let Some(slot) = optional(name) {
            return Ok(self.insert(slot));
        }
        let known: Vec<&str> = ORDER.into_iter().filter(|known| *known != OWN).collect();
        Err(UnknownPlugin { name: name.to_owned(), switch: "on", known: known.join(", ") })
    }

    /// Leaves a plugin out, as `--disable-admission-plugins` does.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPlugin> {
        let before = self.slots.len();
        let known = self.names().collect::<Vec<_>>().join(", ");
        self.slots.retain(|slot| slot.name() != name);
        if self.slots.len() == before {
            return Err(UnknownPlugin { name: name.to_owned(), switch: "off", known });
        }
        Ok(self)
    }

    /// The names of the plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.slots.iter().map(Slot::name)
    }

    /// Lets every plugin change the object; all of them again when one outside of the process did.
    pub async fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        self.round(registry, attributes).await?;
        if attributes.rounds.wanted {
            attributes.rounds.again = true;
            self.round(registry, attributes).await?;
        }
        keep_managers_readable(attributes);
        Ok(())
    }

    async fn round(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        for slot in &self.slots {
            match slot {
                Slot::Local(plugin) => plugin.admit(registry, attributes)?,
                Slot::Remote(plugin) => plugin.admit(registry, attributes).await?,
            }
        }
        Ok(())
    }

    /// Lets every plugin refuse the object.
    pub async fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        for slot in &self.slots {
            match slot {
                Slot::Local(plugin) => plugin.validate(registry, attributes)?,
                Slot::Remote(plugin) => plugin.validate(registry, attributes).await?,
            }
        }
        Ok(())
    }
}

/// A webhook that spoils `managedFields` does not get its way with them.
fn keep_managers_readable(attributes: &mut Attributes<'_>) {
    let Some(before) = attributes.rounds.managers.take() else { return };
    let now = meta(&attributes.object).get("managedFields");
    let Some(Err(why)) = now.map(ManagedFields::decode) else { return };
    match before {
        Value::Null => meta_mut(&mut attributes.object).remove("managedFields"),
        managers => meta_mut(&mut attributes.object).insert("managedFields".into(), managers),
    };
    attributes.call.warn(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
         admission controller; please fix your requests: {why}"
    ));
}
