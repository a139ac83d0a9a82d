//! Putting a scheme together.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::Arc,
};

use indexmap::{IndexMap, map::Entry};
use kube::{Resource, core::GroupVersionKind};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Inner, Scheme,
    convert::{BoxError, Conversions, TypeName},
    object::{DefaultFn, Registered, name_of},
};

/// Why a scheme cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// Two types claim the same kind.
    #[error("{gvk} is registered twice, for {first} and for {second}; a kind has one type")]
    SameKind {
        /// The kind as `group/version Kind`.
        gvk: String,
        /// The type that was registered first.
        first: &'static str,
        /// The type that was registered second.
        second: &'static str,
    },
    /// A defaulting function was given for a type that is not registered.
    #[error("there is a defaulting function for {0}, but the type is not registered; add .register::<{0}>()")]
    DefaultOfUnregistered(&'static str),
    /// Two functions convert between the same types.
    #[error("two functions convert {from} to {to}; which one is meant?")]
    SameConversion {
        /// The type they take.
        from: &'static str,
        /// The type they make.
        to: &'static str,
    },
    /// Two hubs lead from one type to another.
    #[error(
        "{from} can be converted to {to} over {one} and over {other}; keep one hub, or add a direct function"
    )]
    TwoHubs {
        /// The type at one end.
        from: &'static str,
        /// The type at the other end.
        to: &'static str,
        /// One hub.
        one: &'static str,
        /// The other hub.
        other: &'static str,
    },
}

/// Collects types and their functions; [`SchemeBuilder::build`] tells whether they fit together.
///
/// ```
/// use kubewright::{k8s_openapi::api::apps::v1::Deployment, scheme::Scheme};
///
/// let scheme = Scheme::builder()
///     .register::<Deployment>()
///     .default_fn(|deployment: &mut Deployment| {
///         deployment.spec.replicas.get_or_insert(1);
///     })
///     .build()?;
/// assert!(scheme.knows::<Deployment>());
/// # Ok::<(), kubewright::scheme::SchemeError>(())
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until .build()"]
pub struct SchemeBuilder {
    kinds: IndexMap<GroupVersionKind, Registered>,
    defaults: Vec<(TypeName, DefaultFn)>,
    conversions: Conversions,
    /// The first thing that went wrong, told by `build` so that the calls can be chained.
    error: Option<SchemeError>,
}

impl SchemeBuilder {
    /// Makes a type known under the kind that it names itself. Registering it again changes nothing.
    pub fn register<K>(mut self) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let new = Registered::of::<K>();
        match self.kinds.entry(new.gvk.clone()) {
            Entry::Vacant(free) => {
                free.insert(new);
            }
            Entry::Occupied(taken) if taken.get().id == new.id => {}
            Entry::Occupied(taken) => {
                let error = SchemeError::SameKind {
                    gvk: name_of(&new.gvk),
                    first: taken.get().name,
                    second: new.name,
                };
                self.error.get_or_insert(error);
            }
        }
        self
    }

    /// Adds a defaulting function for a registered type. Functions of one type run in the order in which they were
    /// added: by [`Scheme::default_object`], and while decoding with
    /// [`Decoder::apply_defaults`](super::Decoder::apply_defaults).
    pub fn default_fn<K: 'static>(mut self, default: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let default = move |object: &mut dyn Any| {
            if let Some(object) = object.downcast_mut::<K>() {
                default(object);
            }
        };
        self.defaults.push((TypeName::of::<K>(), Box::new(default)));
        self
    }

    /// Adds a function that makes a `B` of an `A`: up to the hub, down from it, or straight between two versions.
    ///
    /// ```
    /// # use kubewright::scheme::Scheme;
    /// # use std::convert::Infallible;
    /// #[derive(Clone)]
    /// struct V1 { size: u32 }
    /// #[derive(Clone)]
    /// struct V2 { size: String }
    /// struct Hub { size: u32 }
    ///
    /// let scheme = Scheme::builder()
    ///     .convert(|v1: &V1| Ok::<_, Infallible>(Hub { size: v1.size }))
    ///     .convert(|hub: &Hub| Ok::<_, Infallible>(V1 { size: hub.size }))
    ///     .convert(|v2: &V2| v2.size.parse().map(|size| Hub { size }))
    ///     .convert(|hub: &Hub| Ok::<_, Infallible>(V2 { size: hub.size.to_string() }))
    ///     .build()?;
    ///
    /// let v2: V2 = scheme.convert(&V1 { size: 3 })?;
    /// assert_eq!(v2.size, "3");
    /// let failed = scheme.convert::<V2, V1>(&V2 { size: "many".into() }).err().unwrap();
    /// assert!(failed.to_string().contains("V2"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convert<A, B, E, F>(mut self, convert: F) -> Self
    where
        A: 'static,
        B: Send + Sync + 'static,
        E: Into<BoxError>,
        F: Fn(&A) -> Result<B, E> + Send + Sync + 'static,
    {
        if !self.conversions.add(convert) {
            let error = SchemeError::SameConversion { from: type_name::<A>(), to: type_name::<B>() };
            self.error.get_or_insert(error);
        }
        self
    }

    /// The finished scheme, or the first contradiction in it.
    pub fn build(self) -> Result<Scheme, SchemeError> {
        let Self { mut kinds, defaults, conversions, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        let by_type: HashMap<TypeId, usize> =
            kinds.values().enumerate().map(|(index, registered)| (registered.id, index)).collect();
        for (target, default) in defaults {
            let Some((_, registered)) = by_type.get(&target.id).and_then(|index| kinds.get_index_mut(*index))
            else {
                return Err(SchemeError::DefaultOfUnregistered(target.name));
            };
            registered.defaults.push(default);
        }
        if let Some([from, to, one, other]) = conversions.ambiguous() {
            return Err(SchemeError::TwoHubs { from, to, one, other });
        }
        Ok(Scheme { inner: Arc::new(Inner { kinds, by_type, conversions }) })
    }
}
