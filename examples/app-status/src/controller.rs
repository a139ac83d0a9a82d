//! From what is asked for to what is watched.

use std::{sync::Arc, time::Duration};

use indexmap::IndexMap;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{
    client::{Clients, MapperError, ResourceInfo},
    prelude::*,
};

use crate::Board;

/// The label of a ConfigMap that asks for kinds; its value is `true`.
pub const LABEL: &str = "app-status.kubewright.dev/watch";
/// Where such a ConfigMap lists them: words as `kubectl get` takes them, with spaces, commas or line breaks in between.
pub const KINDS: &str = "kinds";
/// How long until a kind that was not served is looked for again. A definition that changes is noticed at once; what is
/// served by other API servers is not.
const AGAIN: Duration = Duration::from_secs(5);
/// How long until the rest is looked at again. A server may announce a kind for a moment longer than its definition lasts,
/// and nothing tells when it stops.
const NOW_AND_THEN: Duration = Duration::from_mins(1);

/// The one key of this controller.
pub(crate) fn everything() -> ObjectKey {
    ObjectKey::cluster("everything")
}

/// Brings the board to what is asked for.
pub async fn reconcile(board: Board, cx: Context<ConfigMap>) -> Result<Action> {
    let client = cx.client().client().clone();
    // What was discovered before may be gone by now: every look asks anew.
    let clients = Clients::new(client.clone());
    let mut served: IndexMap<String, Arc<ResourceInfo>> = IndexMap::new();
    let mut missing = IndexMap::new();
    for word in asked_for(&board, &cx).await? {
        match clients.mapper().find(&word).await {
            Ok(info) if info.supports("list") && info.supports("watch") => {
                served.insert(format!("{}.{}", info.plural, info.group), info);
            }
            Ok(info) => {
                missing.insert(word, format!("{} cannot be watched", info.plural));
            }
            Err(error @ (MapperError::NoMatch { .. } | MapperError::Ambiguous { .. })) => {
                missing.insert(word, error.to_string());
            }
            // A server that cannot tell has not said no: what is watched stays.
            Err(error) => return Err(error.into()),
        }
    }
    let again = if missing.is_empty() { NOW_AND_THEN } else { AGAIN };
    board.watch(&client, served, missing);
    Ok(Action::requeue_after(again))
}

/// The words of the command line, then those of the ConfigMaps by their names.
async fn asked_for(board: &Board, cx: &Context<ConfigMap>) -> Result<Vec<String>> {
    let mut maps = cx.list::<ConfigMap>().label(LABEL, "true").await?;
    maps.sort_by(|one, other| one.key().cmp(other.key()));
    let mut words = board.words().to_vec();
    for map in maps {
        let map = map.load()?;
        let kinds =
            map.data.as_ref().and_then(|data| data.get(KINDS)).map(String::as_str).unwrap_or_default();
        words.extend(kinds.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty()).map(str::to_owned));
    }
    Ok(words)
}
