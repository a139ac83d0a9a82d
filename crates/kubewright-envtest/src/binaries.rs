//! Where the programs are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The Kubernetes that `tools/real` builds.
const VERSION: &str = "v1.37.0";

/// A folder with `etcd`, `kube-apiserver` and perhaps `kube-controller-manager` and `kubectl` in it.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The programs on this machine: those of `KUBEBUILDER_ASSETS`, or those that `make real` has built.
    pub fn find() -> Option<Self> {
        Self::among([
            env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from),
            env::var_os("KUBEWRIGHT_CACHE").map(|cache| PathBuf::from(cache).join(VERSION)),
            env::var_os("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("kubewright").join(VERSION)),
            env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/kubewright").join(VERSION)),
        ])
    }

    /// The first folder that has what a control plane needs.
    fn among(folders: impl IntoIterator<Item = Option<PathBuf>>) -> Option<Self> {
        folders.into_iter().flatten().map(|folder| Self { folder }).find(Self::suffice)
    }

    fn suffice(&self) -> bool {
        ["etcd", "kube-apiserver"].iter().all(|program| self.path(program).is_some())
    }

    /// Where one of the programs is, if it is there.
    ///
    /// ```
    /// use kubewright_envtest::Binaries;
    ///
    /// let kubectl = Binaries::find().and_then(|binaries| binaries.path("kubectl"));
    /// ```
    pub fn path(&self, program: &str) -> Option<PathBuf> {
        Some(self.folder.join(program)).filter(|path| path.is_file())
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_lacks_a_program_is_passed_over() {
        let (lacking, complete) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, programs) in [(&lacking, &["etcd"][..]), (&complete, &["etcd", "kube-apiserver"])] {
            for program in programs {
                std::fs::write(folder.path().join(program), "").unwrap();
            }
        }
        let found =
            Binaries::among([None, Some(lacking.path().to_owned()), Some(complete.path().to_owned())])
                .unwrap();
        assert_eq!(found.folder(), complete.path());
        assert!(found.path("kubectl").is_none());
        assert!(Binaries::among([Some(lacking.path().to_owned())]).is_none());
    }
}
