//! Two documents, separated by a zero byte: applies the second to the first as each of the four patch types.

use crate::{builtin, parts, report_outcome};
use kubewright_schema::{
    apply::FieldManager,
    body::{self, Format, Limits},
    patch,
};
use serde_json::json;

/// Runs the target.
pub fn run(input: &[u8]) {
    let limits = Limits::default();
    let [document, change] = parts::<2>(input);
    let (gvk, schema) = builtin("apps", "v1", "Deployment");
    let Ok(document) = body::decode(document, Format::Json, Some((&schema, "Deployment")), &limits) else {
        return;
    };
    let document = document.value;
    if let Ok(change) = patch::decode(change, &limits) {
        let change = change.value;
        for patched in [
            patch::json::apply(document.clone(), &change),
            patch::merge::apply(document.clone(), change.clone()),
            patch::strategic::apply(&schema, document.clone(), change),
        ]
        .into_iter()
        .flatten()
        {
            // The result of a patch is within the limits, or refused.
            match body::check(&patched, Some((&schema, "Deployment")), &limits) {
                Ok(_) => report_outcome("fits"),
                Err(why) => report_outcome(&why.to_string()),
            }
        }
    }
    if let Ok(config) = body::decode(change, Format::Yaml, Some((&schema, "Deployment")), &limits) {
        let mut config = config.value;
        if !config.is_object() {
            return;
        }
        config["apiVersion"] = "apps/v1".into();
        config["kind"] = "Deployment".into();
        let fields = FieldManager::new(&schema, &gvk, "2026-01-01T00:00:00Z");
        let live = fields.update(None, document, "before");
        if let Ok(applied) = fields.apply(Some(&live), &config, "fuzz", true) {
            let again = fields.apply(Some(&applied), &config, "fuzz", true).expect("it applied once");
            // An object without owned fields equals one that was never applied to.
            let owners = &applied["metadata"]["managedFields"];
            if !owners.is_null() {
                assert_eq!(again["metadata"]["managedFields"], *owners);
            }
        }
        let _ = fields.apply(Some(&json!({"metadata": config["metadata"]})), &config, "fuzz", false);
    }
}
