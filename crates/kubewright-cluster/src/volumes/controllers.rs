//! The controllers of this room.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kubewright::{
    Error, ObjectKey,
    cache::{KindCache, Lazy},
    controller::{Action, Context, Controller, Watch},
    events::Recorder,
};

use super::{
    binding::{self, ClaimStep, Consumer, SELECTED_NODE, VolumeStep},
    matching, protection, provisioner,
};
use crate::{
    Parts,
    events::Note,
    objects::pod_node,
    parts::tell,
    writes::{ignore_already_exists, ignore_not_found},
};

/// The claims that a pod names.
fn claims_of(pod: &Lazy<Pod>) -> Vec<ObjectKey> {
    let Ok(loaded) = pod.load() else { return Vec::new() };
    protection::claims_of(&loaded).map(|name| ObjectKey::new(pod.namespace(), &name)).collect()
}

/// The claims that still wait for a volume.
fn pending(claims: &KindCache<PersistentVolumeClaim>) -> Vec<ObjectKey> {
    let waits = |claim: &Lazy<PersistentVolumeClaim>| {
        claim.load().is_ok_and(|claim| {
            claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound")
        })
    };
    claims.list().into_iter().filter(waits).map(|claim| claim.key().clone()).collect()
}

fn claim_key(volume: &PersistentVolume) -> Option<ObjectKey> {
    let wanted = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(ObjectKey::new(wanted.namespace.as_deref(), wanted.name.as_deref()?))
}

/// Finds or makes a volume for every claim.
pub fn claims(parts: &Parts) -> Controller {
    let claims = parts.caches().of::<PersistentVolumeClaim>();
    let of_class = {
        let claims = claims.clone();
        move |_: &Lazy<StorageClass>| pending(&claims)
    };
    let of_volume = move |volume: &Lazy<PersistentVolume>| -> Vec<ObjectKey> {
        let Ok(loaded) = volume.load() else { return Vec::new() };
        match claim_key(&loaded) {
            Some(key) => vec![key],
            // A free volume may be what somebody waits for.
            None => pending(&claims),
        }
    };
    let recorder = parts.recorder("persistentvolume-controller");
    Controller::of::<PersistentVolumeClaim>()
        .named("persistentvolume-binder")
        .watches(Watch::mapped(of_volume))
        .watches(Watch::mapped(of_class))
        .watches(Watch::mapped(claims_of))
        .reconcile({
            let parts = parts.clone();
            move |cx: Context<PersistentVolumeClaim>| {
                let (parts, recorder) = (parts.clone(), recorder.clone());
                async move { Box::pin(sync_claim(&cx, &parts, &recorder)).await }
            }
        })
}

async fn sync_claim(
    cx: &Context<PersistentVolumeClaim>,
    parts: &Parts,
    recorder: &Recorder,
) -> Result<Action, Error> {
    let Some(claim) = cx.object()? else { return Ok(Action::done()) };
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let volumes = load(&cx.list::<PersistentVolume>().await?)?;
    let class = match matching::claim_class(&claim) {
        "" => None,
        name => cx.get::<StorageClass>(&ObjectKey::cluster(name)).await?,
    };
    let delayed = class.as_deref().is_some_and(provisioner::waits_for_consumer);
    let consumer = consumer(cx, &claim, delayed).await?;
    match binding::claim_step(&claim, volumes.iter().map(AsRef::as_ref), &consumer) {
        ClaimStep::Bind(name) => {
            let volume = volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(&name));
            if let Some(volume) = volume {
                Box::pin(bind(cx, volume, &claim)).await?;
            }
        }
        ClaimStep::Provision => match class {
            None => {
                let name = matching::claim_class(&claim);
                let text = format!("storageclass.storage.k8s.io {name:?} not found");
                tell(recorder, &*claim, &Note::warning("ProvisioningFailed", text));
            }
            Some(class) => provision(cx, parts, recorder, &claim, &class, &consumer).await?,
        },
        ClaimStep::Wait(note) => {
            if claim_without_class(&claim) && assign_default(cx, &claim).await? {
                return Ok(Action::done());
            }
            if let Some(note) = note {
                tell(recorder, &*claim, &note);
            }
            if let Some(changed) = binding::unbound_status(&claim, "Pending") {
                cx.own_kind().status().update(&changed).await?;
            }
        }
        ClaimStep::Lost(note) => {
            if let Some(changed) = binding::unbound_status(&claim, "Lost") {
                cx.own_kind().status().update(&changed).await?;
                tell(recorder, &*claim, &note);
            }
        }
    }
    Ok(Action::done())
}

fn load<K>(handles: &[Lazy<K>]) -> Result<Vec<Arc<K>>, Error>
where
    K: serde::de::DeserializeOwned + Send + Sync + 'static,
{
    Ok(handles.iter().map(Lazy::load).collect::<Result<_, _>>()?)
}

fn claim_without_class(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    spec.is_some_and(|spec| spec.storage_class_name.is_none() && spec.volume_name.is_none())
}

/// A claim that was made before there was a default class gets it now.
async fn assign_default(
    cx: &Context<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
) -> Result<bool, Error> {
    let classes = load(&cx.list::<StorageClass>().await?)?;
    let Some(class) = provisioner::default_class(classes.iter().map(AsRef::as_ref)) else { return Ok(false) };
    let mut changed = claim.clone();
    changed.spec.get_or_insert_default().storage_class_name.clone_from(&class.metadata.name);
    cx.client().update(&changed).await?;
    Ok(true)
}

/// Who will use a claim, for classes that wait to know.
async fn consumer(
    cx: &Context<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
    delayed: bool,
) -> Result<Consumer, Error> {
    let mut consumer = Consumer { delayed, ..Consumer::default() };
    if !delayed {
        return Ok(consumer);
    }
    let mut node = claim.metadata.annotations.as_ref().and_then(|map| map.get(SELECTED_NODE)).cloned();
    for pod in load(&cx.list::<Pod>().namespace(cx.key().namespace().unwrap_or_default()).await?)? {
        if protection::claims_of(&pod).any(|name| name == cx.key().name()) {
            match pod_node(&pod) {
                Some(name) => node = node.or_else(|| Some(name.to_owned())),
                None => consumer.unscheduled.extend(pod.metadata.name.clone()),
            }
        }
    }
    consumer.unscheduled.sort();
    if let Some(name) = node {
        consumer.chosen = true;
        consumer.node = cx.get::<Node>(&ObjectKey::cluster(&name)).await?.map(|node| (*node).clone());
    }
    Ok(consumer)
}

/// Writes what is missing of a binding, in order; each write builds on the one before.
async fn bind(
    cx: &Context<PersistentVolumeClaim>,
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Result<(), Error> {
    let (mut volume, mut claim) = (volume.clone(), claim.clone());
    if let Some(wanted) = binding::bind(&volume, &claim).volume {
        volume = cx.client().update(&wanted).await?;
    }
    if let Some(wanted) = binding::bind(&volume, &claim).volume_status {
        volume = cx.client().of::<PersistentVolume>().status().update(&wanted).await?;
    }
    if let Some(wanted) = binding::bind(&volume, &claim).claim {
        claim = cx.client().update(&wanted).await?;
    }
    if let Some(wanted) = binding::bind(&volume, &claim).claim_status {
        cx.own_kind().status().update(&wanted).await?;
    }
    Ok(())
}

/// Makes a volume in place of the class's provisioner.
async fn provision(
    cx: &Context<PersistentVolumeClaim>,
    parts: &Parts,
    recorder: &Recorder,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    consumer: &Consumer,
) -> Result<(), Error> {
    let mut claim = claim.clone();
    if let Some(announced) = provisioner::announced(&claim, class) {
        claim = cx.client().update(&announced).await?;
        let text = format!(
            "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system \
             administrator. If volume creation is delayed, please verify that the provisioner is running and correctly \
             registered.",
            class.provisioner
        );
        recorder.normal(&claim, "ExternalProvisioning", text);
    }
    if class.provisioner == provisioner::NO_PROVISIONER {
        return Ok(());
    }
    let volume = provisioner::volume(&claim, class, consumer.node.as_ref());
    let made_by = parts.recorder(&class.provisioner);
    made_by.normal(
        &claim,
        "Provisioning",
        format!("External provisioner is provisioning volume for claim {:?}", cx.key().as_str()),
    );
    ignore_already_exists(cx.client().create(&volume).await)?;
    let name = provisioner::volume_name(&claim);
    made_by.normal(&claim, "ProvisioningSucceeded", format!("Successfully provisioned volume {name}"));
    Ok(())
}

/// Keeps the phase of every volume, and lets go of those whose claim is gone.
pub fn volumes(parts: &Parts) -> Controller {
    let all = parts.caches().of::<PersistentVolume>();
    let of_claim = move |claim: &Lazy<PersistentVolumeClaim>| -> Vec<ObjectKey> {
        let named = claim.load().ok().and_then(|claim| claim.spec.as_ref()?.volume_name.clone());
        let mut keys: Vec<ObjectKey> = named.iter().map(|name| ObjectKey::cluster(name)).collect();
        for volume in all.list() {
            if volume.load().is_ok_and(|volume| claim_key(&volume).as_ref() == Some(claim.key())) {
                keys.push(volume.key().clone());
            }
        }
        keys
    };
    let recorder = parts.recorder("persistentvolume-controller");
    Controller::of::<PersistentVolume>().named("persistentvolume").watches(Watch::mapped(of_claim)).reconcile(
        move |cx: Context<PersistentVolume>| {
            let recorder = recorder.clone();
            async move { Box::pin(sync_volume(&cx, &recorder)).await }
        },
    )
}

async fn sync_volume(cx: &Context<PersistentVolume>, recorder: &Recorder) -> Result<Action, Error> {
    let Some(volume) = cx.object()? else { return Ok(Action::done()) };
    let claim = match claim_key(&volume) {
        None => None,
        Some(key) => match cx.get::<PersistentVolumeClaim>(&key).await? {
            Some(claim) => Some(claim),
            // A volume must not be let go because its claim has not reached the cache.
            None => cx.client().live().get::<PersistentVolumeClaim>(&key).await?,
        },
    };
    let status = cx.own_kind().status();
    match binding::volume_step(&volume, claim.as_deref()) {
        VolumeStep::Leave => {}
        VolumeStep::Phase(phase) => {
            if let Some(changed) = binding::with_phase(&volume, phase) {
                status.update(&changed).await?;
            }
        }
        VolumeStep::Delete => {
            let mut volume = (*volume).clone();
            if let Some(changed) = binding::with_phase(&volume, "Released") {
                volume = status.update(&changed).await?;
            }
            if volume.metadata.deletion_timestamp.is_none() {
                cx.delete(&volume).await?;
            }
        }
        VolumeStep::Recycle => {
            let free = cx.client().update(&binding::unbind(&volume)).await?;
            if let Some(changed) = binding::with_phase(&free, "Available") {
                status.update(&changed).await?;
            }
            recorder.normal(&*volume, "VolumeRecycled", "Volume recycled");
        }
        VolumeStep::Unbind(free) => {
            let free = cx.client().update(&*free).await?;
            if let Some(changed) = binding::with_phase(&free, "Available") {
                status.update(&changed).await?;
            }
        }
    }
    Ok(Action::done())
}

/// Keeps claims that pods use, and says which ones nobody uses.
pub fn claim_protection() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .named("pvc-protection")
        .watches(Watch::mapped(claims_of))
        .reconcile(async |cx: Context<PersistentVolumeClaim>| {
            let Some(claim) = cx.object()? else { return Ok(Action::done()) };
            let namespace = cx.key().namespace().unwrap_or_default();
            let pods = load(&cx.list::<Pod>().namespace(namespace).await?)?;
            let borrowed: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
            if let Some(changed) = protection::unused(&claim, &borrowed, cx.clock().time().0) {
                cx.own_kind().status().update(&changed).await?;
                return Ok(Action::done());
            }
            if protection::claim(&claim, &borrowed).is_none() {
                return Ok(Action::done());
            }
            // The cache knows of no user; before anything is let go, the server is asked too.
            let pods = load(&cx.client().live().list::<Pod>().namespace(namespace).await?)?;
            let borrowed: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
            if let Some(changed) = protection::claim(&claim, &borrowed) {
                ignore_not_found(cx.client().update(&changed).await)?;
            }
            Ok(Action::done())
        })
}

/// Keeps volumes that claims use.
pub fn volume_protection() -> Controller {
    Controller::of::<PersistentVolume>().named("pv-protection").reconcile(
        async |cx: Context<PersistentVolume>| {
            let Some(volume) = cx.object()? else { return Ok(Action::done()) };
            if let Some(changed) = protection::volume(&volume) {
                ignore_not_found(cx.client().update(&changed).await)?;
            }
            Ok(Action::done())
        },
    )
}
