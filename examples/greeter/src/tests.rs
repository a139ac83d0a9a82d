use kube::CustomResourceExt;
use kubewright_cluster::Cluster;

use super::*;

const WORLD: &str = "{apiVersion: example.dev/v1, kind: Greeting, metadata: {name: hi}, spec: {name: world}}";

#[kubewright_cluster::test]
async fn a_deleted_config_map_is_recreated(cluster: Cluster) -> Result<()> {
    cluster.apply(Greeting::crd()).await?;
    let _operator = cluster.run(operator()).await?;
    cluster.apply(WORLD).await?;
    cluster.settled().await?;

    cluster.delete::<ConfigMap>("default/hi").await?;
    cluster.settled().await?;

    let map = cluster.get::<ConfigMap>("default/hi").await?;
    assert_eq!(map.data.unwrap()["text"], "Hello, world!");
    Ok(())
}
