//! Authorization: what a user may do.
//!
//! The modes are tried in order, as `--authorization-mode` lists them; the first that allows or denies decides, and
//! without a decision the request is forbidden. Members of `system:masters` may do everything under RBAC. Custom
//! authorizers implement [`Authorize`] and come before the modes.

mod attributes;
pub(crate) mod bootstrap;
mod escalation;
mod params;
mod rbac;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

pub use self::{attributes::Access, rbac::Rule};
use crate::{
    authn::{MASTERS, User},
    registry::{ObjectReader, call::Call, descriptor::Json},
    status::Status,
};

/// A built-in authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Allows what roles and bindings grant.
    Rbac,
    /// Allows everything.
    AlwaysAllow,
    /// Denies everything.
    AlwaysDeny,
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "RBAC" => Ok(Self::Rbac),
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            "AlwaysDeny" => Ok(Self::AlwaysDeny),
            other => {
                Err(format!("{other:?} is not an authorization mode; RBAC, AlwaysAllow and AlwaysDeny are"))
            }
        }
    }
}

/// The decision of all authorizers together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason, for access reviews.
    pub reason: String,
}

/// The opinion of one authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opinion {
    /// Allows the request; later authorizers are not asked.
    Allow(String),
    /// Denies the request; later authorizers are not asked.
    Deny(String),
    /// Leaves the decision to the next authorizer.
    NoOpinion,
}

/// A custom authorizer.
///
/// ```
/// use kubewright_apiserver::{
///     ApiServer,
///     authn::User,
///     authz::{Access, Authorize, Opinion},
///     registry::ObjectReader,
/// };
///
/// /// Denies access to secrets, whatever the roles allow.
/// #[derive(Debug)]
/// struct NoSecrets;
///
/// impl Authorize for NoSecrets {
///     fn authorize(&self, _: &dyn ObjectReader, _: &User, access: &Access<'_>) -> Opinion {
///         if access.resource == "secrets" { Opinion::Deny("not here".into()) } else { Opinion::NoOpinion }
///     }
/// }
///
/// let server = ApiServer::builder().authorizer(NoSecrets).in_process()?;
/// # Ok::<(), kubewright_apiserver::StartError>(())
/// ```
pub trait Authorize: fmt::Debug + Send + Sync + 'static {
    /// Returns whether a user may do something.
    fn authorize(&self, objects: &dyn ObjectReader, user: &User, access: &Access<'_>) -> Opinion;

    /// Returns the rules that hold for a user in a namespace, as far as they are known; for reviews.
    fn rules(&self, objects: &dyn ObjectReader, user: &User, namespace: &str) -> Vec<Rule> {
        let _ = (objects, user, namespace);
        Vec::new()
    }
}

/// The authorizers of a server, in order.
pub(crate) struct Authorizer {
    objects: Arc<dyn ObjectReader>,
    custom: Vec<Arc<dyn Authorize>>,
    modes: Vec<Mode>,
    policy: ArcSwap<rbac::Policy>,
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Authorizer");
        f.field("custom", &self.custom).field("modes", &self.modes).finish_non_exhaustive()
    }
}

impl Authorizer {
    /// Creates the authorizers of a server: custom ones, then the modes.
    pub(crate) fn new(
        objects: Arc<dyn ObjectReader>,
        custom: Vec<Arc<dyn Authorize>>,
        modes: Vec<Mode>,
    ) -> Self {
        Self { objects, custom, modes, policy: ArcSwap::default() }
    }

    /// Creates the same authorizers for another server.
    pub(crate) fn fork(&self, objects: Arc<dyn ObjectReader>) -> Self {
        Self::new(objects, self.custom.clone(), self.modes.clone())
    }

    /// Returns the stored roles and bindings, compiled. A compilation is used only for the collections that it was made
    /// of, so it does not matter in which order concurrent ones are stored.
    fn policy(&self) -> Arc<rbac::Policy> {
        let snapshot = self.objects.snapshot();
        let compiled = self.policy.load();
        if compiled.is_current(&snapshot) {
            return Arc::clone(&compiled);
        }
        let compiled = Arc::new(rbac::Policy::compile(&snapshot));
        self.policy.store(Arc::clone(&compiled));
        compiled
    }

    /// Returns whether a user may do something.
    pub(crate) fn decide(&self, user: &User, access: &Access<'_>) -> Decision {
        for custom in &self.custom {
            match custom.authorize(&*self.objects, user, access) {
                Opinion::Allow(reason) => return Decision { allowed: true, reason },
                Opinion::Deny(reason) => return Decision { allowed: false, reason },
                Opinion::NoOpinion => {}
            }
        }
        for mode in &self.modes {
            match mode {
                Mode::AlwaysAllow => return Decision { allowed: true, reason: String::new() },
                Mode::AlwaysDeny => {
                    return Decision { allowed: false, reason: "Everything is forbidden.".into() };
                }
                Mode::Rbac => {
                    if user.is_in(MASTERS) {
                        return Decision { allowed: true, reason: String::new() };
                    }
                    if let Some(reason) = self.policy().allows(user, access) {
                        return Decision { allowed: true, reason };
                    }
                }
            }
        }
        Decision { allowed: false, reason: String::new() }
    }

    /// Returns the rules that hold for a user in a namespace.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let mut rules: Vec<Rule> =
            self.custom.iter().flat_map(|custom| custom.rules(&*self.objects, user, namespace)).collect();
        for mode in &self.modes {
            match mode {
                Mode::AlwaysAllow => rules.extend(Rule::everything()),
                Mode::AlwaysDeny => {}
                Mode::Rbac if user.is_in(MASTERS) => rules.extend(Rule::everything()),
                Mode::Rbac => rules.extend(self.policy().rules(user, namespace)),
            }
        }
        rules
    }

    /// Checks that roles and bindings do not grant more than the writer has, and that admission policies do not read
    /// more than the writer may.
    pub(crate) fn check_escalation(&self, call: &Call<'_>, object: &Json) -> Result<(), Status> {
        if call.ty.group == "admissionregistration.k8s.io" && !call.user.is_in(MASTERS) {
            return params::check(self, call, object);
        }
        if call.ty.group != "rbac.authorization.k8s.io"
            || !self.modes.contains(&Mode::Rbac)
            || call.user.is_in(MASTERS)
        {
            return Ok(());
        }
        escalation::check(self, call, object)
    }
}
