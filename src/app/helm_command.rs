//! The `helm` program of `--helm-backend=cli`, and which cluster it talks to.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::surroundings::Surroundings;
use crate::config::{Environment, Settings};
use crate::helm::{HelmCommand, HelmCommandOptions, write_private};
use crate::hook::Scratch;

/// Variables that lead `helm` to a cluster, or to a name in it, begin so. The operator takes its own from options.
const CLUSTER: &str = "HELM_KUBE";

/// The variable that names a namespace to `helm`.
const NAMESPACE: &str = "HELM_NAMESPACE";

/// Where a Pod finds who it is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Returns the program, which was asked for its version. Its files are in a directory of its own, as those of hooks are.
///
/// # Errors
///
/// When there is no directory for its files, or the program can't be used.
pub(super) async fn of(around: &Surroundings) -> anyhow::Result<Arc<HelmCommand>> {
    let settings = &around.settings;
    let scratch = Scratch::open(settings.tmp_dir.as_deref(), false)?;
    let access = access(settings, &around.environment, scratch.path()).context("the kubeconfig for helm")?;
    let options = HelmCommandOptions {
        bin: settings.helm_bin.clone(),
        environment: variables(&around.environment, scratch.path()),
        access,
        directory: Arc::new(scratch),
    };
    Ok(Arc::new(HelmCommand::new(options).await?))
}

/// Returns the environment of the program: that of the operator, but for what would lead it elsewhere than the operator goes.
fn variables(environment: &Environment, directory: &Path) -> Vec<(OsString, OsString)> {
    // Records of releases are where the operator looks for them.
    let mut environment = environment.clone().with("HELM_DRIVER", "secret");
    if environment.text("HOME").is_none_or(str::is_empty) {
        // It keeps what it knows of the cluster there, or else in the directory in which the operator was started.
        environment = environment.with("HOME", directory);
    }
    let leads_elsewhere = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with(CLUSTER) || name == NAMESPACE
    };
    let kept = environment.variables().filter(|(name, _)| !leads_elsewhere(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the options that lead to the cluster of the operator. In a Pod, a kubeconfig is written into `directory`.
fn access(
    settings: &Settings,
    environment: &Environment,
    directory: &Path,
) -> std::io::Result<Vec<OsString>> {
    let mut access: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: &str| {
        if !value.is_empty() {
            access.extend([OsString::from(name), OsString::from(value)]);
        }
    };
    option("--kubeconfig", &settings.kube_config);
    option("--kube-context", &settings.kube_context);
    option("--kube-apiserver", &settings.kube_server);
    let text = |name: &str| environment.text(name).filter(|text| !text.is_empty());
    let home_has_one = text("HOME").is_some_and(|home| Path::new(home).join(".kube/config").exists());
    let is_named = !settings.kube_config.is_empty() || !settings.kube_context.is_empty();
    if !is_named
        && !home_has_one
        && text("KUBECONFIG").is_none()
        && let Some(host) = text("KUBERNETES_SERVICE_HOST")
    {
        let path = directory.join("kubeconfig");
        write_private(&path, in_cluster(host, text("KUBERNETES_SERVICE_PORT").unwrap_or("443")).as_bytes())?;
        access.extend([OsString::from("--kubeconfig"), path.into_os_string()]);
    }
    Ok(access)
}

/// Returns a kubeconfig that leads to the API server as every Pod finds it. The token is read again when it is a new one.
fn in_cluster(host: &str, port: &str) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let name = "in-cluster";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": format!("https://{host}:{port}"),
            "certificate-authority": format!("{SERVICE_ACCOUNT}/ca.crt"),
        }}],
        "users": [{"name": name, "user": {"tokenFile": format!("{SERVICE_ACCOUNT}/token")}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::OptionSources;

    fn settings(flags: &[(&str, &str)]) -> Settings {
        let given = [("namespace", "ops")].iter().chain(flags);
        let flags: BTreeMap<String, String> =
            given.map(|&(flag, text)| (flag.to_owned(), text.to_owned())).collect();
        Settings::new(&OptionSources::new(flags, Environment::default())).unwrap()
    }

    #[test]
    fn in_a_pod_it_gets_a_kubeconfig_that_nobody_else_can_read() {
        let temp = tempfile::tempdir().unwrap();
        let pod = Environment::default().with("KUBERNETES_SERVICE_HOST", "fd00::1");
        let found = access(&settings(&[]), &pod, temp.path()).unwrap();
        let path = temp.path().join("kubeconfig");
        assert_eq!(found, [OsString::from("--kubeconfig"), path.clone().into_os_string()]);
        let config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://[fd00::1]:443");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn variables_that_lead_helm_elsewhere_do_not_reach_it() {
        let names = [
            "KUBEAPISERVER",
            "KUBEASUSER",
            "KUBEASGROUPS",
            "KUBECONTEXT",
            "KUBETOKEN",
            "KUBECAFILE",
            "NAMESPACE",
            "PLUGINS",
            "DRIVER",
        ];
        let around = names.iter().fold(Environment::default(), |environment, name| {
            environment.with(&format!("HELM_{name}"), "elsewhere")
        });
        let found = variables(&around.with("PATH", "/bin").with("KUBECONFIG", "/e"), Path::new("/scratch"));
        let found: BTreeMap<&str, &str> =
            found.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap())).collect();
        let expected = [
            ("HELM_DRIVER", "secret"),
            ("HELM_PLUGINS", "elsewhere"),
            ("HOME", "/scratch"),
            ("KUBECONFIG", "/e"),
            ("PATH", "/bin"),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn a_kubeconfig_that_is_named_is_the_one_that_counts() {
        let temp = tempfile::tempdir().unwrap();
        let pod = Environment::default().with("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let named = settings(&[("kube-config", "/k"), ("kube-context", "c")]);
        assert_eq!(access(&named, &pod, temp.path()).unwrap(), ["--kubeconfig", "/k", "--kube-context", "c"]);
        let of_environment = pod.with("KUBECONFIG", "/e");
        assert!(access(&settings(&[]), &of_environment, temp.path()).unwrap().is_empty());
        assert!(!temp.path().join("kubeconfig").exists());
    }
}
