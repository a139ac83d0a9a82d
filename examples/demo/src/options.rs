//! What the environment says: `make demo DEMO_EXIT=1`.

use std::path::PathBuf;

/// How the demonstration runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `DEMO_EXIT`: whether to end when all is ready, and to fail if it is not within a minute.
    pub exit: bool,
    /// `DEMO_KUBECONFIG`: where the kubeconfig goes.
    pub kubeconfig: PathBuf,
    /// `DEMO_PICTURE`: where a picture of the finished screen goes, if anywhere.
    pub picture: Option<PathBuf>,
}

impl Options {
    /// What the environment says.
    pub fn from_env() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            exit: set("DEMO_EXIT").is_some_and(|value| value != "0"),
            kubeconfig: set("DEMO_KUBECONFIG").map_or_else(|| "demo.kubeconfig".into(), PathBuf::from),
            picture: set("DEMO_PICTURE").map(PathBuf::from),
        }
    }
}
