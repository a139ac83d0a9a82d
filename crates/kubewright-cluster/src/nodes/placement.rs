//! Whether a pod may be on a node: node selectors, node affinity, taints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether a toleration is about this taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let says = |word: &Option<String>| word.as_deref().filter(|word| !word.is_empty()).map(str::to_owned);
    let effect = says(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let key = says(&toleration.key);
    let value = taint.value.as_deref().unwrap_or_default();
    let matches = match toleration.operator.as_deref() {
        Some("Exists") => key.is_none_or(|key| key == taint.key),
        None | Some("" | "Equal") => {
            key.is_some_and(|key| key == taint.key)
                && toleration.value.as_deref().unwrap_or_default() == value
        }
        Some("Lt") => {
            compare(toleration, value, |known, bound| known < bound) && key.as_ref() == Some(&taint.key)
        }
        Some("Gt") => {
            compare(toleration, value, |known, bound| known > bound) && key.as_ref() == Some(&taint.key)
        }
        Some(_) => false,
    };
    effect && matches
}

fn compare(toleration: &Toleration, value: &str, holds: fn(i64, i64) -> bool) -> bool {
    let bound = toleration.value.as_deref().and_then(|bound| bound.parse().ok());
    value.parse().ok().zip(bound).is_some_and(|(known, bound)| holds(known, bound))
}

/// The first taint of one of these effects that is not tolerated.
pub(crate) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    let relevant = |taint: &&Taint| effects.contains(&taint.effect.as_str());
    taints
        .iter()
        .filter(relevant)
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// The taints of a node.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// Whether the node selector and the required node affinity of a pod allow a node.
pub(crate) fn is_selected(pod: &PodSpec, node: &Node) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let chosen = pod.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let required = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    chosen
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| holds(term, labels, node)))
}

/// A term without expressions and fields matches nothing.
fn holds(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_deref()).flatten();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|wanted| requires(wanted, labels.get(&wanted.key).map(String::as_str)))
        && fields.iter().all(|wanted| requires(wanted, field(&wanted.key)))
}

fn requires(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = || value.is_some_and(|value| wanted.values.iter().flatten().any(|known| known == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = || number(wanted.values.as_ref().and_then(|values| values.first()).map(String::as_str));
    match wanted.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound()).is_some_and(|(value, bound)| value > bound),
        "Lt" => number(value).zip(bound()).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.into(), value: Some(value.into()), effect: effect.into(), time_added: None }
    }

    fn toleration(json: serde_json::Value) -> Toleration {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let gpu = taint("gpu", "a100", "NoSchedule");
        for (json, expected) in [
            (json!({"key": "gpu", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (json!({"key": "gpu", "value": "a100"}), true),
            (json!({"key": "gpu", "operator": "Equal", "value": "h100"}), false),
            (json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "disk", "operator": "Exists"}), false),
            (json!({"operator": "Equal", "value": "a100"}), false),
        ] {
            assert_eq!(tolerates(&toleration(json.clone()), &gpu), expected, "{json}");
        }
        let size = taint("size", "5", "NoSchedule");
        assert!(tolerates(&toleration(json!({"key": "size", "operator": "Gt", "value": "4"})), &size));
        assert!(!tolerates(&toleration(json!({"key": "size", "operator": "Lt", "value": "4"})), &size));
        let taints = [taint("soft", "", "PreferNoSchedule"), gpu];
        assert_eq!(untolerated(&taints, &[], &["NoSchedule", "NoExecute"]).unwrap().key, "gpu");
        assert!(untolerated(&taints, &[], &["NoExecute"]).is_none());
    }

    #[test]
    fn affinity_terms_are_alternatives_of_requirements() {
        let node: Node = serde_json::from_value(
            json!({"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}}),
        )
        .unwrap();
        let allows = |terms: serde_json::Value| {
            let pod: PodSpec = serde_json::from_value(json!({"containers": [], "affinity": {"nodeAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}))
            .unwrap();
            is_selected(&pod, &node)
        };
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(allows(json!([expression("zone", "In", &["b"]), expression("cores", "Gt", &["4"])])));
        assert!(!allows(json!([expression("zone", "NotIn", &["a"])])));
        assert!(!allows(json!([expression("cores", "Lt", &["8"])])));
        assert!(allows(
            json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}])
        ));
        assert!(!allows(json!([{}])), "an empty term matches nothing");
        assert!(!allows(json!([])));
        let selector: PodSpec =
            serde_json::from_value(json!({"containers": [], "nodeSelector": {"zone": "b"}})).unwrap();
        assert!(!is_selected(&selector, &node));
    }
}
