//! Reconciler of Foos.

use kubewright::{client::ClientError, prelude::*};

use crate::{
    Foo, FooStatus,
    deployment::{available, desired},
};

/// Keeps one Deployment per Foo.
pub async fn reconcile(cx: Context<Foo>) -> Result<Action> {
    let Some(foo) = cx.object()?.filter(|foo| foo.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::done()); // deleted or being deleted: its Deployment is garbage-collected
    };
    let name = &foo.spec.deployment_name;
    if name.is_empty() {
        // A retry cannot help; the next change of the Foo may.
        return Err(Error::terminal("deployment name must be specified"));
    }

    let written = cx
        .create_or_update(name, |deployment| desired(&foo, deployment))
        .controlled_by(&*foo)
        .without_adopting()
        .await;
    let deployment = match written {
        Err(ClientError::Owner(_)) => return Err(name_conflict(&cx, name)),
        written => written?,
    };

    cx.status(|status: &mut FooStatus| status.available_replicas = available(&deployment)).await?;
    cx.event("Synced", "Foo synced successfully");
    Ok(Action::done())
}

/// Reports that another owner's Deployment has the name; the reconcile is retried.
fn name_conflict(cx: &Context<Foo>, name: &str) -> Error {
    let message = format!("Resource {name:?} already exists and is not managed by Foo");
    cx.warning("ErrResourceExists", &message);
    Error::message(message)
}
