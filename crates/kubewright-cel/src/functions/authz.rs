//! `authorizer`: authorization checks in expressions.

use std::{fmt, sync::Arc};

use super::{EvalResult, Val, fail};
use kubewright_schema::names;

/// Authorization check of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessCheck {
    /// The verb.
    pub verb: String,
    /// The path of a non-resource check.
    pub path: String,
    /// The API group.
    pub group: String,
    /// The resource; empty for a path.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace; empty for cluster scope.
    pub namespace: String,
    /// The name; empty for all.
    pub name: String,
}

/// Result of an [`AccessCheck`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether access is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
}

/// Authorizer that expressions use.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides for the user of the request, or for a service account (namespace, name).
    fn decide(&self, service_account: Option<(&str, &str)>, check: &AccessCheck) -> AccessDecision;
}

/// Values of the chain `authorizer.group('').resource('pods').check('get').allowed()`.
#[derive(Debug, Clone)]
pub(crate) struct Authz<'v> {
    authorizer: &'v dyn Authorizer,
    service_account: Option<(String, String)>,
    stage: Stage,
    check: AccessCheck,
}

#[derive(Debug, Clone)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision(AccessDecision),
}

impl<'v> Authz<'v> {
    /// Creates `authorizer`.
    pub(crate) fn root(authorizer: &'v dyn Authorizer) -> Self {
        Self { authorizer, service_account: None, stage: Stage::Authorizer, check: AccessCheck::default() }
    }

    /// Creates `authorizer.requestResource`.
    pub(crate) fn request(authorizer: &'v dyn Authorizer, check: AccessCheck) -> Self {
        Self { authorizer, service_account: None, stage: Stage::Resource, check }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    fn at(&self, stage: Stage, change: impl FnOnce(&mut AccessCheck)) -> Val<'v> {
        let mut next = Self { stage, ..self.clone() };
        change(&mut next.check);
        Val::Authz(Arc::new(next))
    }

    fn decide(&self, verb: &str) -> Val<'v> {
        let check = AccessCheck { verb: verb.to_owned(), ..self.check.clone() };
        let account = self.service_account.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        let decision = self.authorizer.decide(account, &check);
        self.at(Stage::Decision(decision), |_| {})
    }
}

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    let (Val::Authz(authz), rest) = args.split_first()? else { return escape(function, args) };
    Some(match (&authz.stage, function, rest) {
        (Stage::Authorizer, "path", [Val::String(path)]) => {
            if path.trim().is_empty() {
                return Some(fail("path must not be empty"));
            }
            Ok(authz.at(Stage::Path, |check| check.path = path.to_string()))
        }
        (Stage::Authorizer, "group", [Val::String(group)]) => {
            Ok(authz.at(Stage::Group, |check| check.group = group.to_string()))
        }
        (Stage::Authorizer, "serviceAccount", [Val::String(namespace), Val::String(name)]) => {
            if let Some(why) = names::subdomain(name).first() {
                return Some(fail(format!("Invalid service account name: [{why}]")));
            }
            if let Some(why) = names::label(namespace).first() {
                return Some(fail(format!("Invalid service account namespace: [{why}]")));
            }
            let account = Some((namespace.to_string(), name.to_string()));
            Ok(Val::Authz(Arc::new(Authz { service_account: account, ..Authz::clone(authz) })))
        }
        (Stage::Group, "resource", [Val::String(resource)]) => {
            if resource.trim().is_empty() {
                return Some(fail("resource must not be empty"));
            }
            Ok(authz.at(Stage::Resource, |check| check.resource = resource.to_string()))
        }
        (Stage::Resource, "subresource", [Val::String(text)]) => {
            Ok(authz.at(Stage::Resource, |check| check.subresource = text.to_string()))
        }
        (Stage::Resource, "namespace", [Val::String(text)]) => {
            Ok(authz.at(Stage::Resource, |check| check.namespace = text.to_string()))
        }
        (Stage::Resource, "name", [Val::String(text)]) => {
            Ok(authz.at(Stage::Resource, |check| check.name = text.to_string()))
        }
        // RBAC ignores selectors: they only narrow the request and do not change the decision.
        (Stage::Resource, "fieldSelector" | "labelSelector", [Val::String(_)]) => {
            Ok(Val::Authz(Arc::clone(authz)))
        }
        (Stage::Path | Stage::Resource, "check", [Val::String(verb)]) => Ok(authz.decide(verb)),
        (Stage::Decision(decision), "allowed", []) => Ok(Val::Bool(decision.allowed)),
        (Stage::Decision(decision), "reason", []) => Ok(Val::text(decision.reason.as_str())),
        (Stage::Decision(_), "errored", []) => Ok(Val::Bool(false)),
        (Stage::Decision(_), "error", []) => Ok(Val::text("")),
        _ => return None,
    })
}

/// Implements `jsonpatch.escapeKey`: escapes a key for a JSON pointer.
fn escape<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    match (function, args) {
        ("jsonpatch.escapeKey", [Val::String(key)]) => {
            Some(Ok(Val::text(key.replace('~', "~0").replace('/', "~1"))))
        }
        _ => None,
    }
}
