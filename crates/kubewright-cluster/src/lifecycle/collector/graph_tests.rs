use super::*;

fn node(uid: &str, owners: &[(&str, bool)]) -> Node {
    Node {
        uid: uid.to_owned(),
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some("ns".to_owned()),
        name: uid.to_owned(),
        owners: owners.iter().map(|(uid, blocks)| reference(uid, *blocks)).collect(),
        deleting: false,
        finalizers: Vec::new(),
    }
}

fn reference(uid: &str, blocks: bool) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: Some(blocks),
    }
}

fn deleting(mut node: Node, finalizer: &str) -> Node {
    node.deleting = true;
    node.finalizers = vec![finalizer.to_owned()];
    node
}

fn examine(uid: &str) -> Turn {
    Turn::Examine(uid.to_owned())
}

#[test]
fn an_object_whose_owner_is_known_is_left_alone() {
    let mut graph = Graph::default();
    assert_eq!(graph.observe(node("owner", &[])), []);
    assert_eq!(graph.observe(node("child", &[("owner", true)])), []);
    assert_eq!(graph.dependents("owner").count(), 1);
}

#[test]
fn an_object_whose_owner_was_not_seen_is_examined_once() {
    let mut graph = Graph::default();
    let child = node("child", &[("owner", false)]);
    assert_eq!(graph.observe(child.clone()), [examine("child")]);
    assert_eq!(graph.observe(child), [], "only a change of owners is news");
}

#[test]
fn an_owner_elsewhere_is_not_the_owner() {
    let mut graph = Graph::default();
    let mut elsewhere = node("owner", &[]);
    elsewhere.namespace = Some("other".to_owned());
    graph.observe(elsewhere);
    assert_eq!(graph.observe(node("child", &[("owner", false)])), [examine("child")]);
    let mut renamed = node("named", &[]);
    renamed.name = "another".to_owned();
    graph.observe(renamed);
    assert_eq!(graph.observe(node("second", &[("named", false)])), [examine("second")]);
}

#[test]
fn an_owner_of_the_cluster_owns_in_every_namespace() {
    let mut graph = Graph::default();
    let mut cluster = node("owner", &[]);
    cluster.namespace = None;
    graph.observe(cluster);
    assert_eq!(graph.observe(node("child", &[("owner", false)])), []);
}

#[test]
fn dependents_are_examined_when_their_owner_goes() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("a", &[("owner", false)]));
    graph.observe(node("b", &[("owner", true)]));
    assert_eq!(graph.forget("owner"), [examine("a"), examine("b")]);
    assert_eq!(graph.forget("owner"), [], "gone is gone");
}

#[test]
fn an_owner_in_the_foreground_waits_for_those_that_block() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("free", &[("owner", false)]));
    graph.observe(node("held", &[("owner", true)]));
    let turns = graph.observe(deleting(node("owner", &[]), FOREGROUND));
    assert_eq!(turns, [examine("free"), examine("held"), examine("owner")]);
    assert_eq!(graph.blocking("owner").map(|node| node.uid.as_str()).collect::<Vec<_>>(), ["held"]);
    assert_eq!(graph.forget("free"), [examine("owner")]);
    assert_eq!(graph.forget("held"), [examine("owner")]);
    assert_eq!(graph.blocking("owner").count(), 0);
}

#[test]
fn an_owner_that_waits_is_woken_when_a_reference_stops_blocking() {
    let mut graph = Graph::default();
    graph.observe(deleting(node("owner", &[]), FOREGROUND));
    graph.observe(node("child", &[("owner", true)]));
    let turns = graph.observe(node("child", &[("owner", false)]));
    assert!(turns.contains(&examine("owner")), "{turns:?}");
    graph.observe(node("child", &[("owner", true)]));
    let turns = graph.observe(node("child", &[]));
    assert_eq!(turns, [examine("owner")]);
    assert_eq!(graph.dependents("owner").count(), 0);
}

#[test]
fn orphaning_is_the_owners_turn() {
    let mut graph = Graph::default();
    graph.observe(node("child", &[("owner", true)]));
    let turns = graph.observe(deleting(node("owner", &[]), ORPHAN));
    assert_eq!(turns, [Turn::Orphan("owner".to_owned())]);
}
