//! The annotations by which a deployment and its sets remember revisions and sizes.

use crate::objects::annotation;
use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

/// Which template of the deployment this is, counted from one.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Which it was before a rollback made it the newest again.
pub(super) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many replicas the deployment had when the set was last sized.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many it might have had, surge included.
pub(super) const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";

/// What a set does not inherit.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];

/// The history is kept to about a hundred entries.
const HISTORY_LENGTH: usize = 2000;

/// The revision of a set: none counts as zero, nonsense as unknown.
pub(super) fn revision(meta: &ObjectMeta) -> Option<i64> {
    annotation(meta, REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// A number of replicas that an annotation remembers.
pub(super) fn replicas(meta: &ObjectMeta, key: &str) -> Option<i32> {
    annotation(meta, key)?.parse().ok().filter(|number| *number >= 0)
}

/// Sets an annotation; whether that changed anything.
pub(super) fn set(meta: &mut ObjectMeta, key: &str, value: &str) -> bool {
    if annotation(meta, key) == Some(value) {
        return false;
    }
    meta.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    true
}

/// Notes sizes on a set; whether that changed anything.
pub(super) fn size(set_: &mut ReplicaSet, desired: i32, maximum: i32) -> bool {
    let desired = set(&mut set_.metadata, DESIRED, &desired.to_string());
    set(&mut set_.metadata, MAXIMUM, &maximum.to_string()) || desired
}

/// Makes `newest` carry the annotations of the deployment and at least this revision.
pub(super) fn inherit(deployment: &Deployment, newest: &mut ReplicaSet, wanted: i64) {
    let inherited = deployment.metadata.annotations.iter().flatten();
    for (key, value) in inherited.filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())) {
        set(&mut newest.metadata, key, value);
    }
    let before = annotation(&newest.metadata, REVISION).map(str::to_owned);
    // A revision that is no number was written by somebody else; it is left alone.
    let Some(number) = before.as_deref().map_or(Some(0), |text| text.parse::<i64>().ok()) else { return };
    if number >= wanted {
        return;
    }
    set(&mut newest.metadata, REVISION, &wanted.to_string());
    if let Some(before) = before {
        remember(&mut newest.metadata, &before);
    }
}

/// Adds a revision to the history, and drops the oldest when it grows too long.
fn remember(meta: &mut ObjectMeta, revision: &str) {
    let known = annotation(meta, HISTORY).unwrap_or_default().to_owned();
    let mut entries: Vec<&str> = known.split(',').filter(|entry| !entry.is_empty()).collect();
    entries.push(revision);
    while entries.len() > 1 && entries.iter().map(|entry| entry.len() + 1).sum::<usize>() - 1 > HISTORY_LENGTH
    {
        entries.remove(0);
    }
    let history = entries.join(",");
    set(meta, HISTORY, &history);
}

#[cfg(test)]
mod tests {
    use super::{super::super::testing::replica_set, *};

    #[test]
    fn a_revision_only_grows_and_its_past_is_remembered() {
        let deployment = Deployment::default();
        let mut set = replica_set("rs", 1);
        inherit(&deployment, &mut set, 1);
        assert_eq!((revision(&set.metadata), annotation(&set.metadata, HISTORY)), (Some(1), None));
        inherit(&deployment, &mut set, 3);
        assert_eq!((revision(&set.metadata), annotation(&set.metadata, HISTORY)), (Some(3), Some("1")));
        inherit(&deployment, &mut set, 2);
        assert_eq!(revision(&set.metadata), Some(3), "old sets may have gone meanwhile");
        inherit(&deployment, &mut set, 5);
        assert_eq!(annotation(&set.metadata, HISTORY), Some("1,3"));
    }

    #[test]
    fn the_history_does_not_grow_for_ever() {
        let mut set = replica_set("rs", 1);
        for revision in 1..2000 {
            remember(&mut set.metadata, &revision.to_string());
        }
        let history = annotation(&set.metadata, HISTORY).unwrap();
        assert!(history.len() <= HISTORY_LENGTH && history.ends_with(",1999"), "{history}");
    }

    #[test]
    fn what_belongs_to_the_deployment_alone_is_not_inherited() {
        let mut deployment = Deployment::default();
        let own = deployment.metadata.annotations.get_or_insert_default();
        own.insert("team".into(), "blue".into());
        own.insert(REVISION.into(), "7".into());
        own.insert("kubectl.kubernetes.io/last-applied-configuration".into(), "{}".into());
        let mut set = replica_set("rs", 1);
        inherit(&deployment, &mut set, 1);
        let expected = [("team".to_owned(), "blue".to_owned()), (REVISION.to_owned(), "1".to_owned())];
        assert_eq!(set.metadata.annotations, Some(expected.into()));
    }
}
