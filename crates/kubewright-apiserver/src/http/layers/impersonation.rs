//! Lets a user act as another one: `Impersonate-User`, `-Group`, `-Uid`, `-Extra-…`.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::Either;
use http::{HeaderMap, Request, Response};
use tower::{Layer, Service};

use super::{super::RequestInfo, ApiBody, Guarded, refuse, request_info, user};
use crate::{
    authn::{AUTHENTICATED, UNAUTHENTICATED, User, service_account},
    authz::{Access, Authorizer},
    status::{About, Status},
};

/// Layer of [`Impersonate`].
#[derive(Debug, Clone)]
pub(in crate::http) struct ImpersonationLayer {
    authorizer: Arc<Authorizer>,
}

impl ImpersonationLayer {
    pub(in crate::http) fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }
}

impl<S> Layer<S> for ImpersonationLayer {
    type Service = Impersonate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Impersonate { inner, authorizer: Arc::clone(&self.authorizer) }
    }
}

/// Replaces the [`User`] in the request's extensions by the one that the headers name, or answers 403.
#[derive(Debug, Clone)]
pub(in crate::http) struct Impersonate<S> {
    inner: S,
    authorizer: Arc<Authorizer>,
}

impl<S, B> Service<Request<B>> for Impersonate<S>
where
    S: Service<Request<B>, Response = Response<ApiBody>, Error = Infallible>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let impersonated = match requested(request.headers()) {
            Ok(None) => return Either::Right(self.inner.call(request)),
            Ok(Some(wanted)) => request_info(&request)
                .and_then(|info| check(&self.authorizer, user(&request)?, &wanted, info))
                .map(|()| complete(wanted)),
            Err(refusal) => Err(refusal),
        };
        match impersonated {
            Ok(user) => {
                request.extensions_mut().insert(user);
                Either::Right(self.inner.call(request))
            }
            Err(refusal) => refuse(request.headers(), &refusal),
        }
    }
}

/// Returns the user that the headers name; `None` without such headers.
fn requested(headers: &HeaderMap) -> Result<Option<User>, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(None);
    }
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
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted == User::default() {
        return Ok(None);
    }
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} \
         without impersonating a user name",
        wanted.uid,
        wanted.groups.iter().map(|g| format!("{g:?}")).collect::<Vec<_>>().join(", ")
    )))
}

/// Adds the groups that authentication would have added.
fn complete(mut user: User) -> User {
    let account = user.name.strip_prefix("system:serviceaccount:").and_then(|n| n.split_once(':'));
    if user.groups.is_empty()
        && let Some((namespace, _)) = account
    {
        user.groups = service_account::groups(namespace);
    }
    if user.name == "system:anonymous" {
        user.groups.push(UNAUTHENTICATED.into());
    } else if !user.is_in(AUTHENTICATED) && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}

/// Checks that the user may impersonate every part of the other identity.
fn check(authorizer: &Authorizer, user: &User, wanted: &User, info: &RequestInfo) -> Result<(), Status> {
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
        authorizer.decide(user, &access).allowed
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
    let place = if info.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", info.namespace)
    };
    let why = format!(
        "User {:?} cannot impersonate-on:user-info:{} resource {:?} in API group {:?} {place}",
        user.name, info.verb, info.resource, info.api_group
    );
    let about = About { group: &info.api_group, kind: &info.resource, name: &info.name };
    Err(Status::forbidden(about, &why))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tower::ServiceExt as _;

    use super::{super::testing::Inner, *};
    use crate::{ApiServer, authn::MASTERS};

    async fn impersonate(groups: &[&str], header: (&str, &str), expected: &'static str) -> u16 {
        let server = ApiServer::builder().in_process().unwrap();
        let layer = ImpersonationLayer::new(Arc::clone(&server.components().authorizer));
        let inner = Inner(move |request: Request<()>| assert_eq!(user(&request).unwrap().name, expected));
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let request = Request::get("/api")
            .extension(RequestInfo::parse(&Method::GET, &"/api".parse().unwrap()))
            .extension(User { name: "alice".into(), groups, ..User::default() })
            .header(header.0, header.1)
            .body(())
            .unwrap();
        layer.layer(inner).oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn an_allowed_user_acts_as_another_one() {
        assert_eq!(impersonate(&[MASTERS], ("accept", "*/*"), "alice").await, 200);
        assert_eq!(impersonate(&[MASTERS], ("impersonate-user", "bob"), "bob").await, 200);
        assert_eq!(impersonate(&[], ("impersonate-user", "bob"), "").await, 403);
        assert_eq!(impersonate(&[MASTERS], ("impersonate-group", "dev"), "").await, 400);
    }
}
