//! Secrets that hold the token of a `ServiceAccount`.
//!
//! Somebody creates a Secret of the type with the account's name in an annotation; the controller puts in a token that
//! does not run out, the certificate authority and the namespace. When the account goes, so does the Secret.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
        core::v1::{Secret, ServiceAccount},
    },
};
use kube::api::PostParams;
use kubewright::{
    Error, ObjectKey,
    cache::FieldIndex,
    controller::{Action, Context, Controller, Watch},
};

use crate::ControllerContext;

/// The type of such Secrets.
pub const TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation with the account's name.
pub const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// The annotation with the account's identity.
pub const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// What is to be done with a Secret of the type.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Its account is gone, or another has its name: the Secret goes.
    Delete,
    /// It lacks something: written like this, and with a token where `token` says so, it is complete.
    Fill {
        /// The Secret without a new token.
        secret: Box<Secret>,
        /// A token has to be made.
        token: bool,
    },
}

/// The account that a Secret is for.
pub fn account_of(secret: &Secret) -> Option<&str> {
    if secret.type_.as_deref() != Some(TYPE) {
        return None;
    }
    secret.metadata.annotations.as_ref()?.get(ACCOUNT_NAME).map(String::as_str)
}

/// Plans the next step for a Secret, given the account of its name.
pub fn plan(secret: &Secret, account: Option<&ServiceAccount>, certificate: &str) -> Step {
    if account_of(secret).is_none() || secret.metadata.deletion_timestamp.is_some() {
        return Step::Keep;
    }
    let annotations = secret.metadata.annotations.as_ref();
    let noted = annotations.and_then(|map| map.get(ACCOUNT_UID)).filter(|uid| !uid.is_empty());
    let uid = account.and_then(|account| account.metadata.uid.as_ref());
    let Some(uid) = uid.filter(|uid| noted.is_none_or(|noted| noted == *uid)) else { return Step::Delete };

    let mut filled = secret.clone();
    filled.metadata.annotations.get_or_insert_default().insert(ACCOUNT_UID.to_owned(), uid.clone());
    let data = filled.data.get_or_insert_default();
    let namespace = secret.metadata.namespace.clone().unwrap_or_default();
    put(data, "ca.crt", certificate.as_bytes());
    put(data, "namespace", namespace.as_bytes());
    let token = data.get("token").is_none_or(|token| token.0.is_empty());
    if !token && filled == *secret {
        return Step::Keep;
    }
    Step::Fill { secret: Box::new(filled), token }
}

/// The Secret with its token.
pub fn with_token(mut secret: Secret, token: &str) -> Secret {
    put(secret.data.get_or_insert_default(), "token", token.as_bytes());
    secret
}

fn put(data: &mut BTreeMap<String, ByteString>, key: &str, value: &[u8]) {
    data.insert(key.to_owned(), ByteString(value.to_vec()));
}

/// How long a token that does not run out lasts: the longest that can be asked for.
const FOR_EVER: i64 = 1 << 32;

/// Secrets by the keys of the accounts that they hold a token of.
static SECRETS_BY_ACCOUNT: FieldIndex<Secret> = FieldIndex::new("account", |secret, values| {
    let loaded = secret.load()?;
    values.extend(account_of(&loaded).map(|name| ObjectKey::new(secret.namespace(), name).to_string()));
    Ok(())
});

/// The controller that fills such Secrets.
pub fn controller(cluster: &ControllerContext) -> Controller {
    let certificate = Arc::clone(cluster.certificate());
    let accounts = Watch::<ServiceAccount>::by_index(&SECRETS_BY_ACCOUNT);
    Controller::of::<Secret>().named("serviceaccount-token").watches(accounts).reconcile(
        move |cx: Context<Secret>| {
            let certificate = Arc::clone(&certificate);
            async move {
                let Some(secret) = cx.object()? else { return Ok(Action::done()) };
                let Some(name) = account_of(&secret) else { return Ok(Action::done()) };
                // The cache may not have seen an account that was made just before; a Secret must not go by mistake.
                let account = match cx.get::<ServiceAccount>(&cx.neighbour(name)).await? {
                    Some(account) => Some(account),
                    None => cx.client().live().get::<ServiceAccount>(&cx.neighbour(name)).await?,
                };
                match plan(&secret, account.as_deref(), &certificate) {
                    Step::Keep => {}
                    Step::Delete => cx.delete(&*secret).await?,
                    Step::Fill { secret, token: false } => drop(cx.client().update(&*secret).await?),
                    Step::Fill { secret, token: true } => {
                        let token = issue(&cx, &secret, name).await?;
                        cx.client().update(&with_token(*secret, &token)).await?;
                    }
                }
                Ok(Action::done())
            }
        },
    )
}

/// A token for the account, good as long as the Secret exists.
async fn issue(cx: &Context<Secret>, secret: &Secret, account: &str) -> Result<String, Error> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Secret".to_owned()),
                name: secret.metadata.name.clone(),
                uid: secret.metadata.uid.clone(),
            }),
            expiration_seconds: Some(FOR_EVER),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let namespace = cx.key().namespace().unwrap_or_default();
    let accounts = kube::Api::<ServiceAccount>::namespaced(cx.client().client().clone(), namespace);
    let answer: TokenRequest =
        accounts.create_subresource("token", account, &PostParams::default(), &request).await?;
    let token = answer.status.and_then(|status| status.token);
    token.ok_or_else(|| {
        Error::message(format!("the server made no token for ServiceAccount {namespace}/{account}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret() -> Secret {
        serde_json::from_value(json!({
            "metadata": {"name": "tok", "namespace": "ns", "annotations": {ACCOUNT_NAME: "robot"}}, "type": TYPE,
        }))
        .unwrap()
    }

    fn account(uid: &str) -> ServiceAccount {
        serde_json::from_value(json!({"metadata": {"name": "robot", "namespace": "ns", "uid": uid}})).unwrap()
    }

    #[test]
    fn a_new_secret_gets_a_token_an_authority_and_its_namespace() {
        let Step::Fill { secret, token: true } = plan(&secret(), Some(&account("u")), "PEM") else {
            panic!("it is filled")
        };
        let full = with_token(*secret, "abc");
        let keys: Vec<&str> = full.data.as_ref().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["ca.crt", "namespace", "token"]);
        assert_eq!(full.metadata.annotations.as_ref().unwrap()[ACCOUNT_UID], "u");
        assert_eq!(plan(&full, Some(&account("u")), "PEM"), Step::Keep);
        assert!(matches!(plan(&full, Some(&account("u")), "NEW"), Step::Fill { token: false, .. }));
    }

    #[test]
    fn a_secret_goes_with_its_account_and_does_not_pass_to_a_successor() {
        assert_eq!(plan(&secret(), None, "PEM"), Step::Delete);
        let mut held = secret();
        held.metadata.annotations.as_mut().unwrap().insert(ACCOUNT_UID.into(), "u".into());
        assert_eq!(plan(&held, Some(&account("another")), "PEM"), Step::Delete);
    }

    #[test]
    fn other_secrets_are_nobodys_business() {
        let mut plain = secret();
        plain.type_ = Some("Opaque".into());
        assert_eq!(plan(&plain, None, "PEM"), Step::Keep);
    }
}
