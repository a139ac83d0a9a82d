//! Whatever is done to the definitions of a group, and in whatever order: what is served is what they say.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PLURALS: [&str; 3] = ["widgets", "gadgets", "gizmos"];

/// What can happen to a definition.
#[derive(Debug, Clone)]
enum Step {
    /// It is created with this kind, and served or not.
    Create { plural: usize, kind: usize, served: bool },
    /// Its version is served or not from now on.
    Serve { plural: usize, served: bool },
    /// It gets another short name, which somebody else may have.
    Rename { plural: usize, short: usize },
    /// An object of it is created, held by a finalizer or not.
    Object { plural: usize, held: bool },
    /// The finalizer is taken off its object.
    Release { plural: usize },
    /// It is deleted.
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
    /// Refusals are as good as any other answer here: the state must make sense after both.
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

    /// What is served and accepted is what the stored definitions say.
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
            // The other way round does not hold: names that are taken back leave the condition as it was, as upstream.
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
    fn what_is_served_is_what_the_definitions_say(steps in prop::collection::vec(step(), 1..24)) {
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
