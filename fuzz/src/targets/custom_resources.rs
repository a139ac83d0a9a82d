//! Two documents, separated by a zero byte: a definition and an object of it.

use crate::{parts, report_outcome};
use kubewright_apiserver::crd::definition;
use kubewright_schema::{
    TypeRef,
    body::{self, Format, Limits},
    default::apply_defaults,
    lists,
    prune::prune,
    validate::Validator,
};

/// Runs the target.
pub fn run(input: &[u8]) {
    let limits = Limits::default();
    let [crd, object] = parts::<2>(input);
    let Ok(crd) = body::decode(crd, Format::Yaml, None, &limits) else { return };
    let mut crd = crd.value;
    if !crd.is_object() {
        return;
    }
    definition::apply_defaults(&mut crd);
    definition::prepare_create(&mut crd);
    report_outcome(&format!("{:?}", definition::validate_create(&crd)));
    let _ = definition::validate_update(&crd, &crd);
    let _ = definition::warnings(&crd, None);
    let _ = definition::status::refresh(&crd, [&crd], "2026-01-01T00:00:00Z");
    let object = body::decode(object, Format::Yaml, None, &limits).map(|o| o.value).unwrap_or_default();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        let schema = &version["schema"]["openAPIV3Schema"];
        let mut object = object.clone();
        if let Ok(custom) = TypeRef::from_structural(schema) {
            prune(&custom, &mut object);
            apply_defaults(&custom, &mut object);
            lists::validate(&custom, &object);
        }
        if let Ok(validator) = Validator::new(schema) {
            validator.validate(&object);
        }
    }
}
