//! Discovery on disk, in kubectl's own files.
//!
//! `<dir>/servergroups.json` and `<dir>/<group>/<version>/serverresources.json` hold what kubectl would write
//! there, so the two warm each other's cache. A file counts for as long as its modification time is no
//! further from now than the TTL.
//!
//! The cache is a favour, never a condition: a file that is missing, unreadable, half written by somebody
//! else or nonsense is asked for again and rewritten, and a directory that cannot be written to is mentioned
//! in the log at `DEBUG`.

use std::{
    collections::BTreeSet,
    fmt, fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::Uri;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    ResourceInfo, legacy,
    model::{GroupInfo, ServerResources, VersionInfo, api_version},
};

/// How long kubectl trusts its files.
const DEFAULT_TTL: Duration = Duration::from_hours(6);

/// Where discovery is kept on disk and for how long. Clones share their state.
///
/// ```
/// use std::time::Duration;
/// use kubewright::client::DiskCache;
///
/// let server = "https://10.0.0.1:6443".parse().unwrap();
/// let cache = DiskCache::below("/home/alice/.kube/cache", &server).ttl(Duration::from_secs(600));
/// assert_eq!(cache.dir().to_str(), Some("/home/alice/.kube/cache/discovery/10.0.0.1_6443"));
/// ```
#[derive(Clone)]
pub struct DiskCache {
    dir: PathBuf,
    ttl: Duration,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Files of others are not to be trusted any more.
    invalidated: bool,
    /// The files that this process has written since.
    ours: BTreeSet<PathBuf>,
}

impl DiskCache {
    /// The cache that kubectl uses for this server: `~/.kube/cache/discovery/<host_port>`. `None` without a
    /// home directory.
    pub fn of_user(server: &Uri) -> Option<Self> {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
        (!home.is_empty()).then(|| Self::below(Path::new(&home).join(".kube").join("cache"), server))
    }

    /// A cache for this server below another directory than `~/.kube/cache`.
    pub fn below(cache_dir: impl AsRef<Path>, server: &Uri) -> Self {
        Self::at(cache_dir.as_ref().join("discovery").join(host_dir(server)))
    }

    /// A cache in exactly this directory. It must belong to one server alone.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        let now = Arc::new(SystemTime::now);
        Self { dir: dir.into(), ttl: DEFAULT_TTL, now, state: Arc::default() }
    }

    /// Trusts files for this long; 6 hours unless said otherwise, as kubectl does.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Takes the time of day from here, for tests.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// From now on, trusts only what this process writes.
    pub(super) fn invalidate(&self) {
        *self.state.lock() = State { invalidated: true, ours: BTreeSet::new() };
    }

    /// The groups, without resources.
    pub(super) fn groups(&self) -> Option<Vec<GroupInfo>> {
        let list: APIGroupList = self.read(&self.groups_file())?;
        let groups: Vec<_> = list.groups.into_iter().map(legacy::group_from).collect();
        (!groups.is_empty()).then_some(groups)
    }

    /// The resources of one group version.
    pub(super) fn resources(&self, group: &str, version: &str) -> Option<Vec<Arc<ResourceInfo>>> {
        let list: APIResourceList = self.read(&self.resources_file(group, version)?)?;
        // A file of another group version is no answer, however it got there.
        (list.group_version == api_version(group, version))
            .then(|| legacy::resources_from(group, version, list))
    }

    /// Writes everything that is worth keeping.
    pub(super) fn store(&self, resources: &ServerResources) {
        if resources.groups.is_empty() {
            return;
        }
        for group in &resources.groups {
            for version in &group.versions {
                self.store_version(&group.name, version);
            }
        }
        // The list of groups comes last, so that whoever finds it finds the rest.
        if let Err(error) = self.write(&self.groups_file(), &legacy::groups_to(&resources.groups)) {
            tracing::debug!(dir = %self.dir.display(), %error, "discovery is not cached on disk");
        }
    }

    /// Writes one group version, unless it is empty or out of date: both are worth asking for again.
    pub(super) fn store_version(&self, group: &str, version: &VersionInfo) {
        if version.stale || version.resources.is_empty() {
            return;
        }
        let Some(path) = self.resources_file(group, &version.version) else { return };
        if let Err(error) = self.write(&path, &legacy::resources_to(group, version)) {
            tracing::debug!(path = %path.display(), %error, "discovery is not cached on disk");
        }
    }

    fn groups_file(&self) -> PathBuf {
        self.dir.join("servergroups.json")
    }

    /// `None` for names that would lead out of the directory; they come from the server.
    fn resources_file(&self, group: &str, version: &str) -> Option<PathBuf> {
        let plain =
            |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
        if !plain(version) || !(group.is_empty() || plain(group)) {
            return None;
        }
        Some(self.dir.join(group).join(version).join("serverresources.json"))
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        {
            let state = self.state.lock();
            if state.invalidated && !state.ours.contains(path) {
                return None;
            }
        }
        let file = fs::File::open(path).ok()?;
        let written = file.metadata().ok()?.modified().ok()?;
        let now = (self.now)();
        // A clock that was set back must not make a file immortal: distance counts in both directions.
        let distance = now.duration_since(written).unwrap_or_else(|early| early.duration());
        if distance > self.ttl {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn write<T: Serialize>(&self, path: &Path, content: &T) -> io::Result<()> {
        let parent = path.parent().unwrap_or(&self.dir);
        create_dir(parent)?;
        let content = serde_json::to_vec(content)?;
        let temporary = Temporary::create(parent)?;
        let mut file = &temporary.file;
        file.write_all(&content)?;
        // The time of the file is the time of our clock, whatever the file system thinks.
        temporary.file.set_modified((self.now)())?;
        temporary.persist(path)?;
        self.state.lock().ours.insert(path.to_owned());
        Ok(())
    }
}

impl fmt::Debug for DiskCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskCache").field("dir", &self.dir).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// kubectl's directory for a server: the URL without its scheme, with `_` for all but letters, digits, dots
/// and slashes.
fn host_dir(server: &Uri) -> String {
    let authority = server.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let whole = format!("{host}{}", server.path().trim_end_matches('/'));
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/') { c } else { '_' };
    whole.chars().map(safe).collect::<String>().replace("..", "_")
}

fn create_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o750);
    builder.create(dir)
}

/// A file that vanishes unless it is given its name.
struct Temporary {
    path: PathBuf,
    file: fs::File,
    kept: bool,
}

impl Temporary {
    fn create(dir: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!(".discovery-{}-{number}.tmp", std::process::id()));
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file, kept: false }),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn persist(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing better can be done about it here.
            let _ = fs::remove_file(&self.path);
        }
    }
}
