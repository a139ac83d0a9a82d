//! `authorizer`: asking who may do what from within an expression.

use std::{fmt, sync::Arc};

use super::{Answer, Val, fail};
use kubewright_schema::names;

/// What an expression asks about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// The verb.
    pub verb: String,
    /// The path, for a check that is about no resource.
    pub path: String,
    /// The API group.
    pub group: String,
    /// The resource; empty for a path.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace; empty for the cluster.
    pub namespace: String,
    /// The name; empty for all.
    pub name: String,
}

/// The answer to a [`Check`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
}

/// Whoever knows who may do what.
pub trait Authority: fmt::Debug + Send + Sync {
    /// Whether the user of the request may do something, or the service account (namespace, name) if there is one.
    fn decide(&self, service_account: Option<(&str, &str)>, check: &Check) -> Verdict;
}

/// The values along `authorizer.group('').resource('pods').check('get').allowed()`.
#[derive(Debug, Clone)]
pub(crate) struct Authz<'v> {
    authority: &'v dyn Authority,
    service_account: Option<(String, String)>,
    stage: Stage,
    check: Check,
}

#[derive(Debug, Clone)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision(Verdict),
}

impl<'v> Authz<'v> {
    /// `authorizer`.
    pub(crate) fn root(authority: &'v dyn Authority) -> Self {
        Self { authority, service_account: None, stage: Stage::Authorizer, check: Check::default() }
    }

    /// `authorizer.requestResource`.
    pub(crate) fn request(authority: &'v dyn Authority, check: Check) -> Self {
        Self { authority, service_account: None, stage: Stage::Resource, check }
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

    fn at(&self, stage: Stage, change: impl FnOnce(&mut Check)) -> Val<'v> {
        let mut next = Self { stage, ..self.clone() };
        change(&mut next.check);
        Val::Authz(Arc::new(next))
    }

    fn decide(&self, verb: &str) -> Val<'v> {
        let check = Check { verb: verb.to_owned(), ..self.check.clone() };
        let account = self.service_account.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        let verdict = self.authority.decide(account, &check);
        self.at(Stage::Decision(verdict), |_| {})
    }
}

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<Answer<'v>> {
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
        // Roles know no selectors: a selector can only narrow what is asked, and does not change the answer.
        (Stage::Resource, "fieldSelector" | "labelSelector", [Val::String(_)]) => {
            Ok(Val::Authz(Arc::clone(authz)))
        }
        (Stage::Path | Stage::Resource, "check", [Val::String(verb)]) => Ok(authz.decide(verb)),
        (Stage::Decision(verdict), "allowed", []) => Ok(Val::Bool(verdict.allowed)),
        (Stage::Decision(verdict), "reason", []) => Ok(Val::text(verdict.reason.as_str())),
        (Stage::Decision(_), "errored", []) => Ok(Val::Bool(false)),
        (Stage::Decision(_), "error", []) => Ok(Val::text("")),
        _ => return None,
    })
}

/// `jsonpatch.escapeKey`: a key as a part of a JSON pointer.
fn escape<'v>(function: &str, args: &[Val<'v>]) -> Option<Answer<'v>> {
    match (function, args) {
        ("jsonpatch.escapeKey", [Val::String(key)]) => {
            Some(Ok(Val::text(key.replace('~', "~0").replace('/', "~1"))))
        }
        _ => None,
    }
}
