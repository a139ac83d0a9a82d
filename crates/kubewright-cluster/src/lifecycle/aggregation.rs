//! Aggregated `ClusterRole`s: the rules of all roles that carry certain labels.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use kube::api::Patch;
use kubewright::{
    cache::{Event, FieldIndex, Lazy},
    controller::{Action, Context, Controller, HandlerContext, Watch},
};
use serde_json::json;

use crate::objects::selects;

/// Whether a role's rules are the sum of others'.
pub fn is_aggregate(role: &ClusterRole) -> bool {
    role.aggregation_rule.is_some()
}

/// The rules that an aggregate should have; `None` when it has them, or is no aggregate.
pub fn plan<'a>(
    role: &ClusterRole,
    roles: impl IntoIterator<Item = &'a ClusterRole>,
) -> Option<Vec<PolicyRule>> {
    let selectors = role.aggregation_rule.as_ref()?.cluster_role_selectors.as_deref().unwrap_or_default();
    let mut sources: Vec<&ClusterRole> = roles
        .into_iter()
        .filter(|source| source.metadata.name != role.metadata.name)
        .filter(|source| selectors.iter().any(|s| selects(Some(s), source.metadata.labels.as_ref())))
        .collect();
    sources.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut rules: Vec<PolicyRule> = Vec::new();
    for rule in sources.iter().filter_map(|source| source.rules.as_ref()).flatten() {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    (role.rules.as_deref().unwrap_or_default() != rules).then_some(rules)
}

/// The roles that are aggregates, under one value.
static AGGREGATES: FieldIndex<ClusterRole> = FieldIndex::new("aggregationRule", |role, values| {
    values.extend(is_aggregate(&*role.load()?).then_some(AGGREGATE));
    Ok(())
});
const AGGREGATE: &str = "true";

/// The controller that keeps aggregates up to date.
pub fn controller() -> Controller {
    let aggregates = |_: &Event<ClusterRole>, cx: &HandlerContext| {
        let aggregates = cx.cache::<ClusterRole>().by_index(&AGGREGATES, AGGREGATE).unwrap_or_default();
        cx.add_all(aggregates.iter().map(|role| role.key().clone()));
    };
    Controller::of::<ClusterRole>()
        .named("clusterrole-aggregation")
        .index(&AGGREGATES)
        // In the beginning every aggregate is reconciled anyway.
        .watches(Watch::handled(aggregates).when(|event: &Event<ClusterRole>| {
            !matches!(event, Event::Added { is_in_initial_list: true, .. })
        }))
        .reconcile(async |cx: Context<ClusterRole>| {
            let Some(role) = cx.object()?.filter(|role| is_aggregate(role)) else {
                return Ok(Action::done());
            };
            let handles = cx.list::<ClusterRole>().await?;
            let roles = handles.iter().map(Lazy::load).collect::<Result<Vec<_>, _>>()?;
            if let Some(rules) = plan(&role, roles.iter().map(AsRef::as_ref)) {
                let patch =
                    json!({"metadata": {"resourceVersion": role.metadata.resource_version}, "rules": rules});
                cx.own_kind().patch(cx.key(), &Patch::Merge(patch)).await?;
            }
            Ok(Action::done())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(name: &str, label: &str, resource: &str) -> ClusterRole {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {label: "true"}},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}],
        }))
        .unwrap()
    }

    #[test]
    fn rules_are_collected_by_label_in_the_order_of_names_without_repetition() {
        let mut sum: ClusterRole = serde_json::from_value(json!({
            "metadata": {"name": "view", "labels": {"to-view": "true"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]},
        }))
        .unwrap();
        let roles = [
            role("b", "to-view", "pods"),
            role("a", "to-view", "secrets"),
            role("c", "to-view", "pods"),
            role("d", "to-edit", "nodes"),
            sum.clone(),
        ];
        let rules = plan(&sum, &roles).unwrap();
        let resources: Vec<&str> = rules.iter().map(|r| r.resources.as_ref().unwrap()[0].as_str()).collect();
        assert_eq!(resources, ["secrets", "pods"]);
        sum.rules = Some(rules);
        assert_eq!(plan(&sum, &roles), None);
        assert_eq!(plan(&roles[0], &roles), None, "a plain role keeps its own rules");
    }
}
