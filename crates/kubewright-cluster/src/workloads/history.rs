//! Templates that stateful and daemon sets remember, as `ControllerRevision`s.

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        runtime::RawExtension,
    },
};
use serde_json::{Value, json};

use super::{
    claim::{self, Claim},
    hash,
    step::Step,
};
use crate::objects;

/// The label that carries the hash of a stateful set's revision.
pub(crate) const STATEFUL_HASH: &str = "controller.kubernetes.io/hash";
/// The same for the revision of a daemon set, and for the pods of both.
pub(crate) const POD_HASH: &str = "controller-revision-hash";

/// What a set remembers of its template: a patch that restores it.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    let mut template = hash::value_of(template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The template that a revision remembers.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    // From text, as the rest of the program reads Pods: one deserialiser of a type is enough.
    serde_json::from_str(&template.to_string()).ok()
}

/// The revisions of an owner, lowest first, and the adoption of those that are nobody's.
pub(crate) fn claim_revisions<K: k8s_openapi::Resource>(
    owner: &ObjectMeta,
    selector: &LabelSelector,
    all: &[ControllerRevision],
) -> (Vec<ControllerRevision>, Vec<Step>) {
    let reference = objects::controller_reference::<K>(owner);
    let (mut owned, mut steps) = (Vec::new(), Vec::new());
    for revision in all {
        match claim::claim(owner, selector, &revision.metadata) {
            Claim::Keep => owned.push(revision.clone()),
            Claim::Adopt => {
                let patch = claim::adoption(&revision.metadata, &reference, None);
                steps.push(Step::Patch(revision.clone().into(), patch));
                let mut adopted = revision.clone();
                adopted.metadata.owner_references.get_or_insert_default().push(reference.clone());
                adopted.metadata.resource_version = None;
                owned.push(adopted);
            }
            Claim::Release | Claim::Ignore => {}
        }
    }
    owned.sort_by(|a, b| order(a).cmp(&order(b)));
    (owned, steps)
}

fn order(revision: &ControllerRevision) -> (i64, Option<jiff::Timestamp>, Option<&str>) {
    let created = revision.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (number(revision), created, revision.metadata.name.as_deref())
}

/// The number of a revision.
pub(crate) fn number(revision: &ControllerRevision) -> i64 {
    revision.revision.unwrap_or(0)
}

/// A revision of a template, numbered after those that are known.
///
/// A name that another revision has already is a collision: the count goes up until the name is free.
pub(crate) fn new<K: k8s_openapi::Resource>(
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
    known: &[ControllerRevision],
    label: &str,
    collisions: &mut i32,
) -> ControllerRevision {
    let data = data(template);
    let name = |hash: &str| hash::name(owner.name.as_deref().unwrap_or_default(), hash);
    let taken = |hash: &str| {
        known.iter().any(|other| other.metadata.name.as_deref() == Some(&*name(hash)) && other.data.0 != data)
    };
    // A stateful set hashes what it remembers, a daemon set its template, and that without a count until there is one.
    let short = |collisions: i32| match label {
        STATEFUL_HASH => hash::of_revision(&data, collisions),
        _ => hash::of_template(template, (collisions > 0).then_some(collisions)),
    };
    let mut hash = short(*collisions);
    while taken(&hash) {
        *collisions += 1;
        hash = short(*collisions);
    }
    let mut labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(label.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name(&hash)),
            namespace: owner.namespace.clone(),
            labels: Some(labels),
            annotations: owner.annotations.clone().filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![objects::controller_reference::<K>(owner)]),
            ..ObjectMeta::default()
        },
        data: RawExtension(data),
        revision: Some(known.iter().map(number).max().unwrap_or(0) + 1),
    }
}

/// The revision of the present template among `known`: the newest as it is, an older one renumbered, or a new one; and
/// the write that this takes.
pub(crate) fn current<K: k8s_openapi::Resource>(
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
    known: &[ControllerRevision],
    label: &str,
    collisions: &mut i32,
) -> (ControllerRevision, Option<Step>) {
    let data = data(template);
    let newest = known.iter().map(number).max().unwrap_or(0);
    match known.iter().rev().find(|revision| revision.data.0 == data) {
        Some(found) if number(found) == newest => (found.clone(), None),
        Some(found) => {
            let mut again = found.clone();
            again.revision = Some(newest + 1);
            let step = Step::Update(again.clone().into());
            (again, Some(step))
        }
        None => {
            let made = new::<K>(owner, template, known, label, collisions);
            let step = Step::Create(made.clone().into());
            (made, Some(step))
        }
    }
}

/// The revisions beyond the limit that nothing uses, lowest first, as deletions.
pub(crate) fn surplus(
    known: &[ControllerRevision],
    limit: i32,
    in_use: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Step> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let idle: Vec<&ControllerRevision> = known.iter().filter(|revision| !in_use(revision)).collect();
    let beyond = idle.len().saturating_sub(limit);
    idle.into_iter().take(beyond).map(|revision| Step::Delete(revision.clone().into())).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;

    use super::{
        super::testing::{meta, template as example},
        *,
    };

    fn image(image: &str) -> PodTemplateSpec {
        let mut template = example();
        template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
        template
    }

    #[test]
    fn a_template_survives_being_remembered() {
        let (revision, step) = current::<StatefulSet>(&meta("db"), &image("a"), &[], STATEFUL_HASH, &mut 0);
        assert!(matches!(step, Some(Step::Create(_))));
        assert_eq!(template(&revision), Some(image("a")));
        assert_eq!(revision.data.0["spec"]["template"]["$patch"], "replace");
        assert_eq!(revision.revision, Some(1));
    }

    #[test]
    fn an_old_template_gets_a_new_number_and_no_second_revision() {
        let owner = meta("db");
        let (one, _) = current::<StatefulSet>(&owner, &image("a"), &[], STATEFUL_HASH, &mut 0);
        let (two, _) =
            current::<StatefulSet>(&owner, &image("b"), std::slice::from_ref(&one), STATEFUL_HASH, &mut 0);
        assert_eq!(two.revision, Some(2));
        let known = [one.clone(), two.clone()];
        assert_eq!(current::<StatefulSet>(&owner, &image("b"), &known, STATEFUL_HASH, &mut 0), (two, None));
        let (back, step) = current::<StatefulSet>(&owner, &image("a"), &known, STATEFUL_HASH, &mut 0);
        assert_eq!((back.revision, &back.metadata.name), (Some(3), &one.metadata.name));
        assert!(matches!(step, Some(Step::Update(_))));
    }

    #[test]
    fn a_taken_name_counts_as_a_collision() {
        let owner = meta("db");
        let (mut other, _) = current::<StatefulSet>(&owner, &image("a"), &[], STATEFUL_HASH, &mut 0);
        other.data.0["spec"]["template"]["x"] = 1.into();
        let mut collisions = 0;
        let (made, _) = current::<StatefulSet>(
            &owner,
            &image("a"),
            std::slice::from_ref(&other),
            STATEFUL_HASH,
            &mut collisions,
        );
        assert_eq!(collisions, 1);
        assert_ne!(made.metadata.name, other.metadata.name);
    }

    #[test]
    fn what_is_in_use_is_not_counted_as_history() {
        let owner = meta("db");
        let mut known = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let (made, _) = current::<StatefulSet>(&owner, &image(name), &known, STATEFUL_HASH, &mut 0);
            known.push(made);
        }
        let gone = surplus(&known, 1, |revision| number(revision) == 4 || number(revision) == 1);
        assert_eq!(gone, [Step::Delete(known[1].clone().into())]);
        assert!(surplus(&known, -1, |_| false).is_empty());
    }
}
