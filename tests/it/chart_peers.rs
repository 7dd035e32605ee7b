//! Charts beside Helm itself, and in a registry that we did not write: what `helm push`, `helm pull`, `helm dependency build` and
//! `helm template` make of them.
//!
//! They need `helm`, or the one that the variable `HELM` names, one of them Debian's `docker-registry`, and one nginx. They are asked
//! for: `.ci/run` does, or `cargo test --test it chart_peers -- --ignored`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use addon_operator::config::Environment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::charts::{World, alpha, beta, chart, condition};
use crate::support::docker_registry::DockerRegistry;
use crate::support::in_process::ask_socket;
use crate::support::nginx::Nginx;
use crate::support::program::Workspace;
use crate::support::release;
use crate::support::repository::{Reply, Repository};
use crate::support::server::{self, get, ok};

/// Runs Helm with a home of its own. Returns whether it succeeded, and what it wrote.
fn helm(home: &Path, arguments: &[&str]) -> (bool, String) {
    #[expect(clippy::disallowed_methods, reason = "which helm it is, is said on demand")]
    let program = std::env::var_os("HELM").unwrap_or_else(|| "helm".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).env_clear().env("HOME", home).stdin(Stdio::null());
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let output = tokio::task::block_in_place(|| command.output());
    let output = output.unwrap_or_else(|error| panic!("helm: {error} (install helm)"));
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

fn helmed(home: &Path, arguments: &[&str]) -> String {
    let (is_fine, said) = helm(home, arguments);
    assert!(is_fine, "helm {arguments:?}: {said}");
    said
}

/// Returns the bytes of a package that is kept in one part.
async fn package(world: &World, name: &str) -> Vec<u8> {
    let part = world.map(name).await.unwrap_or_else(|| panic!("there is no {name}"));
    STANDARD.decode(part["binaryData"]["part"].as_str().unwrap()).unwrap()
}

/// Returns the objects of a manifest in their order, without the label that the operator adds to each.
fn objects(manifest: &str) -> Vec<Value> {
    let read = |document: &str| {
        // The end of its last line belongs to it.
        let mut object = values::yaml::parse(&format!("{document}\n")).unwrap();
        if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove("heritage");
            if labels.is_empty() {
                object["metadata"].as_object_mut().unwrap().remove("labels");
            }
        }
        object
    };
    chart::manifest::split_joined(manifest).into_iter().map(read).filter(|object| !object.is_null()).collect()
}

/// Returns the record of the first revision of a release, if there is one.
async fn released(world: &World, name: &str) -> Option<chart::record::Record> {
    let path = format!("/api/v1/namespaces/ops/secrets/sh.helm.release.v1.{name}.v1");
    Some(release::decoded(&get(&world.cluster.server, &path).await?))
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == kind)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry and helm"]
async fn b19_what_helm_pushed_to_a_real_registry_is_kept_and_told_when_it_is_pushed_again() {
    let registry = DockerRegistry::new().await;
    registry.docker_config();
    let home = tempfile::tempdir().unwrap();
    let (ca, config) = (registry.file("authority.pem"), registry.file("config.json"));
    let push = |packed: Vec<u8>| {
        fs::write(home.path().join("pushed.tgz"), packed).unwrap();
        let to = registry.url("/charts");
        helmed(home.path(), &["push", "pushed.tgz", &to, "--ca-file", &ca, "--registry-config", &config]);
    };
    push(alpha("0.1.0"));
    push(alpha("0.1.1+3"));
    let world = World::new().await;
    let secret = json!({"metadata": {"name": "auth"}, "stringData": {"user": "joe", "password": "hunter2"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    let module = "chart: {repository: corp, name: alpha, version: '0.1.0'}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", module);
    let young = "chart: {repository: corp, name: alpha, version: '~0.1', minAge: 72h}\nvaluesLayout: root\n";
    world.cluster.write("modules/050-young/module.yaml", young);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\nyoungEnabled: true\n");
    let operator = world.cluster.start(&[("source-allow", "localhost"), ("source-ca", &ca)]).await;
    let charts = json!([{"name": "alpha", "versions": ["~0.1", "0.1.0"]}]);
    let spec = json!({"name": "corp", "url": registry.url("/charts"), "charts": charts});
    world.apply("Repository", "corp", spec.clone()).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("401 Unauthorized: it wants user and password"), "{said}");
    world.apply("Repository", "corp", json!({"authSecret": "auth"})).await;
    let kept = world.synced("Chart", "alpha-corp").await;
    let versions: Vec<&Value> =
        kept["status"]["resolved"].as_array().unwrap().iter().map(|line| &line["version"]).collect();
    assert_eq!(versions, ["0.1.1+3", "0.1.0"]);
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.0-1").await, alpha("0.1.0"));
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    // Helm wrote when it pushed.
    let said = world.failed("Chart", "module-young", "initChartFailed").await;
    assert!(said.contains("is too new yet"), "{said}");

    push(chart("alpha", "0.1.0", "", &[("values.yaml", b"says: other\n")]));
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    let told = world.settled("Chart", "alpha-corp", |object| has_condition(object, "DigestChanged")).await;
    assert_eq!(condition(&told)["status"], "True");
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.0-1").await, alpha("0.1.0"));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry and helm"]
async fn b19_of_a_real_registry_a_constraint_takes_what_helm_pulls() {
    let registry = DockerRegistry::new().await;
    registry.docker_config();
    let (ca, config) = (registry.file("authority.pem"), registry.file("config.json"));
    let login = ["--ca-file", &ca, "--registry-config", &config];
    let to = registry.url("/charts");
    for version in ["0.1.0", "1.0.0+3", "1.0.0+1", "1.2.0", "1.3.0-rc.1"] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("pushed.tgz"), alpha(version)).unwrap();
        helmed(home.path(), &[&["push", "pushed.tgz", &to][..], &login].concat());
    }
    let constraints = [
        "1.0.0+3",
        "1.0.0+1",
        "1.0.0+9",
        "1.0.0",
        "1.0",
        "1",
        "v1.2.0",
        "=1.0.0",
        "~1.0",
        "^1",
        "<1.2",
        "!=1.2.0",
        ">=1.3.0-0",
        "*",
    ];
    let url = registry.url("/charts/alpha");
    let mut pulled = BTreeMap::new();
    for constraint in constraints {
        let home = tempfile::tempdir().unwrap();
        let (is_pulled, _) =
            helm(home.path(), &[&["pull", &url, "--version", constraint][..], &login].concat());
        if is_pulled {
            let file = fs::read_dir(home.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let file = file
                .into_iter()
                .find(|name| Path::new(name).extension().is_some_and(|extension| extension == "tgz"))
                .unwrap();
            let version = file.trim_start_matches("alpha-").trim_end_matches(".tgz").to_owned();
            pulled.insert(constraint.to_owned(), version);
        }
    }
    let world = World::new().await;
    let secret = json!({"metadata": {"name": "auth"}, "stringData": {"user": "joe", "password": "hunter2"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    let operator = world.cluster.start(&[("source-allow", "localhost"), ("source-ca", &ca)]).await;
    let charts = json!([{"name": "alpha", "versions": constraints}]);
    let spec = json!({"name": "corp", "url": to, "charts": charts, "authSecret": "auth"});
    world.apply("Repository", "corp", spec).await;
    let said = world.failed("Chart", "alpha-corp", "initChartFailed").await;
    assert!(said.contains("has the tag \"1.0.0+9\"") && said.contains("~1.0 is a range"), "{said}");
    let resolved = world.object("Chart", "alpha-corp").await["status"]["resolved"].clone();
    let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    let taken: BTreeMap<String, String> = resolved
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (text(line, "constraint"), text(line, "version")))
        .collect();
    assert_eq!(taken, pulled);
    operator.stop().await;
}

/// What Helm reads and writes on the way to a repository behind nginx.
struct Published<'p> {
    nginx: &'p Nginx,
    home: TempDir,
    ca: String,
}

impl<'p> Published<'p> {
    fn new(nginx: &'p Nginx) -> Self {
        let ca = nginx.dir.path().join("authority.pem").display().to_string();
        fs::create_dir(nginx.dir.path().join("charts")).unwrap();
        Self { nginx, home: tempfile::tempdir().unwrap(), ca }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/charts", self.nginx.port)
    }

    fn directory(&self) -> PathBuf {
        self.nginx.dir.path().join("charts")
    }

    /// Packs a chart anew, and adds it to the index.
    fn add(&self, packed: &[u8], index: &[&str]) {
        tar::Archive::new(GzDecoder::new(packed)).unpack(self.home.path().join("source")).unwrap();
        let directory = self.directory().display().to_string();
        for source in fs::read_dir(self.home.path().join("source")).unwrap() {
            let source = source.unwrap().path();
            helmed(self.home.path(), &["package", &source.display().to_string(), "-u", "-d", &directory]);
            fs::remove_dir_all(source).unwrap();
        }
        helmed(self.home.path(), &[&["repo", "index", &directory][..], index].concat());
        let user = ["--username", "joe", "--password", "hunter2", "--ca-file", &self.ca];
        let url = self.url();
        let add = ["repo", "add", "--force-update", "corp", &url];
        helmed(self.home.path(), &[&add[..], &user].concat());
    }

    fn has_answered(&self, answer: &str, times: usize) -> bool {
        self.nginx.answers().iter().filter(|line| *line == answer).count() >= times
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nginx and helm"]
async fn b01_b15_a_repository_that_helm_indexed_is_read_from_nginx_and_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = format!("root {};", dir.path().display());
    let nginx = Nginx::start("nginx-light", dir, &root).await;
    let published = Published::new(&nginx);
    published.add(&alpha("0.1.0"), &[]);
    published.add(&beta("0.1.0", &published.url(), "~0.1"), &[]);
    let world = World::new().await;
    world.write_module("alpha", "~0.1");
    let follows =
        "chart: {repository: corp, name: alpha, version: '~0.1', autoUpgrade: true}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", follows);
    let operator = world.cluster.start(&[("source-allow", "localhost"), ("source-ca", &published.ca)]).await;
    let charts = json!([{"name": "beta", "versions": ["*"]}]);
    let spec = json!({"name": "corp", "url": published.url(), "charts": charts, "sync": {"interval": 1}});
    world.apply("Repository", "corp", spec).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("401"), "{said}");
    let secret = json!({"metadata": {"name": "auth"}, "stringData": {"user": "joe", "password": "hunter2"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    world.apply("Repository", "corp", json!({"authSecret": "auth"})).await;
    world.synced("Chart", "beta-corp").await;
    world.synced("Chart", "alpha-corp").await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    for name in ["alpha-0.1.0", "beta-0.1.0"] {
        let file = fs::read(published.directory().join(format!("{name}.tgz"))).unwrap();
        assert_eq!(package(&world, &format!("helm-pkg-corp-{name}-1")).await, file, "{name}");
    }
    server::until("an index that did not change", || published.has_answered("GET /charts/index.yaml 304", 2))
        .await;

    // From now on the index names whole URLs.
    let merge = published.directory().join("index.yaml").display().to_string();
    published.add(&alpha("0.1.1"), &["--merge", &merge, "--url", &published.url()]);
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1").await;
    world.settled("Chart", "alpha-corp", |chart| chart["status"]["resolved"][0]["version"] == "0.1.1").await;
    helmed(published.home.path(), &["pull", "corp/alpha", "--version", "~0.1"]);
    let pulled = fs::read(published.home.path().join("alpha-0.1.1.tgz")).unwrap();
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.1-1").await, pulled);
    // Helm fetched it once, for beta, and so did we.
    assert!(!published.has_answered("GET /charts/alpha-0.1.0.tgz 200", 3), "it was fetched again");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs helm, and runs it 500 times"]
async fn helm_still_takes_the_versions_that_were_recorded() {
    let truth: Value =
        serde_json::from_str(include_str!("../../crates/source/tests/random_constraints.json")).unwrap();
    let repository = Repository::plain().await;
    for (name, versions) in truth["lists"].as_object().unwrap() {
        let entry = |(place, version): (usize, &Value)| json!({"apiVersion": "v2", "name": "web", "version": version, "urls": [format!("p{place}.tgz")]});
        let versions = versions.as_array().unwrap();
        for place in 0..versions.len() {
            repository.put(&format!("/{name}/p{place}.tgz"), Reply::File(b"x".to_vec()));
        }
        let entries: Vec<Value> = versions.iter().enumerate().map(entry).collect();
        let index = json!({"apiVersion": "v1", "entries": {"web": entries}}).to_string();
        repository.put(&format!("/{name}/index.yaml"), Reply::File(index.into_bytes()));
    }
    let mut wrong = Vec::new();
    let cases = truth["choices"].as_array().unwrap();
    assert_eq!(cases.len(), 500);
    for case in cases {
        let (list, constraint) = (case["list"].as_str().unwrap(), case["constraint"].as_str().unwrap());
        let home = tempfile::tempdir().unwrap();
        let url = repository.url(&format!("/{list}"));
        let mut arguments = vec!["pull", "web", "--repo", &url];
        if !constraint.is_empty() {
            arguments.extend(["--version", constraint]);
        }
        helm(home.path(), &arguments);
        let pulled = (0..100).find(|place| home.path().join(format!("p{place}.tgz")).exists());
        let chosen = pulled.map_or(&Value::Null, |place| &truth["lists"][list][place]);
        if *chosen != case["chosen"] {
            wrong.push(format!("{list} {constraint:?}: {chosen} instead of {}", case["chosen"]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Publishes `alpha`, and `gamma` in another directory.
fn publish(world: &World, versions: &[&'static str]) {
    let all: Vec<_> = versions.iter().map(|version| ("alpha", *version, alpha(version))).collect();
    world.publish("", &all);
    world
        .publish("/extra", &[("gamma", "1.0.0", chart("gamma", "1.0.0", "", &[("values.yaml", b"x: 1\n")]))]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs helm"]
async fn helm_dependency_build_puts_the_same_archives_into_charts() {
    let world = World::new().await;
    publish(&world, &["0.1.0", "0.1.1"]);
    let (url, extra) = (world.repository.url(""), world.repository.url("/extra"));
    let metadata = format!(
        "apiVersion: v2\nname: cache\nversion: 0.1.0\ndependencies:\n- {{name: alpha, version: '~0.1', repository: '{url}'}}\n- {{name: gamma, version: '>=1', repository: '{extra}'}}\n"
    );
    world.cluster.write("modules/040-cache/Chart.yaml", &metadata);
    world.cluster.write("modules/040-cache/module.yaml", "valuesLayout: root\n");
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    let home = tempfile::tempdir().unwrap();
    let ca = world.repository.write_authority(home.path()).display().to_string();
    let run_helm = || {
        let to = home.path().join("cache");
        let _ = fs::remove_dir_all(&to);
        fs::create_dir(&to).unwrap();
        for file in ["Chart.yaml", "Chart.lock"] {
            let from = world.cluster.path("modules/040-cache").join(file);
            if from.exists() {
                fs::copy(from, to.join(file)).unwrap();
            }
        }
        for (name, url) in [("corp", &url), ("extra", &extra)] {
            helmed(home.path(), &["repo", "add", "--force-update", name, url, "--ca-file", &ca]);
        }
        helmed(home.path(), &["dependency", "build", "cache"]);
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
        };
        fs::read_dir(to.join("charts")).unwrap().map(read).collect::<BTreeMap<String, Vec<u8>>>()
    };
    let built = run_helm();
    assert_eq!(built.keys().collect::<Vec<_>>(), ["alpha-0.1.1", "gamma-1.0.0"]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": url})).await;
    world.apply("Repository", "extra", json!({"name": "extra", "url": extra})).await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1").await;
    for (repository, (name, archive)) in ["corp", "extra"].into_iter().zip(&built) {
        assert_eq!(package(&world, &format!("helm-pkg-{repository}-{name}-1")).await, *archive, "{name}");
    }
    operator.stop().await;

    // A newer version comes, and Helm's lock says which one was taken.
    let lock = fs::read_to_string(home.path().join("cache/Chart.lock")).unwrap();
    world.cluster.write("modules/040-cache/Chart.lock", &lock);
    publish(&world, &["0.1.0", "0.1.1", "0.1.2"]);
    assert_eq!(run_helm(), built);
    let operator = world.start().await;
    let has_taken = |object: &Value| object["spec"]["versions"] == json!(["0.1.1"]);
    world.settled("Chart", "module-cache.alpha", has_taken).await;
    world.synced("Chart", "module-cache.alpha").await;
    assert_eq!(world.map("shown").await.unwrap()["data"]["version"], "0.1.1");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs helm"]
async fn a_chart_that_a_module_names_is_rendered_as_helm_does_it() {
    let world = World::new().await;
    let template = "{{- range $name, $size := .Values.sizes }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $.Release.Name }}-{{ $name }}\n  labels: {{- include \"delta.labels\" $ | nindent 4 }}\ndata:\n  size: {{ $size | quote }}\n{{- end }}\n";
    let labels = "{{- define \"delta.labels\" -}}\nchart: {{ .Chart.Name }}-{{ .Chart.Version }}\nrelease: {{ .Release.Service }}\n{{- end }}\n";
    let account = "{{ if .Values.account }}apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: delta, namespace: {{ .Release.Namespace }}}\n{{ end }}";
    let delta = chart(
        "delta",
        "1.2.3",
        "",
        &[
            ("values.yaml", b"sizes: {small: 1, large: 20}\naccount: true\n"),
            ("templates/_labels.tpl", labels.as_bytes()),
            ("templates/maps.yaml", template.as_bytes()),
            ("templates/account.yaml", account.as_bytes()),
        ],
    );
    world.publish("", &[("delta", "1.2.3", delta.clone())]);
    let module = "chart: {repository: corp, name: delta, version: '^1'}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-delta/module.yaml", module);
    world.cluster.write("modules/values.yaml", "deltaEnabled: true\n");
    world.cluster.put("addon-operator", json!({"data": {"delta": "sizes: {medium: 7}\n"}})).await;
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    server::until_asked("the release", async || released(&world, "delta").await.is_some()).await;
    let record = released(&world, "delta").await.unwrap();
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("delta.tgz"), delta).unwrap();
    fs::write(home.path().join("values.yaml"), "sizes: {medium: 7}\n").unwrap();
    let rendered = helmed(home.path(), &["template", "delta", "delta.tgz", "-n", "ops", "-f", "values.yaml"]);
    let own = Workspace::new();
    let ask = ["template", "delta", "delta.tgz", "-n", "ops", "-f", "values.yaml"];
    for name in ["delta.tgz", "values.yaml"] {
        fs::copy(home.path().join(name), own.path().join(name)).unwrap();
    }
    let (code, printed) = tokio::task::block_in_place(|| own.ask(&ask));
    assert_eq!((code, &printed), (0, &rendered));
    assert_eq!(objects(&record.manifest), objects(&rendered));
    operator.stop().await;
}

/// What became of a chart that a module names.
enum Installed {
    AsHelmRenders,
    Otherwise(String),
    /// Helm does not render it either, with its defaults.
    Refused,
    /// It renders, and does not come to a release.
    Not(String),
}

/// Installs a packed chart through a module that names it, and compares what the release has with what Helm renders.
async fn installed(packed: &[u8], are_labelled: bool) -> Installed {
    let head = chart::load::from_archive(packed, &mut chart::warnings::Warnings::default()).unwrap().metadata;
    let (name, version) = (head.name.clone(), head.version.clone());
    let world = World::new().await;
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("popular.tgz"), packed).unwrap();
    let versions =
        get(&world.cluster.server, "/version").await.unwrap()["gitVersion"].as_str().unwrap().to_owned();
    let render = || {
        helm(
            home.path(),
            &["template", "popular", "popular.tgz", "-n", "ops", "--no-hooks", "--kube-version", &versions],
        )
    };
    // What it draws at random differs between two runs.
    let [(is_rendered, one), (_, other)] = [render(), render()];
    if !is_rendered {
        return Installed::Refused;
    }
    world.publish("", &[(&name, &version, packed.to_vec())]);
    let module = format!(
        "chart: {{repository: corp, name: {name}, version: '{version}'}}\nvaluesLayout: root\nretry: {{attempts: 1, then: skip}}\n"
    );
    world.cluster.write("modules/040-popular/module.yaml", &module);
    world.cluster.write("modules/values.yaml", "popularEnabled: true\n");
    let options = world.options();
    let labels = if are_labelled { "heritage=addon-operator" } else { "" };
    let more = [("crd-extra-labels", labels), ("helm-timeout", "1s")];
    let operator = world.cluster.start(&[&options[..], &more[..]].concat()).await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    let phase = || ask_socket(&world.cluster, "/why/module/popular");
    let has_ended = async || {
        let said = tokio::task::block_in_place(phase);
        released(&world, "popular").await.is_some() || said.contains("skipped") || said.contains("failed")
    };
    server::until_asked(&name, has_ended).await;
    let record = released(&world, "popular").await;
    let said = tokio::task::block_in_place(phase);
    operator.stop().await;
    let Some(record) = record else { return Installed::Not(said) };
    let is_random = |place: usize| one.lines().nth(place) != other.lines().nth(place);
    if are_labelled {
        let (ours, theirs) = (objects(&record.manifest), objects(&one));
        let is_fixed = one == other;
        return match ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs) {
            None if ours.len() == theirs.len() => Installed::AsHelmRenders,
            Some(_) if !is_fixed => Installed::AsHelmRenders,
            differs => {
                Installed::Otherwise(format!("{} of {} objects, {differs:?}", ours.len(), theirs.len()))
            }
        };
    }
    let mut lines = record.manifest.lines().zip(one.lines()).enumerate();
    match lines.find(|(place, (ours, theirs))| ours != theirs && !is_random(*place)) {
        None if one != other || record.manifest == one => Installed::AsHelmRenders,
        None => Installed::Otherwise("the lengths differ".to_owned()),
        Some((place, (ours, theirs))) => {
            Installed::Otherwise(format!("line {place}: {ours:?} instead of {theirs:?}"))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "POPULAR_CHARTS names a directory with packed charts; it needs helm"]
async fn charts_of_others_that_modules_name_are_installed_as_helm_renders_them() {
    let environment = Environment::of_process();
    let Some(given) = environment.text("POPULAR_CHARTS") else {
        eprintln!("skipped: POPULAR_CHARTS names no directory with packed charts");
        return;
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(given).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut counts, mut wrong) = ([0; 3], Vec::new());
    for path in paths {
        let packed = fs::read(&path).unwrap();
        for are_labelled in [false, true] {
            let place = match installed(&packed, are_labelled).await {
                Installed::AsHelmRenders => 0,
                Installed::Refused => 1,
                Installed::Not(why) => {
                    eprintln!("{} is not installed: {why}", path.display());
                    2
                }
                Installed::Otherwise(how) => {
                    wrong.push(format!("{}: {how}", path.display()));
                    continue;
                }
            };
            counts[place] += 1;
        }
    }
    let [same, refused, not] = counts;
    eprintln!(
        "{same} as Helm renders them, {refused} that Helm refuses, {not} not installed, {} otherwise",
        wrong.len()
    );
    assert_eq!(wrong, Vec::<String>::new());
}
