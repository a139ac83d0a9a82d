//! Children of a CloudManager, found by their owner, and their clean-up.

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::Secret,
    },
};
use kubewright::{cache::Lazy, prelude::*};

use crate::{CloudManager, database::secret_name};

/// Deletes the children whose names are no longer in the spec.
pub async fn clean_up(cx: &Context<CloudManager>, manager: &CloudManager) -> Result<()> {
    let spec = &manager.spec;
    keep_only::<Deployment>(cx, &[&spec.front.deployment.name, &spec.identity.deployment.name]).await?;
    keep_only::<StatefulSet>(cx, &[&spec.db.stateful_set.name]).await?;
    keep_only::<Secret>(cx, &[&secret_name(manager)]).await
}

async fn keep_only<K>(cx: &Context<CloudManager>, names: &[&str]) -> Result<()>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let uid = cx.handle().map_or("", Lazy::uid);
    for child in cx.list::<K>().controller_uid(uid).await? {
        if child.is_deleting() || names.contains(&child.name()) {
            continue;
        }
        cx.delete(&*child.load()?).await?;
        cx.event("Deleted", format!("Deleted {} {:?}", lower_first(&K::kind(&())), child.name()));
    }
    Ok(())
}

/// `StatefulSet` as `statefulSet`.
fn lower_first(kind: &str) -> String {
    let mut letters = kind.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
