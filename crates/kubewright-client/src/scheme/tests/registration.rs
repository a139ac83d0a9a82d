use std::any::TypeId;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::core::GroupVersionKind;

use super::*;

#[test]
fn kinds_and_types_lead_to_each_other() {
    let scheme = widgets().register::<Pod>().build().unwrap();
    let gvk = GroupVersionKind::gvk("example.com", "v1beta1", "Widget");
    assert_eq!(scheme.gvk_of::<WidgetV1Beta1>(), Some(&gvk));
    assert_eq!(scheme.gvk_of_type(TypeId::of::<WidgetV1Beta1>()), Some(&gvk));
    assert_eq!(scheme.type_of(&gvk), Some(TypeId::of::<WidgetV1Beta1>()));
    assert_eq!(scheme.gvk_of::<Pod>().unwrap().api_version(), "v1");
    assert!(scheme.knows::<Pod>());

    assert!(!scheme.knows::<Deployment>());
    assert_eq!(scheme.gvk_of::<Deployment>(), None);
    assert_eq!(scheme.type_of(&GroupVersionKind::gvk("example.com", "v2", "Widget")), None);
}

#[test]
fn versions_come_in_order_of_preference() {
    let scheme = widgets().register::<Pod>().build().unwrap();
    assert_eq!(scheme.versions("example.com"), ["v1", "v1beta1", "v1alpha1"]);
    assert_eq!(scheme.groups(), ["", "example.com"]);
    let kinds: Vec<_> = scheme.kinds("example.com").into_iter().map(GroupVersionKind::api_version).collect();
    assert_eq!(kinds, ["example.com/v1", "example.com/v1beta1", "example.com/v1alpha1"]);
    assert_eq!(scheme.preferred("example.com", "Widget").unwrap().version, "v1");
    assert_eq!(scheme.preferred("example.com", "Gadget"), None);
    assert!(scheme.versions("nowhere").is_empty() && scheme.kinds("nowhere").is_empty());
}

#[test]
fn one_kind_for_two_types_is_refused_with_both_names() {
    let error = widgets().register::<ImpostorV1>().build().unwrap_err();
    let message = error.to_string();
    assert_eq!(ImpostorV1::new(named("a"), AlphaSpec::default()).kind, "Widget");
    for part in ["example.com/v1 Widget", "tests::WidgetV1 and for", "ImpostorV1"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(widgets().register::<WidgetV1>().build().is_ok(), "registering a type again changes nothing");
}

#[test]
fn defaults_run_in_the_order_in_which_they_were_added() {
    let scheme = widgets()
        .default_fn(|widget: &mut WidgetV1| widget.spec.height = 1)
        .default_fn(|widget: &mut WidgetV1| widget.spec.height = widget.spec.height * 10 + 2)
        .default_fn(|widget: &mut WidgetV1Beta1| widget.spec.height = 99)
        .build()
        .unwrap();
    let mut widget = WidgetV1::new(named("a"), Spec { width: 5, height: 0 });
    scheme.default_object(&mut widget);
    assert_eq!(widget.spec, Spec { width: 5, height: 12 });

    let yaml = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {width: 5}}";
    let plain: WidgetV1 = scheme.decoder().decode_one(yaml).unwrap();
    assert_eq!(plain.spec.height, 0, "nothing is defaulted unless it is asked for");
    let defaulted: WidgetV1 = scheme.decoder().apply_defaults().decode_one(yaml).unwrap();
    assert_eq!(defaulted.spec.height, 12);
}

#[test]
fn a_defaulting_function_needs_a_registered_type() {
    let error = Scheme::builder().default_fn(|_: &mut Pod| ()).build().unwrap_err();
    assert!(error.to_string().contains(".register::<k8s_openapi"), "{error}");
}

#[test]
fn the_built_in_kinds_are_all_different_and_cover_the_common_groups() {
    let scheme = Scheme::builder().kubernetes().build().unwrap();
    let groups = [
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ];
    assert_eq!(scheme.groups(), groups);
    assert_eq!(scheme.versions("autoscaling"), ["v2", "v1"]);
    assert!(scheme.knows::<Deployment>());
}

#[test]
fn a_scheme_is_shared_and_can_cross_threads() {
    fn crosses_threads<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn is_sent<T: Send + Sync>() {}
    let scheme = Scheme::kubernetes();
    crosses_threads(&scheme);
    crosses_threads(&scheme.decoder());
    is_sent::<Decoded>();
    is_sent::<DecodeError>();
    is_sent::<ConvertError>();
    assert!(format!("{scheme:?}").contains("apps/v1 Deployment"));
}
