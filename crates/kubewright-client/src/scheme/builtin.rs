//! The kinds that every cluster has.

use std::sync::LazyLock;

use super::{Scheme, SchemeBuilder};

/// `builder.register::<…>()` for each kind of each group and version.
macro_rules! register {
    ($builder:expr; $($group:ident $version:ident: $($kind:ident)+;)+) => {
        $builder$($(.register::<k8s_openapi::api::$group::$version::$kind>())+)+
    };
}

impl SchemeBuilder {
    /// Registers the built-in kinds in their stable versions.
    ///
    /// ```
    /// use kubewright::scheme::Scheme;
    ///
    /// let scheme = Scheme::builder().kubernetes().build()?;
    /// assert_eq!(scheme.versions("apps"), ["v1"]);
    /// # Ok::<(), kubewright::scheme::SchemeError>(())
    /// ```
    pub fn kubernetes(self) -> Self {
        register! { self;
            core v1: Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
                PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
                ServiceAccount;
            admissionregistration v1: MutatingWebhookConfiguration ValidatingAdmissionPolicy
                ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
            apps v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
            autoscaling v1: HorizontalPodAutoscaler;
            autoscaling v2: HorizontalPodAutoscaler;
            batch v1: CronJob Job;
            certificates v1: CertificateSigningRequest;
            coordination v1: Lease;
            discovery v1: EndpointSlice;
            events v1: Event;
            networking v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
            node v1: RuntimeClass;
            policy v1: PodDisruptionBudget;
            rbac v1: ClusterRole ClusterRoleBinding Role RoleBinding;
            scheduling v1: PriorityClass;
            storage v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment;
        }
        .register::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>()
        .register::<k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService>()
    }
}

impl Scheme {
    /// A scheme of the built-in kinds. It is made once; every call hands out the same one.
    ///
    /// For these and your own kinds, begin with `Scheme::builder().kubernetes()`.
    pub fn kubernetes() -> Self {
        static KUBERNETES: LazyLock<Scheme> = LazyLock::new(|| {
            Scheme::builder()
                .kubernetes()
                .build()
                .expect("the built-in kinds are all different; a test says so")
        });
        KUBERNETES.clone()
    }
}
