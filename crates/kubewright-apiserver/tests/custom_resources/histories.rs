//! Property tests: after any sequence of CRD changes, served resources match the CRDs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PLURALS: [&str; 3] = ["widgets", "gadgets", "gizmos"];

/// Change of a CRD.
#[derive(Debug, Clone)]
enum Step {
    /// Creates it with this kind, served or not.
    Create { plural: usize, kind: usize, served: bool },
    /// Changes whether its version is served.
    Serve { plural: usize, served: bool },
    /// Changes its short name, possibly to one in use.
    Rename { plural: usize, short: usize },
    /// Creates an object, with a finalizer or not.
    Object { plural: usize, held: bool },
    /// Removes the finalizer of its object.
    Release { plural: usize },
    /// Deletes it.
    Delete { plural: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let plural = 0..PLURALS.len();
    prop_oneof![
        3 => (plural.clone(), 0..3usize, any::<bool>())
            .prop_map(|(plural, kind, served)| Step::Create { plural, kind, served }),
        2 => (plural.clone(), any::<bool>()).prop_map(|(plural, served)| Step::Serve { plural, served }),
        1 => (plural.clone(), 0..2usize).prop_map(|(plural, short)| Step::Rename { plural, short }),
        2 => (plural.clone(), any::<bool>()).prop_map(|(plural, held)| Step::Object { plural, held }),
        1 => plural.clone().prop_map(|plural| Step::Release { plural }),
        2 => plural.prop_map(|plural| Step::Delete { plural }),
    ]
}

fn versions(served: bool) -> Value {
    let mut version = version("v1", json!({"a": {"type": "string"}}));
    version["served"] = served.into();
    json!([version])
}

impl World {
    /// Takes a step. Rejections are fine: the state must be consistent after either.
    async fn take(&self, step: &Step) {
        let definition = |plural: usize| format!("{DEFINITIONS}/{}.example.com", PLURALS[plural]);
        let objects = |plural: usize| format!("/apis/example.com/v1/namespaces/default/{}", PLURALS[plural]);
        let _ = match *step {
            Step::Create { plural, kind, served } => {
                let mut crd = widgets([]);
                crd["metadata"]["name"] = format!("{}.example.com", PLURALS[plural]).into();
                crd["spec"]["names"] = json!({"plural": PLURALS[plural], "kind": format!("Kind{kind}")});
                crd["spec"]["versions"] = versions(served);
                self.post(DEFINITIONS, &crd).await
            }
            Step::Serve { plural, served } => {
                self.merge(&definition(plural), &json!({"spec": {"versions": versions(served)}})).await
            }
            Step::Rename { plural, short } => {
                let names = json!({"spec": {"names": {"shortNames": [format!("s{short}")]}}});
                self.merge(&definition(plural), &names).await
            }
            Step::Object { plural, held } => {
                if self.code(&objects(plural)).await == 404 {
                    return;
                }
                let kind = self.get(&objects(plural)).await.unwrap()["kind"].clone();
                let kind = kind.as_str().unwrap().trim_end_matches("List").to_owned();
                let finalizers = if held { json!(["example.com/hold"]) } else { json!([]) };
                let object = json!({"apiVersion": "example.com/v1", "kind": kind,
                                    "metadata": {"name": "one", "finalizers": finalizers}});
                self.post(&objects(plural), &object).await
            }
            Step::Release { plural } => {
                let path = format!("{}/one", objects(plural));
                if self.code(&path).await == 404 {
                    return;
                }
                self.merge(&path, &json!({"metadata": {"finalizers": null}})).await
            }
            Step::Delete { plural } => self.delete(&definition(plural)).await,
        };
    }

    /// Checks that served and accepted names match the stored CRDs.
    async fn check(&self) {
        let crds = self.get(DEFINITIONS).await.unwrap()["items"].as_array().unwrap().clone();
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for crd in &crds {
            let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
            let accepted = &crd["status"]["acceptedNames"];
            let short = accepted["shortNames"].as_array().into_iter().flatten();
            let names = ["singular", "kind", "listKind"].map(|name| &accepted[name]).into_iter().chain(short);
            for name in names.filter_map(Value::as_str).filter(|name| !name.is_empty()) {
                assert_eq!(*owners.entry(name.to_owned()).or_insert(plural), plural, "{name} is taken twice");
            }
            // The converse does not hold: names that are released leave the condition unchanged, as upstream.
            let all = condition(crd, "NamesAccepted")["status"] == "True";
            assert!(!all || accepted == &crd["spec"]["names"], "{crd:#}");
        }
        for plural in PLURALS {
            let crd = crds.iter().find(|crd| crd["spec"]["names"]["plural"] == plural);
            let served = crd.is_some_and(|crd| {
                condition(crd, "Established")["status"] == "True"
                    && crd["spec"]["versions"][0]["served"] == true
            });
            let path = format!("/apis/example.com/v1/{plural}");
            assert_eq!(self.code(&path).await == 200, served, "{plural}");
            if let Some(crd) = crd.filter(|crd| crd["metadata"]["deletionTimestamp"].is_string()) {
                assert!(condition(crd, "Terminating")["reason"] == "InstanceDeletionInProgress", "{crd:#}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn served_resources_match_the_definitions(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            for step in &steps {
                world.take(step).await;
                world.check().await;
            }
        });
    }
}
