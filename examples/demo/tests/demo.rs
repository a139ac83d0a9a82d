//! The demo, as `make demo` runs it.

use std::{path::Path, process::Command};

#[test]
fn all_objects_become_ready_and_a_pipe_gets_plain_lines() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (kubeconfig, picture) = (folder.join("demo.kubeconfig"), folder.join("demo.svg"));
    let ran = Command::new(env!("CARGO_BIN_EXE_demo"))
        .env("DEMO_EXIT", "1")
        .env("DEMO_KUBECONFIG", &kubeconfig)
        .env("DEMO_PICTURE", &picture)
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for line in [
        "a cluster with 3 nodes listens on https://127.0.0.1:",
        "Foo default/example-foo is now ● Ready",
        "CloudManager default/cloudmanager-sample is now ● Ready",
        "Ingress default/web is now ● Ready",
        "CronJob default/heartbeat is now ● Ready",
        "Foo example-foo Synced  Foo synced successfully",
        "objects are ready after",
        "export KUBECONFIG=",
    ] {
        assert!(said.contains(line), "{line:?} is missing in\n{said}");
    }
    assert!(!said.contains('\x1b'), "a pipe gets no escape sequences");
    assert!(std::fs::read_to_string(kubeconfig).unwrap().contains("client-key-data"));
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("example-foo"));
}
