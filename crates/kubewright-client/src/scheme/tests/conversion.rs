use std::error::Error;

use kube::core::DynamicObject;
use serde_json::json;

use super::*;

fn scheme() -> Scheme {
    with_conversions(widgets()).build().unwrap()
}

fn alpha(size: &str) -> WidgetV1Alpha1 {
    WidgetV1Alpha1::new(named("a"), AlphaSpec { size: size.into() })
}

#[test]
fn spokes_are_converted_over_the_hub() {
    let beta: WidgetV1Beta1 = scheme().convert(&alpha("3x4")).unwrap();
    assert_eq!(beta, WidgetV1Beta1::new(named("a"), Spec { width: 3, height: 4 }));
    let back: WidgetV1Alpha1 = scheme().convert(&beta).unwrap();
    assert_eq!(back, alpha("3x4"));
}

#[test]
fn the_hub_is_one_step_away_and_a_type_is_itself() {
    let hub: WidgetV1 = scheme().convert(&alpha("3x4")).unwrap();
    assert_eq!(hub.spec, Spec { width: 3, height: 4 });
    let same: WidgetV1Alpha1 = scheme().convert(&alpha("no size at all")).unwrap();
    assert_eq!(same, alpha("no size at all"));
    let unregistered: u8 = Scheme::builder().build().unwrap().convert(&7_u8).unwrap();
    assert_eq!(unregistered, 7);
}

#[test]
fn a_direct_function_is_taken_before_the_hub() {
    let scheme = with_conversions(widgets())
        .convert(|alpha: &WidgetV1Alpha1| {
            Ok::<_, Infallible>(WidgetV1Beta1::new(alpha.metadata.clone(), Spec { width: 7, height: 7 }))
        })
        .build()
        .unwrap();
    assert_eq!(scheme.convert::<_, WidgetV1Beta1>(&alpha("3x4")).unwrap().spec.width, 7);
}

#[test]
fn a_hub_need_not_be_a_version() {
    struct Hub(u32);
    let scheme = Scheme::builder()
        .convert(|one: &u8| Ok::<_, Infallible>(Hub((*one).into())))
        .convert(|hub: &Hub| u16::try_from(hub.0))
        .build()
        .unwrap();
    assert_eq!(scheme.convert::<u8, u16>(&200).unwrap(), 200);
}

#[test]
fn a_function_that_fails_is_named_with_its_reason() {
    let error = scheme().convert::<_, WidgetV1Beta1>(&alpha("big")).unwrap_err();
    assert!(matches!(error, ConvertError::Failed { .. }));
    let message = error.to_string();
    assert!(message.contains("WidgetV1Alpha1") && message.contains("WidgetV1"), "{message}");
    assert_eq!(error.source().unwrap().to_string(), "a size is written as 3x4");
}

#[test]
fn a_missing_way_names_both_types_and_the_function_to_add() {
    let message = |builder: SchemeBuilder| {
        builder.build().unwrap().convert::<_, WidgetV1Beta1>(&alpha("3x4")).unwrap_err().to_string()
    };
    let nothing = message(widgets());
    assert!(nothing.contains("WidgetV1Alpha1") && nothing.contains("hub"), "{nothing}");

    let up_only = message(widgets().convert(|_: &WidgetV1Alpha1| Ok::<_, Infallible>(WidgetV1::default())));
    assert!(up_only.contains("WidgetV1| -> Result<kubewright"), "{up_only}");
    assert!(up_only.contains("WidgetV1Beta1, _>"), "{up_only}");

    let down_only = message(widgets().convert(|_: &WidgetV1| Ok::<_, Infallible>(WidgetV1Beta1::default())));
    assert!(down_only.contains("WidgetV1Alpha1| -> Result<kubewright"), "{down_only}");
}

#[test]
fn contradictions_among_conversions_are_refused() {
    let twice =
        with_conversions(widgets()).convert(|_: &WidgetV1| Ok::<_, Infallible>(WidgetV1Beta1::default()));
    assert!(matches!(twice.build().unwrap_err(), SchemeError::SameConversion { .. }));

    let two_hubs = Scheme::builder()
        .convert(|_: &u8| Ok::<_, Infallible>(0_u16))
        .convert(|_: &u8| Ok::<_, Infallible>(0_i16))
        .convert(|_: &u16| Ok::<_, Infallible>(0_u64))
        .convert(|_: &i16| Ok::<_, Infallible>(0_u64));
    let error = two_hubs.build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "u8 can be converted to u64 over u16 and over i16; keep one hub, or add a direct function"
    );
}

#[test]
fn a_decoded_object_is_converted_to_an_api_version() {
    let yaml = "{apiVersion: example.com/v1alpha1, kind: Widget, metadata: {name: a, namespace: shop}, \
                spec: {size: 3x4}}";
    let object = scheme().decode(yaml).next().unwrap().unwrap();
    let beta = scheme().convert_object(object, "example.com/v1beta1").unwrap();
    assert_eq!(beta.gvk().version, "v1beta1");
    assert_eq!(beta.key().unwrap().as_str(), "shop/a");
    let same = scheme().convert_object(beta, "example.com/v1beta1").unwrap();
    assert_eq!(same.downcast::<WidgetV1Beta1>().unwrap().spec, Spec { width: 3, height: 4 });
}

#[test]
fn an_unstructured_object_is_converted_and_can_stay_unstructured() {
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"width": 1, "height": 2},
    }))
    .unwrap();
    let converted = scheme().convert_object(object.into(), "example.com/v1alpha1").unwrap();
    let converted = converted.to_unstructured().unwrap();
    assert_eq!(converted.types.as_ref().unwrap().api_version, "example.com/v1alpha1");
    assert_eq!(converted.metadata.name.as_deref(), Some("a"));
    assert_eq!(converted.data, json!({"spec": {"size": "1x2"}}));
}

#[test]
fn an_object_that_cannot_be_converted_says_what_is_missing() {
    let object =
        |value: serde_json::Value| Decoded::from(serde_json::from_value::<DynamicObject>(value).unwrap());
    let widget = |spec| {
        let kind = "Widget";
        object(json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}))
    };
    let message = |object, version| scheme().convert_object(object, version).unwrap_err().to_string();

    let unknown_target = message(widget(json!({"width": 1})), "example.com/v3");
    assert!(
        unknown_target.starts_with("example.com/v3 Widget is not registered (registered: "),
        "{unknown_target}"
    );
    let gadget = object(json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {}}));
    assert!(
        message(gadget, "example.com/v1beta1").starts_with("example.com/v1beta1 Gadget is not registered;")
    );
    let misfit = message(widget(json!({"width": "wide"})), "example.com/v1beta1");
    assert!(misfit.contains("example.com/v1 Widget a") && misfit.contains("spec.width"), "{misfit}");
    assert!(!misfit.contains("wide "), "{misfit}");
}
