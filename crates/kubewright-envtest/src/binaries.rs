//! Locates the programs of a control plane.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The Kubernetes version that `tools/real` builds.
const VERSION: &str = "v1.37.0";

/// Directory with `etcd`, `kube-apiserver` and optionally `kube-controller-manager` and `kubectl`.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds the programs in `KUBEBUILDER_ASSETS` or where `make real` has built them.
    pub fn find() -> Option<Self> {
        Self::first_complete([
            env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from),
            env::var_os("KUBEWRIGHT_CACHE").map(|cache| PathBuf::from(cache).join(VERSION)),
            env::var_os("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("kubewright").join(VERSION)),
            env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/kubewright").join(VERSION)),
        ])
    }

    /// The first directory that has all required programs.
    fn first_complete(folders: impl IntoIterator<Item = Option<PathBuf>>) -> Option<Self> {
        folders.into_iter().flatten().map(|folder| Self { folder }).find(Self::is_complete)
    }

    fn is_complete(&self) -> bool {
        ["etcd", "kube-apiserver"].iter().all(|program| self.path(program).is_some())
    }

    /// The path of a program, if it exists.
    ///
    /// ```
    /// use kubewright_envtest::Binaries;
    ///
    /// let kubectl = Binaries::find().and_then(|binaries| binaries.path("kubectl"));
    /// ```
    pub fn path(&self, program: &str) -> Option<PathBuf> {
        Some(self.folder.join(program)).filter(|path| path.is_file())
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_lacks_a_program_is_skipped() {
        let (lacking, complete) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, programs) in [(&lacking, &["etcd"][..]), (&complete, &["etcd", "kube-apiserver"])] {
            for program in programs {
                std::fs::write(folder.path().join(program), "").unwrap();
            }
        }
        let found = Binaries::first_complete([
            None,
            Some(lacking.path().to_owned()),
            Some(complete.path().to_owned()),
        ])
        .unwrap();
        assert_eq!(found.folder(), complete.path());
        assert!(found.path("kubectl").is_none());
        assert!(Binaries::first_complete([Some(lacking.path().to_owned())]).is_none());
    }
}
