//! The smallest operator: every Greeting has a ConfigMap with its text.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{manager::ManagerBuilder, prelude::*};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spec of a Greeting.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.dev", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    name: String,
}

async fn reconcile(cx: Context<Greeting>) -> Result<Action> {
    let Some(greeting) = cx.object()? else { return Ok(Action::done()) }; // deleted, and so is its ConfigMap
    let text = format!("Hello, {}!", greeting.spec.name);
    cx.create_or_update(cx.key().name(), |map: &mut ConfigMap| {
        map.data.get_or_insert_default().insert("text".to_owned(), text.clone());
    })
    .controlled_by(&*greeting) // refuses a ConfigMap of another controller
    .await?;
    Ok(Action::done())
}

fn operator() -> ManagerBuilder {
    let greetings = Controller::of::<Greeting>().owns::<ConfigMap>().reconcile(reconcile);
    Manager::builder("greeter").controller(greetings)
}

#[tokio::main]
async fn main() -> Result<()> {
    operator().run().await
}

#[cfg(test)]
mod tests;
