//! The volume controllers.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kubewright::{
    Error, ObjectKey,
    cache::{Event, FieldIndex, Lazy},
    controller::{Action, Context, Controller, HandlerContext, Watch},
    events::Recorder,
};

use super::{
    binding::{self, ClaimStep, Consumer, SELECTED_NODE, VolumeStep},
    matching, protection, provisioner,
};
use crate::{
    ControllerContext,
    controller_context::record,
    events::Note,
    indexes::PODS_BY_CLAIM,
    pod,
    writes::{ignore_already_exists, ignore_not_found},
};

/// The claims that a pod names.
fn claims_of(pod: &Lazy<Pod>) -> Vec<ObjectKey> {
    let Ok(loaded) = pod.load() else { return Vec::new() };
    protection::claims_of(&loaded).map(|name| ObjectKey::new(pod.namespace(), &name)).collect()
}

/// Claims that wait for a volume, under one value.
static UNBOUND_CLAIMS: FieldIndex<PersistentVolumeClaim> =
    FieldIndex::new("status.phase", |claim, values| {
        let loaded = claim.load()?;
        let phase = loaded.status.as_ref().and_then(|status| status.phase.as_deref());
        values.extend((phase != Some("Bound")).then_some(UNBOUND));
        Ok(())
    });
const UNBOUND: &str = "Unbound";

/// Volumes by the keys of the claims that they are set aside for; those that are free under [`FREE`].
static VOLUMES_BY_CLAIM: FieldIndex<PersistentVolume> = FieldIndex::new("spec.claimRef", |volume, values| {
    let claim = claim_key(&*volume.load()?);
    values.push(claim.as_ref().map_or(FREE, ObjectKey::as_str));
    Ok(())
});
const FREE: &str = "";

fn enqueue_unbound(cx: &HandlerContext) {
    let unbound = cx.cache::<PersistentVolumeClaim>().by_index(&UNBOUND_CLAIMS, UNBOUND).unwrap_or_default();
    cx.add_all(unbound.iter().map(|claim| claim.key().clone()));
}

fn claim_key(volume: &PersistentVolume) -> Option<ObjectKey> {
    let wanted = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(ObjectKey::new(wanted.namespace.as_deref(), wanted.name.as_deref()?))
}

/// The binder: finds or makes a volume for every claim.
pub fn claims(cluster: &ControllerContext) -> Controller {
    let of_class = |_: &Event<StorageClass>, cx: &HandlerContext| enqueue_unbound(cx);
    let of_volume = |event: &Event<PersistentVolume>, cx: &HandlerContext| {
        let sides = match event {
            Event::Updated { old, new } => vec![old, new],
            Event::Added { object, .. } | Event::Deleted { object, .. } => vec![object],
        };
        for volume in sides {
            match volume.load().map(|volume| claim_key(&volume)) {
                Ok(Some(claim)) => cx.add(claim),
                // A free volume may be what a claim waits for.
                Ok(None) => enqueue_unbound(cx),
                Err(_) => {}
            }
        }
    };
    let recorder = cluster.recorder("persistentvolume-controller");
    Controller::of::<PersistentVolumeClaim>()
        .named("persistentvolume-binder")
        .index(&UNBOUND_CLAIMS)
        .index(&VOLUMES_BY_CLAIM)
        .index(&PODS_BY_CLAIM)
        .watches(Watch::handled(of_volume))
        .watches(Watch::handled(of_class))
        .watches(Watch::mapped(claims_of))
        .reconcile({
            let cluster = cluster.clone();
            move |cx: Context<PersistentVolumeClaim>| {
                let (cluster, recorder) = (cluster.clone(), recorder.clone());
                async move { Box::pin(sync_claim(&cx, &cluster, &recorder)).await }
            }
        })
}

async fn sync_claim(
    cx: &Context<PersistentVolumeClaim>,
    cluster: &ControllerContext,
    recorder: &Recorder,
) -> Result<Action, Error> {
    let Some(claim) = cx.object()? else { return Ok(Action::done()) };
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let volumes = volumes_for(cx, &claim).await?;
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
                record(recorder, &*claim, &Note::warning("ProvisioningFailed", text));
            }
            Some(class) => provision(cx, cluster, recorder, &claim, &class, &consumer).await?,
        },
        ClaimStep::Wait(note) => {
            if claim_without_class(&claim) && assign_default(cx, &claim).await? {
                return Ok(Action::done());
            }
            if let Some(note) = note {
                record(recorder, &*claim, &note);
            }
            if let Some(changed) = binding::unbound_status(&claim, "Pending") {
                cx.own_kind().status().update(&changed).await?;
            }
        }
        ClaimStep::Lost(note) => {
            if let Some(changed) = binding::unbound_status(&claim, "Lost") {
                cx.own_kind().status().update(&changed).await?;
                record(recorder, &*claim, &note);
            }
        }
    }
    Ok(Action::done())
}

/// The volumes that a claim may be bound to: the one that it names, those set aside for it, and the free ones.
async fn volumes_for(
    cx: &Context<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
) -> Result<Vec<Arc<PersistentVolume>>, Error> {
    let mut volumes = Vec::new();
    if let Some(name) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
        volumes.extend(cx.get::<PersistentVolume>(&ObjectKey::cluster(name)).await?);
    }
    for value in [cx.key().as_str(), FREE] {
        volumes.extend(load(&cx.list::<PersistentVolume>().by_index(&VOLUMES_BY_CLAIM, value).await?)?);
    }
    let mut names = BTreeSet::new();
    volumes.retain(|volume| names.insert(volume.metadata.name.clone()));
    Ok(volumes)
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
    for pod in load(&cx.list::<Pod>().by_index(&PODS_BY_CLAIM, cx.key().as_str()).await?)? {
        match pod::node(&pod) {
            Some(name) => node = node.or_else(|| Some(name.to_owned())),
            None => consumer.unscheduled.extend(pod.metadata.name.clone()),
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
    cluster: &ControllerContext,
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
    let made_by = cluster.recorder(&class.provisioner);
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

/// The volume controller: keeps the phase of every volume, and releases those whose claim is gone.
pub fn volumes(cluster: &ControllerContext) -> Controller {
    let of_claim = |claim: &Lazy<PersistentVolumeClaim>, cx: &HandlerContext| -> Vec<ObjectKey> {
        let named = claim.load().ok().and_then(|claim| claim.spec.as_ref()?.volume_name.clone());
        let mut keys: Vec<ObjectKey> = named.iter().map(|name| ObjectKey::cluster(name)).collect();
        let volumes = cx.cache::<PersistentVolume>().by_index(&VOLUMES_BY_CLAIM, claim.key().as_str());
        keys.extend(volumes.unwrap_or_default().iter().map(|volume| volume.key().clone()));
        keys
    };
    let recorder = cluster.recorder("persistentvolume-controller");
    Controller::of::<PersistentVolume>()
        .named("persistentvolume")
        .index(&VOLUMES_BY_CLAIM)
        .watches(Watch::mapped_with(of_claim))
        .reconcile(move |cx: Context<PersistentVolume>| {
            let recorder = recorder.clone();
            async move { Box::pin(sync_volume(&cx, &recorder)).await }
        })
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
        .index(&PODS_BY_CLAIM)
        .watches(Watch::mapped(claims_of))
        .reconcile(async |cx: Context<PersistentVolumeClaim>| {
            let Some(claim) = cx.object()? else { return Ok(Action::done()) };
            let namespace = cx.key().namespace().unwrap_or_default();
            let pods = load(&cx.list::<Pod>().by_index(&PODS_BY_CLAIM, cx.key().as_str()).await?)?;
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
