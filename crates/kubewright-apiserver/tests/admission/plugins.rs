//! Plugins of one's own.

use kubewright_apiserver::admission::Chain;

#[test]
fn plugins_can_be_left_out_by_name() {
    let chain = Chain::standard().without("LimitRanger").unwrap();
    assert!(!chain.names().any(|name| name == "LimitRanger"));
    let error = chain.without("LimitRanger").unwrap_err().to_string();
    assert!(error.starts_with(
        "there is no admission plugin \"LimitRanger\" to switch off; known are: NamespaceLifecycle,"
    ));
}
