//! Strategy of custom resource definitions. Their rules are in [`crate::crd::definition`].

use serde_json::Value;

use super::{PLAIN, PrepareContext, Strategy};
use crate::{
    crd::definition,
    registry::{descriptor::Json, json::as_value, validation::Errors},
};

fn default(crd: &mut Json) {
    as_value(crd, definition::apply_defaults);
}

fn prepare_create(crd: &mut Json, _: &PrepareContext<'_>) {
    as_value(crd, definition::prepare_create);
}

fn prepare_update(new: &mut Json, old: &Json) {
    let old = Value::Object(old.clone());
    as_value(new, |new| definition::prepare_update(new, &old));
}

fn prepare_status(new: &mut Json, old: &Json) {
    let old = Value::Object(old.clone());
    as_value(new, |new| definition::prepare_status_update(new, &old));
}

fn validate(crd: &Json, errors: &mut Errors) {
    errors.extend_from_schema(&definition::validate_create(&Value::Object(crd.clone())));
}

fn validate_update(new: &Json, old: &Json, errors: &mut Errors) {
    let (new, old) = (Value::Object(new.clone()), Value::Object(old.clone()));
    errors.extend_from_schema(&definition::validate_update(&new, &old));
}

fn validate_status(new: &Json, _: &Json, errors: &mut Errors) {
    errors.extend_from_schema(&definition::validate_status_update(&Value::Object(new.clone())));
}

fn warnings(new: &Json, old: Option<&Json>, warnings: &mut Vec<String>) {
    let old = old.map(|old| Value::Object(old.clone()));
    warnings.extend(definition::warnings(&Value::Object(new.clone()), old.as_ref()));
}

/// Strategy of `CustomResourceDefinition`.
pub(super) static DEFINITION: Strategy = Strategy {
    default,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    ..PLAIN
};
