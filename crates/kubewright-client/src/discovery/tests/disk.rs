//! What is kept on disk, for how long, and what happens when it is not what it should be.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use super::*;

/// A file clock that the test sets.
#[derive(Clone)]
struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000))))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }

    fn cache(&self, dir: &Path) -> DiskCache {
        let clock = self.clone();
        DiskCache::at(dir).clock(move || *clock.0.lock())
    }
}

#[tokio::test]
async fn the_disk_serves_a_new_process_until_its_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let (_, log, discovery) = serve(Form::Aggregated);
    let process = || discovery.disk_cache(clock.cache(dir.path()));
    let first = process().resources().await.unwrap();
    assert_eq!(log.lines().len(), 2);

    clock.advance(Duration::from_hours(6));
    assert_eq!(process().resources().await.unwrap(), first, "what comes from disk is what went there");
    assert_eq!(log.lines().len(), 2, "nobody was asked");

    clock.advance(Duration::from_secs(1));
    process().resources().await.unwrap();
    assert_eq!(log.lines().len(), 4, "six hours are over");
}

#[tokio::test]
async fn the_time_to_live_can_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let (_, log, discovery) = serve(Form::Aggregated);
    let process = || discovery.disk_cache(clock.cache(dir.path()).ttl(Duration::from_mins(1)));
    process().resources().await.unwrap();
    clock.advance(Duration::from_secs(61));
    process().resources().await.unwrap();
    assert_eq!(log.lines().len(), 4);
}

#[tokio::test]
async fn the_age_of_a_file_is_its_modification_time() {
    let dir = tempfile::tempdir().unwrap();
    let (_, log, discovery) = serve(Form::Aggregated);
    // The real clock: only the files are made older, or newer than now.
    let process = || discovery.disk_cache(DiskCache::at(dir.path()));
    process().resources().await.unwrap();
    let groups = fs::File::options().write(true).open(dir.path().join("servergroups.json")).unwrap();
    for (shift, requests) in [(5, 2), (7, 4)] {
        groups.set_modified(SystemTime::now() - Duration::from_hours(shift)).unwrap();
        process().resources().await.unwrap();
        assert_eq!(log.lines().len(), requests, "{shift} hours old");
    }
    let groups = fs::File::options().write(true).open(dir.path().join("servergroups.json")).unwrap();
    groups.set_modified(SystemTime::now() + Duration::from_hours(7)).unwrap();
    process().resources().await.unwrap();
    assert_eq!(log.lines().len(), 6, "a file from the future is no better");
}

#[tokio::test]
async fn invalidation_distrusts_the_files_of_others_and_keeps_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let (_, log, discovery) = serve(Form::Aggregated);
    discovery.disk_cache(clock.cache(dir.path())).resources().await.unwrap();
    let mine = discovery.disk_cache(clock.cache(dir.path()));
    mine.invalidate();
    mine.resources().await.unwrap();
    assert_eq!(log.lines().len(), 4, "the files of the other process are too old by definition");
    mine.resources().await.unwrap();
    assert_eq!(log.lines().len(), 4);
}

#[tokio::test]
async fn files_are_where_kubectl_looks_and_hold_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let (_, _, discovery) = serve(Form::Aggregated);
    let server = "https://alice@10.0.0.1:6443/k8s/clusters/c-1".parse().unwrap();
    let cache = DiskCache::below(dir.path(), &server).clock({
        let clock = clock.clone();
        move || *clock.0.lock()
    });
    discovery.disk_cache(cache).resources().await.unwrap();
    let root = dir.path().join("discovery/10.0.0.1_6443/k8s/clusters/c_1");
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(root.join(path)).unwrap()).unwrap()
    };
    let groups = read("servergroups.json");
    assert_eq!(groups["kind"], "APIGroupList");
    assert_eq!(groups["groups"][0]["name"], "");
    assert_eq!(groups["groups"][1]["preferredVersion"]["groupVersion"], "apps/v1");
    let apps = read("apps/v1/serverresources.json");
    assert_eq!(apps["kind"], "APIResourceList");
    assert_eq!(apps["groupVersion"], "apps/v1");
    let scale = &apps["resources"][1];
    assert_eq!(
        (&scale["name"], &scale["group"], &scale["kind"]),
        (&"deployments/scale".into(), &"autoscaling".into(), &"Scale".into())
    );
    assert_eq!(read("v1/serverresources.json")["resources"][0]["name"], "pods");
}

#[cfg(unix)]
#[tokio::test]
async fn files_belong_to_their_owner_alone_and_leave_no_half_ones_behind() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (_, _, discovery) = serve(Form::Aggregated);
    discovery.disk_cache(DiskCache::at(dir.path().join("cache"))).resources().await.unwrap();
    let mut files = Vec::new();
    let mut dirs = vec![dir.path().join("cache")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o007, 0, "{dir:?}");
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { dirs.push(path) } else { files.push(path) }
        }
    }
    assert_eq!(files.len(), 11);
    for file in files {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        assert_eq!(file.extension().unwrap(), "json", "{file:?}");
    }
}

#[tokio::test]
async fn corrupt_files_are_asked_for_again_and_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let (_, log, discovery) = serve(Form::Aggregated);
    let process = || discovery.disk_cache(DiskCache::at(dir.path()));
    let expected = process().resources().await.unwrap();
    let apps = dir.path().join("apps/v1/serverresources.json");
    let groups = dir.path().join("servergroups.json");
    let other = fs::read(dir.path().join("v1/serverresources.json")).unwrap();
    for (file, content, asked) in [
        (&apps, b"{\"groupVersion\":\"apps/v1\",\"resou".to_vec(), vec!["GET /apis/apps/v1"]),
        (&apps, b"\xff\xfe".to_vec(), vec!["GET /apis/apps/v1"]),
        (&apps, other, vec!["GET /apis/apps/v1"]),
        (&groups, Vec::new(), vec!["GET /api", "GET /apis"]),
        (&groups, b"{\"groups\":[]}".to_vec(), vec!["GET /api", "GET /apis"]),
    ] {
        fs::write(file, content).unwrap();
        log.clear();
        assert_eq!(process().resources().await.unwrap(), expected);
        let mut lines = log.lines();
        lines.sort();
        assert_eq!(lines, asked);
        log.clear();
        assert_eq!(process().resources().await.unwrap(), expected);
        assert!(log.lines().is_empty(), "it was rewritten");
    }
}

#[tokio::test]
async fn a_disk_that_lacks_much_is_not_asked_around_for_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let (_, log, discovery) = serve(Form::Aggregated);
    let process = || discovery.disk_cache(DiskCache::at(dir.path()));
    process().resources().await.unwrap();
    for group in ["apps", "autoscaling", "old.example.com"] {
        fs::remove_dir_all(dir.path().join(group)).unwrap();
    }
    log.clear();
    process().resources().await.unwrap();
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["GET /api", "GET /apis"]);
}

#[tokio::test]
async fn what_failed_is_not_written_down_and_is_tried_again_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let down = "metrics.k8s.io/v1beta1";
    for form in [Form::Aggregated, Form::Old] {
        let (cluster, log, discovery) = serve(form);
        cluster.change(|state| state.down.push(down));
        let process = || discovery.disk_cache(DiskCache::at(dir.path().join(format!("{form:?}"))));
        process().resources().await.unwrap();
        log.clear();
        assert_eq!(process().resources().await.unwrap().failures.len(), 1);
        assert_eq!(log.lines(), ["GET /apis/metrics.k8s.io/v1beta1"], "{form:?}");
        cluster.change(|state| state.down.clear());
        assert!(process().resources().await.unwrap().failures.is_empty());
        log.clear();
        process().resources().await.unwrap();
        assert!(log.lines().is_empty(), "now it was written down");
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_never_fails_discovery() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let (_, _, discovery) = serve(Form::Aggregated);
    for path in [file.join("below-a-file"), PathBuf::from("/proc/none"), file] {
        assert!(!discovery.disk_cache(DiskCache::at(path)).resources().await.unwrap().groups.is_empty());
    }
}

#[tokio::test]
async fn names_that_lead_out_of_the_directory_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (cluster, _, discovery) = serve(Form::Aggregated);
    cluster.change(|state| {
        state.served.push(Served::new("..", "v1", "things", "Thing"));
        state.served.push(Served::new("x", "../../..", "things", "Thing"));
    });
    let cache = dir.path().join("a/b/c");
    discovery.disk_cache(DiskCache::at(&cache)).resources().await.unwrap();
    assert!(!dir.path().join("a/b/v1").exists());
    assert!(!dir.path().join("a/serverresources.json").exists());
}

#[tokio::test]
async fn several_processes_may_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_, _, discovery) = serve(Form::Aggregated);
    let processes: Vec<_> = (0..8).map(|_| discovery.disk_cache(DiskCache::at(dir.path()))).collect();
    let answers = join_all(processes.iter().map(DiscoveryClient::resources)).await;
    let first = answers[0].as_ref().unwrap();
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap() == first));
    assert_eq!(discovery.disk_cache(DiskCache::at(dir.path())).resources().await.unwrap(), *first);
}
