//! From one version of a kind to another.
//!
//! Each version (a spoke) is converted to one common type (the hub) and from there to the version that is wanted,
//! so that *n* versions need 2·*n* functions and not *n*². The hub may be one of the versions or a type that is
//! never written anywhere. A function that leads straight from one type to another is taken before the way over a
//! hub.
//!
//! A conversion function receives the whole object and returns the whole object: **metadata is its business**. Move
//! it over as it is; the API server refuses a conversion that changes name, namespace, uid or the like, and allows
//! changes to labels and annotations only. What a version cannot say is usually kept in an annotation, so that the
//! way back loses nothing.

use std::{
    any::{Any, TypeId, type_name},
    error::Error,
    fmt,
};

use indexmap::IndexMap;

use super::object::AnyBox;

/// A failure of whatever kind a conversion function reports.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why an object was not converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// No function leads from one type to the other, neither directly nor over a hub.
    #[error("cannot convert {from} to {to}: {advice}")]
    NoPath {
        /// The type at hand.
        from: String,
        /// The type that is wanted.
        to: String,
        /// Which functions are missing.
        advice: String,
    },
    /// The kind is not registered in the version that is wanted, or not in the version at hand.
    #[error("{gvk} is not registered{}; register it with SchemeBuilder::register", Others(.registered))]
    Unregistered {
        /// The kind as `group/version Kind`.
        gvk: String,
        /// The versions of the same kind that are registered.
        registered: Vec<String>,
    },
    /// An unstructured object does not fit the type that its kind is registered with.
    #[error("{object} does not fit {type_name}: {problem}")]
    Misfit {
        /// The object.
        object: String,
        /// The registered type.
        type_name: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// A conversion function failed.
    #[error("cannot convert {from} to {to}")]
    Failed {
        /// The type that the function was given.
        from: String,
        /// The type that it should have made.
        to: String,
        /// What it said.
        source: BoxError,
    },
}

struct Others<'a>(&'a [String]);

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            versions => write!(f, " (registered: {})", versions.join(", ")),
        }
    }
}

/// One conversion function.
pub(super) struct Step {
    from: TypeName,
    to: TypeName,
    run: Box<ConvertFn>,
}

type ConvertFn = dyn Fn(&dyn Any) -> Result<AnyBox, BoxError> + Send + Sync;

/// A type with the name that messages use for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeName {
    pub(super) id: TypeId,
    pub(super) name: &'static str,
}

impl TypeName {
    pub(super) fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

/// All conversion functions of a scheme.
#[derive(Default)]
pub(super) struct Conversions {
    steps: IndexMap<(TypeId, TypeId), Step>,
}

impl Conversions {
    /// Files a function; `false` if there is one between these types already.
    pub(super) fn add<A, B, E, F>(&mut self, convert: F) -> bool
    where
        A: 'static,
        B: Send + Sync + 'static,
        E: Into<BoxError>,
        F: Fn(&A) -> Result<B, E> + Send + Sync + 'static,
    {
        let (from, to) = (TypeName::of::<A>(), TypeName::of::<B>());
        let run = move |object: &dyn Any| {
            let object =
                object.downcast_ref::<A>().expect("a step is only run on the type it is filed under");
            convert(object).map(|made| Box::new(made) as AnyBox).map_err(Into::into)
        };
        self.steps.insert((from.id, to.id), Step { from, to, run: Box::new(run) }).is_none()
    }

    /// The functions that lead from one type to the other, in order; `None` if there is no way.
    fn path(&self, from: TypeId, to: TypeId) -> Option<Vec<&Step>> {
        if let Some(direct) = self.steps.get(&(from, to)) {
            return Some(vec![direct]);
        }
        self.over_hubs(from, to).next().map(|(up, down)| vec![up, down])
    }

    fn over_hubs(&self, from: TypeId, to: TypeId) -> impl Iterator<Item = (&Step, &Step)> {
        let up = self.steps.values().filter(move |step| step.from.id == from);
        up.filter_map(move |up| self.steps.get(&(up.to.id, to)).map(|down| (up, down)))
    }

    /// Two types between which two hubs would do, with the names of the hubs.
    pub(super) fn ambiguous(&self) -> Option<[&'static str; 4]> {
        for from in self.steps.values().map(|step| step.from) {
            for to in self.steps.values().map(|step| step.to) {
                if from.id == to.id || self.steps.contains_key(&(from.id, to.id)) {
                    continue;
                }
                let mut hubs = self.over_hubs(from.id, to.id).map(|(up, _)| up.to.name);
                if let (Some(one), Some(other)) = (hubs.next(), hubs.next()) {
                    return Some([from.name, to.name, one, other]);
                }
            }
        }
        None
    }

    /// Converts between two types that are known here.
    pub(super) fn convert<A, B>(&self, object: &A) -> Result<B, ConvertError>
    where
        A: Clone + Send + Sync + 'static,
        B: 'static,
    {
        let (from, to) = (TypeName::of::<A>(), TypeName::of::<B>());
        let made: AnyBox =
            if from.id == to.id { Box::new(object.clone()) } else { self.run(object, from, to)? };
        Ok(*made.downcast().expect("a conversion makes the type that it is filed under"))
    }

    /// Converts between two different types.
    pub(super) fn run(&self, object: &dyn Any, from: TypeName, to: TypeName) -> Result<AnyBox, ConvertError> {
        let Some(path) = self.path(from.id, to.id) else {
            return Err(ConvertError::NoPath {
                from: from.name.to_owned(),
                to: to.name.to_owned(),
                advice: self.advice(from, to),
            });
        };
        let mut made: Option<AnyBox> = None;
        for step in path {
            let input: &dyn Any = match &made {
                Some(object) => &**object,
                None => object,
            };
            let output = (step.run)(input).map_err(|source| ConvertError::Failed {
                from: step.from.name.to_owned(),
                to: step.to.name.to_owned(),
                source,
            })?;
            made = Some(output);
        }
        Ok(made.expect("a path has at least one step"))
    }

    fn advice(&self, from: TypeName, to: TypeName) -> String {
        let out = self.steps.values().find(|step| step.from.id == from.id).map(|step| step.to.name);
        let into = self.steps.values().find(|step| step.to.id == to.id).map(|step| step.from.name);
        let function =
            |from: &str, to: &str| format!("SchemeBuilder::convert(|from: &{from}| -> Result<{to}, _>)");
        match (out, into) {
            (Some(hub), _) => format!("add {}", function(hub, to.name)),
            (None, Some(hub)) => format!("add {}", function(from.name, hub)),
            (None, None) => {
                format!("add {}, or one function to a hub and one from it", function(from.name, to.name))
            }
        }
    }
}
