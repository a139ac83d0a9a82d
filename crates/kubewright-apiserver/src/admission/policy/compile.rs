//! Policies as programs.

use crate::{
    admission::conditions::{Conditions, compile, names},
    cel::{Environment, Program},
    registry::{
        descriptor::Json,
        json::{name, object, objects, text},
    },
};

/// An expression, or why it is none.
pub(super) type Compiled = Result<Program, String>;

/// What all policies have.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) spec: Json,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Compiled)>,
    /// What only one kind of policy has.
    pub(super) rules: Vec<Rule>,
    pub(super) annotations: Vec<(String, Compiled)>,
}

/// One validation or mutation.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) program: Compiled,
    /// The expression of the message, for validations that have one.
    pub(super) message: Option<Compiled>,
    /// As written.
    pub(super) written: Json,
}

/// The names of a policy's own expressions, its variables included.
fn environment(spec: &Json, variables: &mut Vec<(String, Compiled)>) -> Environment {
    let mut environment = names(None, spec.contains_key("paramKind"), None, true);
    for variable in objects(spec, "variables") {
        environment = environment.with_variables();
        let program = compile(text(variable, "expression"), &environment, &[]);
        environment.add_variable(text(variable, "name"), &program);
        variables.push((text(variable, "name").to_owned(), program));
    }
    environment
}

fn policy(stored: &Json, rules: impl FnOnce(&Json, &Environment) -> Vec<Rule>) -> Policy {
    let spec = object(stored, "spec").cloned().unwrap_or_default();
    let mut variables = Vec::new();
    let environment = environment(&spec, &mut variables);
    let rules = rules(&spec, &environment);
    let annotation = |annotation: &Json| {
        let text = text(annotation, "valueExpression");
        (text.to_owned(), compile(text, &environment, &["string", "null_type"]))
    };
    Policy {
        name: name(stored).to_owned(),
        conditions: Conditions::compile(&spec, spec.contains_key("paramKind")),
        annotations: objects(&spec, "auditAnnotations").map(annotation).collect(),
        variables,
        rules,
        spec,
    }
}

/// A `ValidatingAdmissionPolicy`.
pub(super) fn validating(stored: &Json) -> Policy {
    policy(stored, |spec, environment| {
        // Messages may not ask who may do what.
        let messages =
            names(None, spec.contains_key("paramKind"), None, false).with_variables_of(environment);
        let rule = |written: &Json| {
            let text = self::text(written, "expression");
            let message = Some(self::text(written, "messageExpression")).filter(|text| !text.is_empty());
            Rule {
                text: text.to_owned(),
                program: compile(text, environment, &["bool"]),
                message: message.map(|text| compile(text, &messages, &["string"])),
                written: written.clone(),
            }
        };
        objects(spec, "validations").map(rule).collect()
    })
}

/// A `MutatingAdmissionPolicy`.
pub(super) fn mutating(stored: &Json) -> Policy {
    policy(stored, |spec, environment| {
        let environment = environment.clone().with_patches();
        let rule = |written: &Json| {
            let (field, wanted) = mutation(written);
            let text = object(written, field).map_or("", |patch| self::text(patch, "expression"));
            Rule {
                text: text.to_owned(),
                program: compile(text.trim(), &environment, &[wanted]),
                message: None,
                written: written.clone(),
            }
        };
        objects(spec, "mutations").map(rule).collect()
    })
}

/// Where the expression of a mutation is, and what it must give.
pub(crate) fn mutation(written: &Json) -> (&'static str, &'static str) {
    match text(written, "patchType") {
        "JSONPatch" => ("jsonPatch", "list(JSONPatch)"),
        _ => ("applyConfiguration", "Object"),
    }
}
