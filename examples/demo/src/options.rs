//! Options from the environment: `make demo DEMO_EXIT=1`.

use std::path::PathBuf;

/// Options of the demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `DEMO_EXIT`: whether to exit when all is ready, and to fail if it is not within a minute.
    pub exit: bool,
    /// `DEMO_KUBECONFIG`: the path of the kubeconfig to write.
    pub kubeconfig: PathBuf,
    /// `DEMO_PICTURE`: the path of a picture of the finished screen, if wanted.
    pub picture: Option<PathBuf>,
}

impl Options {
    /// Reads the options from the environment.
    pub fn from_env() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            exit: set("DEMO_EXIT").is_some_and(|value| value != "0"),
            kubeconfig: set("DEMO_KUBECONFIG").map_or_else(|| "demo.kubeconfig".into(), PathBuf::from),
            picture: set("DEMO_PICTURE").map(PathBuf::from),
        }
    }
}
