use serde_json::{Value, json};

use super::*;

fn service(spec: &Value) -> Service {
    serde_json::from_value(json!({
        "metadata": {
            "name": "web", "namespace": "ns", "uid": "svc", "labels": {"tier": "front"},
            "creationTimestamp": "2026-08-01T00:00:00Z",
        },
        "spec": spec,
    }))
    .unwrap()
}

fn plain() -> Service {
    service(&json!({
        "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
    }))
}

fn pod(number: usize, ready: bool) -> Pod {
    let status = if ready { "True" } else { "False" };
    let ip = format!("10.9.{}.{}", number / 250, number % 250 + 1);
    serde_json::from_value(json!({
        "metadata": {"name": format!("p{number:04}"), "namespace": "ns", "uid": format!("u{number}")},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": status}],
        },
    }))
    .unwrap()
}

fn node() -> Node {
    serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap()
}

/// A server in small: applies a plan to slices.
fn apply(slices: &mut Vec<EndpointSlice>, plan: Plan) {
    slices.retain(|slice| !plan.delete.contains(slice.metadata.name.as_ref().unwrap()));
    for changed in plan.update {
        let held = slices.iter_mut().find(|slice| slice.metadata.name == changed.metadata.name);
        *held.expect("only existing slices are updated") = changed;
    }
    for mut new in plan.create {
        new.metadata.name = Some(format!("web-{}", slices.len() + 1000));
        slices.push(new);
    }
}

fn sync(service: &Service, pods: &[Pod], slices: &mut Vec<EndpointSlice>) -> Plan {
    let (pods, node) = (pods.iter().collect::<Vec<_>>(), node());
    let planned = plan(service, &pods, |name| (name == "n").then_some(&node), slices);
    apply(slices, planned.clone());
    let again = plan(service, &pods, |name| (name == "n").then_some(&node), slices);
    assert_eq!(
        (again.create.len(), again.update.len(), again.delete.len()),
        (0, 0, 0),
        "settles in one step"
    );
    planned
}

#[test]
fn a_service_without_pods_has_one_empty_slice() {
    let mut slices = Vec::new();
    sync(&plain(), &[], &mut slices);
    let [only] = slices.as_slice() else { panic!("one slice") };
    assert_eq!((only.endpoints.as_ref(), only.ports.as_ref()), (None, None));
    assert_eq!(only.metadata.generate_name.as_deref(), Some("web-"));
    let labels = only.metadata.labels.as_ref().unwrap();
    assert_eq!(labels.get("tier").map(String::as_str), Some("front"));
    assert_eq!(labels.get(MANAGED_BY).map(String::as_str), Some(MANAGER));
    assert_eq!(only.metadata.annotations.as_ref().unwrap()[TRIGGER_TIME], "2026-08-01T00:00:00Z");
}

#[test]
fn the_empty_slice_becomes_the_first_and_the_last_becomes_empty_again() {
    let mut slices = Vec::new();
    sync(&plain(), &[], &mut slices);
    let name = slices[0].metadata.name.clone();
    let first = sync(&plain(), &[pod(1, true)], &mut slices);
    assert_eq!((first.create.len(), first.update.len(), first.delete.len()), (0, 1, 0));
    assert_eq!(slices[0].metadata.name, name);
    assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(8080));
    sync(&plain(), &[], &mut slices);
    assert_eq!((slices.len(), size(&slices[0]), slices[0].ports.as_ref()), (1, 0, None));
    assert_eq!(slices[0].metadata.name, name);
}

#[test]
fn a_slice_holds_a_hundred_and_changes_touch_one() {
    let mut pods: Vec<Pod> = (0..250).map(|number| pod(number, true)).collect();
    let mut slices = Vec::new();
    sync(&plain(), &pods, &mut slices);
    assert_eq!(slices.iter().map(size).collect::<Vec<_>>(), [100, 100, 50]);
    pods[120] = pod(120, false);
    let plan = sync(&plain(), &pods, &mut slices);
    assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (0, 1, 0));
    pods.remove(10);
    pods.push(pod(300, true));
    let plan = sync(&plain(), &pods, &mut slices);
    assert_eq!((plan.create.len(), plan.update.len()), (0, 1), "the new one goes where one left");
    assert_eq!(slices.iter().map(size).collect::<Vec<_>>(), [100, 100, 50]);
}

#[test]
fn a_pod_whose_node_is_unknown_is_left_out_and_named() {
    let mut lost = pod(1, true);
    lost.spec.as_mut().unwrap().node_name = None;
    let planned = plan(&plain(), &[&lost], |_| None, &[]);
    assert_eq!(planned.skipped, ["skipping Pod p0001 for Service ns/web: Node  Not Found"]);
    assert_eq!(planned.create[0].endpoints, None);
    let mut open = plain();
    open.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
    let planned = plan(&open, &[&lost], |_| None, &[]);
    assert!(planned.skipped.is_empty());
    assert_eq!(size(&planned.create[0]), 1);
}

#[test]
fn pods_with_other_numbers_for_a_named_port_get_their_own_slice() {
    let named = service(&json!({
        "clusterIP": "None", "ipFamilies": ["IPv4"], "ports": [{"port": 80, "targetPort": "http"}],
    }));
    let mut other = pod(2, true);
    other.spec.as_mut().unwrap().containers[0].ports.as_mut().unwrap()[0].container_port = 9090;
    let mut slices = Vec::new();
    sync(&named, &[pod(1, true), other], &mut slices);
    let mut ports: Vec<_> = slices.iter().map(|s| s.ports.as_ref().unwrap()[0].clone()).collect();
    ports.sort_by_key(|port| port.port);
    assert_eq!(ports.iter().map(|port| port.port.unwrap()).collect::<Vec<_>>(), [8080, 9090]);
    assert_eq!(ports[0].name.as_deref(), Some(""));
    assert!(slices[0].metadata.labels.as_ref().unwrap().contains_key(HEADLESS));
}

#[test]
fn slices_of_another_service_of_the_same_name_and_of_a_dropped_family_go() {
    let mut old = plan(&plain(), &[], |_| None, &[]).create.remove(0);
    old.metadata.name = Some("web-old".into());
    old.metadata.owner_references.as_mut().unwrap()[0].uid = "before".into();
    let mut six = plan(&plain(), &[], |_| None, &[]).create.remove(0);
    six.metadata.name = Some("web-six".into());
    six.address_type = "IPv6".into();
    let planned = plan(&plain(), &[], |_| None, &[old, six]);
    assert_eq!(planned.delete, ["web-six", "web-old"]);
    assert_eq!(planned.create.len(), 1);
}

#[test]
fn a_service_that_is_being_deleted_gets_no_new_slices() {
    let mut leaving = plain();
    leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
    assert!(plan(&leaving, &[], |_| None, &[]).create.is_empty());
}

#[test]
fn zones_are_hinted_when_every_ready_endpoint_has_one() {
    let mut near = plain();
    near.spec.as_mut().unwrap().traffic_distribution = Some("PreferSameZone".into());
    let node: Node = serde_json::from_value(
        json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z1"}}}),
    )
    .unwrap();
    let pod = pod(1, true);
    let planned = plan(&near, &[&pod], |_| Some(&node), &[]);
    let hints = planned.create[0].endpoints.as_ref().unwrap()[0].hints.clone().unwrap();
    assert_eq!(hints.for_zones.unwrap()[0].name, "z1");
    let unplaced = super::tests::node();
    let planned = plan(&near, &[&pod], |_| Some(&unplaced), &[]);
    assert_eq!(planned.create[0].endpoints.as_ref().unwrap()[0].hints, None);
}
