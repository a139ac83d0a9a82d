//! Which configuration is found, and what is said where none is.

use std::fs;

use secrecy::ExposeSecret as _;

use super::*;

const DEV: &str = r#"
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: dev
  cluster: { server: "https://dev.example.com:6443" }
- name: prod
  cluster: { server: "https://prod.example.com", insecure-skip-tls-verify: false }
users:
- name: alice
  user: { token: "first" }
contexts:
- name: dev
  context: { cluster: dev, user: alice, namespace: shop }
- name: prod
  context: { cluster: prod, user: alice }
"#;

const OTHER: &str = r#"
apiVersion: v1
kind: Config
current-context: other
clusters:
- name: other
  cluster: { server: "https://other.example.com" }
users:
- name: alice
  user: { token: "second" }
contexts:
- name: other
  context: { cluster: other, user: alice }
"#;

struct Home {
    dir: tempfile::TempDir,
    kubeconfig: Option<OsString>,
    in_cluster: bool,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), kubeconfig: None, in_cluster: false }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn listing(mut self, files: &[&Path]) -> Self {
        self.kubeconfig = Some(std::env::join_paths(files).unwrap());
        self
    }

    fn loader(&self) -> ConfigLoader {
        let home = self.dir.path().as_os_str().to_owned();
        let kubeconfig = self.kubeconfig.clone();
        let in_cluster = self.in_cluster;
        let environment = Environment {
            variable: Arc::new(move |name| match name {
                "HOME" => Some(home.clone()),
                "KUBECONFIG" => kubeconfig.clone(),
                _ => None,
            }),
            in_cluster: Arc::new(move || {
                if in_cluster {
                    let mut config = Config::new(http::Uri::from_static("https://10.96.0.1"));
                    config.default_namespace = "operators\n".to_owned();
                    Ok(config)
                } else {
                    Err(InClusterError::ReadEnvironmentVariable(std::env::VarError::NotPresent))
                }
            }),
        };
        ConfigLoader { environment, ..ConfigLoader::new() }
    }
}

#[tokio::test]
async fn the_current_context_is_used_unless_another_is_named() {
    let home = Home::new();
    let path = home.file("config", DEV);
    let config = home.loader().kubeconfig(&path).load().await.unwrap();
    assert_eq!(config.cluster_url, "https://dev.example.com:6443/");
    assert_eq!(config.default_namespace, "shop");
    let config = home.loader().kubeconfig(&path).context("prod").namespace("ops").load().await.unwrap();
    assert_eq!(config.cluster_url, "https://prod.example.com/");
    assert_eq!(config.default_namespace, "ops");
}

#[tokio::test]
async fn several_files_are_merged_and_the_first_wins() {
    let home = Home::new();
    let (dev, other) = (home.file("a", DEV), home.file("b", OTHER));
    let home = home.listing(&[Path::new("/nonexistent/config"), &dev, &other]);
    let config = home.loader().load().await.unwrap();
    assert_eq!(config.cluster_url, "https://dev.example.com:6443/");
    let config = home.loader().context("other").load().await.unwrap();
    assert_eq!(config.cluster_url, "https://other.example.com/");
    assert_eq!(config.auth_info.token.unwrap().expose_secret(), "first");
}

#[tokio::test]
async fn a_pod_prefers_its_own_account_to_a_file_in_the_home_directory() {
    let mut home = Home::new();
    home.file(".kube/config", DEV);
    assert_eq!(home.loader().load().await.unwrap().default_namespace, "shop");
    home.in_cluster = true;
    assert_eq!(home.loader().load().await.unwrap().default_namespace, "operators");
    let named = home.loader().context("dev").load().await.unwrap();
    assert_eq!(named.default_namespace, "shop", "a context names a kubeconfig");
}

#[tokio::test]
async fn a_master_url_replaces_the_server_and_suffices_alone() {
    let home = Home::new();
    let config = home.loader().master("127.0.0.1:8001").load().await.unwrap();
    assert_eq!(config.cluster_url, "http://127.0.0.1:8001/");
    let path = home.file("config", DEV);
    let config = home.loader().kubeconfig(path).master("https://10.0.0.1:6443").load().await.unwrap();
    assert_eq!(config.cluster_url, "https://10.0.0.1:6443/");
    assert_eq!(config.default_namespace, "shop");
    let error = home.loader().master("http://").load().await.unwrap_err();
    assert!(matches!(error, ConfigError::Master { .. }), "{error}");
}

#[tokio::test]
async fn insecure_is_off_until_asked_for_and_kube_never_retries() {
    let home = Home::new();
    let path = home.file("config", DEV);
    let config = home.loader().kubeconfig(&path).load().await.unwrap();
    assert!(!config.accept_invalid_certs && !config.default_retry);
    let config = home.loader().kubeconfig(&path).insecure(true).load().await.unwrap();
    assert!(config.accept_invalid_certs);
}

#[tokio::test]
async fn nothing_configured_says_where_was_looked() {
    let home = Home::new();
    let error = home.loader().load().await.unwrap_err().to_string();
    assert!(error.contains("KUBECONFIG") && error.contains(".kube/config"), "{error}");
}

#[tokio::test]
async fn an_explicit_file_must_exist_and_so_must_one_of_those_listed() {
    let home = Home::new();
    let error = home.loader().kubeconfig("/nonexistent/config").load().await.unwrap_err();
    assert!(matches!(error, ConfigError::Read { .. }), "{error}");
    let home = home.listing(&[Path::new("/nonexistent/config")]);
    let error = home.loader().load().await.unwrap_err();
    assert!(matches!(error, ConfigError::AllMissing(_)), "{error}");
    let error = home.loader().context("x").load().await.unwrap_err();
    assert!(matches!(error, ConfigError::AllMissing(_)), "{error}");
}

#[tokio::test]
async fn an_unknown_context_is_named() {
    let home = Home::new();
    let path = home.file("config", DEV);
    let error = home.loader().kubeconfig(path).context("moon").load().await.unwrap_err();
    assert!(error.to_string().contains("moon"), "{error}");
}

#[tokio::test]
async fn a_malformed_kubeconfig_is_told_by_place_and_not_by_text() {
    let home = Home::new();
    let broken = DEV.replace("token: \"first\"", "token: [\"hunter2\"");
    let wrong = DEV.replace("token: \"first\"", "token: [\"hunter2\"]");
    for text in [broken, wrong] {
        let path = home.file("config", &text);
        let error = home.loader().kubeconfig(&path).load().await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(matches!(error, ConfigError::Malformed { .. }), "{shown}");
        assert!(shown.contains("line "), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
