//! Who may do what.
//!
//! Modes are tried in turn, as `--authorization-mode` lists them; the first that allows or denies decides, and when
//! none does the answer is no. Members of `system:masters` may do everything under RBAC. An authoriser of one's own
//! implements [`Authorize`] and is asked before the modes.

mod attributes;
pub mod bootstrap;
mod escalation;
mod params;
mod rbac;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;

pub use self::{attributes::Access, rbac::Rule};
use crate::{
    authn::{MASTERS, User},
    registry::{Registry, call::Call, descriptor::Json},
    status::Status,
};

/// One authoriser of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Roles and bindings.
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
    /// Nobody may do anything.
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

/// What an authoriser says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why, for reviews.
    pub reason: String,
}

/// What an authoriser of one's own says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opinion {
    /// Yes, and nobody else is asked.
    Allow(String),
    /// No, and nobody else is asked.
    Deny(String),
    /// Ask the next one.
    None,
}

/// An authoriser of one's own.
///
/// ```
/// use kubewright_apiserver::{ApiServer, authn::User, authz::{Access, Authorize, Opinion}, registry::Registry};
///
/// /// Nobody looks into secrets, whatever their roles say.
/// #[derive(Debug)]
/// struct NoSecrets;
///
/// impl Authorize for NoSecrets {
///     fn authorize(&self, _: &Registry, _: &User, access: &Access<'_>) -> Opinion {
///         if access.resource == "secrets" { Opinion::Deny("not here".into()) } else { Opinion::None }
///     }
/// }
///
/// let server = ApiServer::builder().authorizer(NoSecrets).in_process()?;
/// # Ok::<(), kubewright_apiserver::StartError>(())
/// ```
pub trait Authorize: fmt::Debug + Send + Sync + 'static {
    /// Whether a user may do something.
    fn authorize(&self, registry: &Registry, user: &User, access: &Access<'_>) -> Opinion;

    /// The rules that hold for a user in a namespace, as far as they can be told; for reviews.
    fn rules(&self, registry: &Registry, user: &User, namespace: &str) -> Vec<Rule> {
        let _ = (registry, user, namespace);
        Vec::new()
    }
}

/// The chain of authorisers.
#[derive(Debug)]
pub struct Authorizer {
    own: Vec<Arc<dyn Authorize>>,
    modes: Vec<Mode>,
    policy: ArcSwap<rbac::Policy>,
    stale: AtomicBool,
}

impl Authorizer {
    /// A chain of modes.
    pub fn new(modes: Vec<Mode>) -> Self {
        Self { own: Vec::new(), modes, policy: ArcSwap::default(), stale: AtomicBool::new(true) }
    }

    /// Asks others before the modes.
    #[must_use]
    pub fn asking(mut self, own: Vec<Arc<dyn Authorize>>) -> Self {
        self.own = own;
        self
    }

    /// The same chain for another server; it reads that one's roles.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.modes.clone()).asking(self.own.clone())
    }

    /// Roles or bindings have changed.
    pub fn invalidate(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Roles and bindings as they are now, compiled.
    fn policy(&self, registry: &Registry) -> Arc<rbac::Policy> {
        if self.stale.swap(false, Ordering::AcqRel) {
            self.policy.store(Arc::new(rbac::Policy::compile(&registry.storage.snapshot())));
        }
        self.policy.load_full()
    }

    /// Whether a user may do something.
    pub fn decide(&self, registry: &Registry, user: &User, access: &Access<'_>) -> Decision {
        for own in &self.own {
            match own.authorize(registry, user, access) {
                Opinion::Allow(reason) => return Decision { allowed: true, reason },
                Opinion::Deny(reason) => return Decision { allowed: false, reason },
                Opinion::None => {}
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
                    if let Some(reason) = self.policy(registry).allows(user, access) {
                        return Decision { allowed: true, reason };
                    }
                }
            }
        }
        Decision { allowed: false, reason: String::new() }
    }

    /// 403 unless a user may do something.
    pub fn check(&self, registry: &Registry, user: &User, access: &Access<'_>) -> Result<(), Status> {
        if self.decide(registry, user, access).allowed { Ok(()) } else { Err(access.refusal(user)) }
    }

    /// The rules that hold for a user in a namespace.
    pub fn rules(&self, registry: &Registry, user: &User, namespace: &str) -> Vec<Rule> {
        let mut rules: Vec<Rule> =
            self.own.iter().flat_map(|own| own.rules(registry, user, namespace)).collect();
        for mode in &self.modes {
            match mode {
                Mode::AlwaysAllow => rules.extend(Rule::everything()),
                Mode::AlwaysDeny => {}
                Mode::Rbac if user.is_in(MASTERS) => rules.extend(Rule::everything()),
                Mode::Rbac => rules.extend(self.policy(registry).rules(user, namespace)),
            }
        }
        rules
    }

    /// Refuses roles and bindings that give more than the writer has, and policies that read more than the writer may.
    pub fn check_escalation(
        &self,
        registry: &Registry,
        call: &Call<'_>,
        object: &Json,
    ) -> Result<(), Status> {
        if call.ty.group == "admissionregistration.k8s.io" && !call.user.is_in(MASTERS) {
            return params::check(self, registry, call, object);
        }
        if call.ty.group != "rbac.authorization.k8s.io"
            || !self.modes.contains(&Mode::Rbac)
            || call.user.is_in(MASTERS)
        {
            return Ok(());
        }
        escalation::check(self, registry, call, object)
    }
}
