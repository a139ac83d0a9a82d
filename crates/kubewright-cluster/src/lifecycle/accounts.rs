//! The `default` `ServiceAccount` of every namespace.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kubewright::{
    ObjectKey,
    cache::Lazy,
    controller::{Action, Context, Controller, Watch},
};

use crate::writes::ignore_already_exists;

/// The account that pods get which name none.
const NAME: &str = "default";

/// The controller that keeps the account in every namespace.
pub fn controller() -> Controller {
    Controller::of::<Namespace>()
        .named("serviceaccount")
        .watches(Watch::mapped(|account: &Lazy<ServiceAccount>| {
            account.namespace().filter(|_| account.name() == NAME).map(ObjectKey::cluster)
        }))
        .reconcile(async |cx: Context<Namespace>| {
            if cx.handle().is_none_or(Lazy::is_deleting) {
                return Ok(Action::done());
            }
            let key = ObjectKey::namespaced(cx.key().name(), NAME);
            if cx.get::<ServiceAccount>(&key).await?.is_none() {
                let mut account = ServiceAccount::default();
                account.metadata.name = Some(NAME.to_owned());
                account.metadata.namespace = Some(cx.key().name().to_owned());
                ignore_already_exists(cx.client().create(&account).await)?;
            }
            Ok(Action::done())
        })
}
