//! Events about cached objects.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kubewright_core::reference::{Reference, Regarding};

use crate::Lazy;

impl<K> Regarding for Lazy<K>
where
    K: Resource,
    K::DynamicType: Default,
{
    /// Without decoding the object.
    fn reference(&self) -> Reference {
        let dyntype = K::DynamicType::default();
        let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Reference(ObjectReference {
            uid: present(self.uid()),
            resource_version: present(self.resource_version()),
            ..Reference::new(K::api_version(&dyntype), K::kind(&dyntype), self.key()).0
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_its_handle_and_its_dynamic_form_are_the_same_object() {
        let value = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": "cart", "uid": "u-1", "resourceVersion": "7"},
        });
        let typed: Deployment = serde_json::from_value(value.clone()).unwrap();
        let dynamic: DynamicObject = serde_json::from_value(value).unwrap();
        let handle = Lazy::new(typed.clone(), &()).unwrap();
        assert_eq!(typed.reference(), handle.reference());
        assert_eq!(typed.reference(), Reference::from(&dynamic));
        assert_eq!(typed.reference().to_string(), "Deployment shop/cart");
        assert_eq!(typed.reference().0.api_version.as_deref(), Some("apps/v1"));
        assert_eq!(typed.reference().0.uid.as_deref(), Some("u-1"));
    }
}
