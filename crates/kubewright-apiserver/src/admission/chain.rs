//! The chain of admission plugins.

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
    admission::Context,
    apply::ManagedFields,
    registry::json::{meta, meta_mut},
    status::Status,
};

/// The order of all plugins. Policies and webhooks come after the built-in plugins, and quota last.
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
/// The place of custom plugins.
const OWN: &str = "";

/// Returns a plugin that is off by default.
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

/// No plugin has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no admission plugin {name:?} to switch {switch}; known are: {known}")]
#[non_exhaustive]
pub struct UnknownPlugin {
    /// The name.
    pub name: String,
    /// `on` or `off`.
    pub switch: &'static str,
    /// The known names.
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
    /// Whether there are plugins that are not the server's own.
    has_custom_plugins: bool,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Chain {
    /// Creates the chain of the plugins that are on by default.
    pub fn standard() -> Self {
        Self::calling(Webhooks::default())
    }

    /// Creates the default chain with a custom client of webhooks.
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

    /// Adds a custom plugin, before policies and webhooks.
    #[must_use]
    pub fn with(self, plugin: impl Plugin) -> Self {
        Self { has_custom_plugins: true, ..self.own(plugin) }
    }

    /// Adds a custom plugin that calls other processes, before policies and webhooks.
    #[must_use]
    pub fn with_remote(self, plugin: impl RemotePlugin) -> Self {
        Self { has_custom_plugins: true, ..self.own_remote(plugin) }
    }

    /// Returns whether there are plugins that are not the server's own, and may read any field.
    pub(crate) fn has_custom_plugins(&self) -> bool {
        self.has_custom_plugins
    }

    fn insert(mut self, slot: Slot) -> Self {
        let rank = slot.rank();
        let at = self.slots.iter().position(|other| other.rank() > rank).unwrap_or(self.slots.len());
        self.slots.insert(at, slot);
        self
    }

    /// Enables a plugin that is off by default, as `--enable-admission-plugins` does.
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

    /// Disables a plugin, as `--disable-admission-plugins` does.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPlugin> {
        let before = self.slots.len();
        let known = self.names().collect::<Vec<_>>().join(", ");
        self.slots.retain(|slot| slot.name() != name);
        if self.slots.len() == before {
            return Err(UnknownPlugin { name: name.to_owned(), switch: "off", known });
        }
        Ok(self)
    }

    /// Returns the names of the plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.slots.iter().map(Slot::name)
    }

    /// Runs the mutating plugins; all of them again if a remote one changed the object.
    pub async fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        self.round(context, attributes).await?;
        if attributes.rounds.wanted {
            attributes.rounds.again = true;
            self.round(context, attributes).await?;
        }
        keep_managers_readable(attributes);
        Ok(())
    }

    async fn round(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        for slot in &self.slots {
            match slot {
                Slot::Local(plugin) => plugin.admit(context, attributes)?,
                Slot::Remote(plugin) => plugin.admit(context, attributes).await?,
            }
        }
        Ok(())
    }

    /// Runs the validating plugins.
    pub async fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        for slot in &self.slots {
            match slot {
                Slot::Local(plugin) => plugin.validate(context, attributes)?,
                Slot::Remote(plugin) => plugin.validate(context, attributes).await?,
            }
        }
        Ok(())
    }
}

/// Restores `managedFields` that a webhook has made invalid.
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
