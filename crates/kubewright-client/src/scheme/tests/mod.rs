//! Behaviour of the scheme as its users see it.

mod conversion;
mod decoding;
mod encoding;
mod hostile;
mod registration;
mod typed;
mod words;

use std::{borrow::Cow, convert::Infallible};

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::{Deserialize, Serialize};

use super::*;

/// Declares a custom resource in one version, as the derive macro of kube would.
macro_rules! custom_resource {
    ($name:ident, $version:literal, $spec:ty) => {
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        pub(super) struct $name {
            #[serde(rename = "apiVersion", default)]
            pub(super) api_version: String,
            #[serde(default)]
            pub(super) kind: String,
            pub(super) metadata: ObjectMeta,
            pub(super) spec: $spec,
        }

        impl $name {
            pub(super) fn new(metadata: ObjectMeta, spec: $spec) -> Self {
                Self {
                    api_version: concat!("example.com/", $version).into(),
                    kind: "Widget".into(),
                    metadata,
                    spec,
                }
            }
        }

        impl Resource for $name {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;
            fn kind((): &()) -> Cow<'_, str> {
                "Widget".into()
            }
            fn group((): &()) -> Cow<'_, str> {
                "example.com".into()
            }
            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                "widgets".into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// The first version had one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct AlphaSpec {
    size: String,
}

/// The later ones have two numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Spec {
    width: u32,
    #[serde(default)]
    height: u32,
}

custom_resource!(WidgetV1Alpha1, "v1alpha1", AlphaSpec);
custom_resource!(WidgetV1Beta1, "v1beta1", Spec);
custom_resource!(WidgetV1, "v1", Spec);
custom_resource!(ImpostorV1, "v1", AlphaSpec);

fn widgets() -> SchemeBuilder {
    Scheme::builder().register::<WidgetV1Alpha1>().register::<WidgetV1>().register::<WidgetV1Beta1>()
}

/// Adds the conversions with v1 as the hub; the alpha version writes sizes as `3x4`.
fn with_conversions(builder: SchemeBuilder) -> SchemeBuilder {
    builder
        .convert(|alpha: &WidgetV1Alpha1| {
            let (width, height) = alpha.spec.size.split_once('x').ok_or("a size is written as 3x4")?;
            let spec = Spec { width: width.parse()?, height: height.parse()? };
            Ok::<_, BoxError>(WidgetV1::new(alpha.metadata.clone(), spec))
        })
        .convert(|hub: &WidgetV1| {
            let size = format!("{}x{}", hub.spec.width, hub.spec.height);
            Ok::<_, Infallible>(WidgetV1Alpha1::new(hub.metadata.clone(), AlphaSpec { size }))
        })
        .convert(|beta: &WidgetV1Beta1| {
            Ok::<_, Infallible>(WidgetV1::new(beta.metadata.clone(), beta.spec.clone()))
        })
        .convert(|hub: &WidgetV1| {
            Ok::<_, Infallible>(WidgetV1Beta1::new(hub.metadata.clone(), hub.spec.clone()))
        })
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), namespace: Some("shop".into()), ..ObjectMeta::default() }
}

/// The messages of all errors in an input, and how many objects there were.
fn errors(decoder: &Decoder, input: &str) -> (usize, Vec<String>) {
    let (good, bad): (Vec<_>, Vec<_>) = decoder.decode(input).partition(Result::is_ok);
    (good.len(), bad.into_iter().map(|error| error.unwrap_err().to_string()).collect())
}
