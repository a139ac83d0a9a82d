//! The ingress manager with a controller.

use kubewright::{
    k8s_openapi::api::{core::v1::Service, networking::v1::Ingress},
    prelude::*,
};

use crate::{host, is_ours, rules};

/// Keeps an Ingress for every annotated Service.
pub fn controller() -> Controller {
    Controller::of::<Service>().owns::<Ingress>().workers(5).reconcile(reconcile)
}

async fn reconcile(cx: Context<Service>) -> Result<Action> {
    if let Some(service) = cx.object()?.filter(|service| host(service).is_some()) {
        cx.create_or_update(cx.key().name(), |ingress: &mut Ingress| ingress.spec = rules(&service))
            .controlled_by(&*service)
            .await?;
    } else if let Some(ingress) = cx.get::<Ingress>(cx.key()).await?.filter(|ingress| is_ours(ingress)) {
        cx.delete(&*ingress).await?;
    }
    Ok(Action::done())
}
