//! Reconciles the watched kinds with the requested ones.

use std::{sync::Arc, time::Duration};

use indexmap::IndexMap;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{
    client::{Clients, MapperError, ResourceInfo},
    prelude::*,
};

use crate::Board;

/// Label of ConfigMaps that request kinds; its value is `true`.
pub const LABEL: &str = "app-status.kubewright.dev/watch";
/// Key of the list of kinds in such a ConfigMap: names as for `kubectl get`, separated by spaces, commas or
/// line breaks.
pub const KINDS: &str = "kinds";
/// Requeue interval while a kind is not served. Changes of definitions trigger a reconcile, those of
/// aggregated API servers do not.
const MISSING_INTERVAL: Duration = Duration::from_secs(5);
/// Requeue interval otherwise. A server may announce a kind a moment longer than its definition exists,
/// without an event for the end.
const RECHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The only key of this controller.
pub(crate) fn board_key() -> ObjectKey {
    ObjectKey::cluster("everything")
}

/// Brings the board into the requested state.
pub async fn reconcile(board: Board, cx: Context<ConfigMap>) -> Result<Action> {
    let client = cx.client().client().clone();
    // Discovery is refreshed each time, because kinds may be gone.
    let clients = Clients::new(client.clone());
    let mut served: IndexMap<String, Arc<ResourceInfo>> = IndexMap::new();
    let mut missing = IndexMap::new();
    for word in requested_kinds(&board, &cx).await? {
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
            // A discovery error is no answer: watched kinds are kept.
            Err(error) => return Err(error.into()),
        }
    }
    let again = if missing.is_empty() { RECHECK_INTERVAL } else { MISSING_INTERVAL };
    board.watch(&client, served, missing);
    Ok(Action::requeue_after(again))
}

/// The kinds of the command line, then those of the ConfigMaps by name.
async fn requested_kinds(board: &Board, cx: &Context<ConfigMap>) -> Result<Vec<String>> {
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
