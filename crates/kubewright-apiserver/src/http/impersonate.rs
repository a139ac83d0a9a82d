//! Acting as somebody else: `Impersonate-User`, `-Group`, `-Uid`, `-Extra-…`.

use http::HeaderMap;

use super::route::Route;
use crate::{
    authn::{AUTHENTICATED, UNAUTHENTICATED, User, service_account},
    authz::Access,
    registry::Registry,
    status::{About, Status},
};

/// Who a request is made as; `user` when nobody else.
pub(super) fn resolve(
    registry: &Registry,
    user: User,
    headers: &HeaderMap,
    route: &Route,
) -> Result<User, Status> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let mut wanted = User { name: text("impersonate-user"), uid: text("impersonate-uid"), ..User::default() };
    for value in headers.get_all("impersonate-group") {
        wanted.groups.extend(value.to_str().ok().map(str::to_owned));
    }
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix("impersonate-extra-"), value.to_str()) {
            wanted.extra.entry(key.to_lowercase()).or_default().push(value.to_owned());
        }
    }
    if wanted.name.is_empty() {
        if wanted == User::default() {
            return Ok(user);
        }
        return Err(Status::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} \
             without impersonating a user name",
            wanted.uid,
            wanted.groups.iter().map(|g| format!("{g:?}")).collect::<Vec<_>>().join(", ")
        )));
    }
    check(registry, &user, &wanted, route)?;
    if wanted.groups.is_empty()
        && let Some((namespace, _)) =
            wanted.name.strip_prefix("system:serviceaccount:").and_then(|n| n.split_once(':'))
    {
        wanted.groups = service_account::groups(namespace);
    }
    if wanted.name == "system:anonymous" {
        wanted.groups.push(UNAUTHENTICATED.into());
    } else if !wanted.is_in(AUTHENTICATED) && !wanted.is_in(UNAUTHENTICATED) {
        wanted.groups.push(AUTHENTICATED.into());
    }
    Ok(wanted)
}

/// Every part of the other identity must be allowed.
fn check(registry: &Registry, user: &User, wanted: &User, route: &Route) -> Result<(), Status> {
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let access = Access {
            verb: "impersonate",
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            path: "",
        };
        registry.authorizer.decide(registry, user, &access).allowed
    };
    let account = wanted.name.strip_prefix("system:serviceaccount:").and_then(|n| n.split_once(':'));
    let named = match account {
        Some((namespace, name)) => may("", "serviceaccounts", "", namespace, name),
        None => may("", "users", "", "", &wanted.name),
    };
    let authentication = "authentication.k8s.io";
    let allowed = named
        && wanted.groups.iter().all(|g| may("", "groups", "", "", g))
        && (wanted.uid.is_empty() || may(authentication, "uids", "", "", &wanted.uid))
        && wanted
            .extra
            .iter()
            .all(|(key, values)| values.iter().all(|v| may(authentication, "userextras", key, "", v)));
    if allowed {
        return Ok(());
    }
    let place = if route.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", route.namespace)
    };
    let why = format!(
        "User {:?} cannot impersonate-on:user-info:{} resource {:?} in API group {:?} {place}",
        user.name, route.verb, route.resource, route.group
    );
    let about = About { group: &route.group, kind: &route.resource, name: &route.name };
    Err(Status::forbidden(about, &why))
}
