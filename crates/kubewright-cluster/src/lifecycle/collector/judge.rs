//! Whether an object should still be there, once the state of each of its owners is known.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::graph::{FOREGROUND, ORPHAN};

/// How it stands with an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is there.
    Present,
    /// It is there, being deleted, and waits for its dependents.
    Waiting,
    /// It is gone, or another object has its name.
    Gone,
}

/// What happens to the dependents of an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are examined after it is gone.
    Background,
    /// It waits for them.
    Foreground,
    /// They lose their reference to it.
    Orphan,
}

/// What is to be done with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// It stays, for its other owners, without its references to these.
    Release(Vec<String>),
    /// It is deleted.
    Delete {
        /// How.
        propagation: Propagation,
        /// One of its own dependents waits for dependents too, so that the two might wait for each other: first it must
        /// stop holding its owners back.
        unblock: bool,
    },
}

/// The dependents of the object in question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dependents {
    /// There are some.
    pub any: bool,
    /// One of them waits for dependents of its own.
    pub waiting: bool,
}

/// Judges an object that is not being deleted.
pub fn judge(owners: &[(OwnerReference, Owner)], finalizers: &[String], dependents: Dependents) -> Verdict {
    let of = |wanted: Owner| owners.iter().filter(move |(_, state)| *state == wanted).map(|(owner, _)| owner);
    let some = |wanted: Owner| of(wanted).next().is_some();
    if owners.is_empty() || !(some(Owner::Gone) || some(Owner::Waiting)) {
        return Verdict::Keep;
    }
    if some(Owner::Present) {
        let released = of(Owner::Gone).chain(of(Owner::Waiting));
        return Verdict::Release(released.map(|owner| owner.uid.clone()).collect());
    }
    if some(Owner::Waiting) && dependents.any {
        // Its owner waits for it, so it waits for its own.
        return Verdict::Delete { propagation: Propagation::Foreground, unblock: dependents.waiting };
    }
    let has = |finalizer: &str| finalizers.iter().any(|held| held == finalizer);
    let propagation = if has(ORPHAN) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    Verdict::Delete { propagation, unblock: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(states: &[(&str, Owner)]) -> Vec<(OwnerReference, Owner)> {
        let reference = |uid: &str| OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() };
        states.iter().map(|(uid, state)| (reference(uid), *state)).collect()
    }

    fn verdict(states: &[(&str, Owner)], dependents: Dependents) -> Verdict {
        judge(&owners(states), &[], dependents)
    }

    const BACKGROUND: Verdict = Verdict::Delete { propagation: Propagation::Background, unblock: false };

    #[test]
    fn an_object_goes_with_its_last_owner() {
        let none = Dependents::default();
        assert_eq!(verdict(&[], none), Verdict::Keep);
        assert_eq!(verdict(&[("a", Owner::Present)], none), Verdict::Keep);
        assert_eq!(verdict(&[("a", Owner::Gone)], none), BACKGROUND);
        assert_eq!(verdict(&[("a", Owner::Gone), ("b", Owner::Gone)], none), BACKGROUND);
        assert_eq!(verdict(&[("a", Owner::Waiting)], none), BACKGROUND);
    }

    #[test]
    fn another_owner_keeps_it_without_the_references_that_lead_nowhere() {
        let states = [("a", Owner::Gone), ("b", Owner::Present), ("c", Owner::Waiting)];
        assert_eq!(verdict(&states, Dependents::default()), Verdict::Release(vec!["a".into(), "c".into()]));
    }

    #[test]
    fn what_a_waiting_owner_waits_for_waits_for_its_own() {
        let some = Dependents { any: true, waiting: false };
        let expected = Verdict::Delete { propagation: Propagation::Foreground, unblock: false };
        assert_eq!(verdict(&[("a", Owner::Waiting)], some), expected);
        let circle = Dependents { any: true, waiting: true };
        let expected = Verdict::Delete { propagation: Propagation::Foreground, unblock: true };
        assert_eq!(verdict(&[("a", Owner::Waiting)], circle), expected);
        assert_eq!(verdict(&[("a", Owner::Gone)], some), BACKGROUND, "nobody waits for it");
    }

    #[test]
    fn finalizers_that_are_there_decide_how_it_is_deleted() {
        let gone = owners(&[("a", Owner::Gone)]);
        let with = |finalizer: &str| judge(&gone, &[finalizer.to_owned()], Dependents::default());
        assert_eq!(with(ORPHAN), Verdict::Delete { propagation: Propagation::Orphan, unblock: false });
        assert_eq!(
            with(FOREGROUND),
            Verdict::Delete { propagation: Propagation::Foreground, unblock: false }
        );
        assert_eq!(with("example.com/hold"), BACKGROUND);
    }
}
