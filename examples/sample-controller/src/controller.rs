//! From a Foo to its Deployment.

use kubewright::{client::ClientError, prelude::*};

use crate::{
    Foo, FooStatus,
    deployment::{available, desired},
};

/// Keeps one Deployment per Foo.
pub async fn reconcile(cx: Context<Foo>) -> Result<Action> {
    let Some(foo) = cx.object()?.filter(|foo| foo.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done()); // gone, or going: its Deployment follows by ownership
    };
    let name = &foo.spec.deployment_name;
    if name.is_empty() {
        // No retry gives it a name; the next change of the Foo may.
        return Err(Error::terminal("deployment name must be specified"));
    }

    let written = cx
        .create_or_update(name, |deployment| desired(&foo, deployment))
        .controlled_by(&*foo)
        .without_adopting()
        .await;
    let deployment = match written {
        Err(ClientError::Owner(_)) => return Err(in_the_way(&cx, name)),
        written => written?,
    };

    cx.status(|status: &mut FooStatus| status.available_replicas = available(&deployment)).await?;
    cx.event("Synced", "Foo synced successfully");
    Ok(Action::done())
}

/// Somebody else's Deployment has the name: say so where a user looks, and try again later.
fn in_the_way(cx: &Context<Foo>, name: &str) -> Error {
    let message = format!("Resource {name:?} already exists and is not managed by Foo");
    cx.warning("ErrResourceExists", &message);
    Error::message(message)
}
