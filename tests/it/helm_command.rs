//! Releases that a `helm` program changes: what it is started with, and what the operator makes of its end. A script stands for it.
//!
//! With the real program they are in `helm_peers`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use addon_operator::helm::{Cancellation, Helm, HelmCommand, HelmCommandOptions, ReleaseRun};
use chart::record::{Info, Record, Status};
use engine::{ApplyMode, Failure, ReleaseAction, ReleaseName, ReleaseOutcome, TakenFrom, TakenObject};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::support::DEADLINE;
use crate::support::files::write;
use crate::support::pause::pause;
use crate::support::release::{CRD, NAMESPACE, ReleaseFixture, encoded, record_secret, says, secrets};

/// A directory with a script that stands for `helm`, and what it was started with.
struct Script {
    dir: TempDir,
}

impl Script {
    /// Returns one that renders a chart by handing out its templates, and does this for an upgrade.
    fn new(version: &str, upgrade: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "#!/bin/sh\nset -e\nhere='{here}'\n[ \"$1\" = version ] || echo \"$*\" >>\"$here/calls\"\n\
             case $1 in\nversion) echo '{version}';;\n\
             template) stat -c %a \"$5\" >>\"$here/modes\"; for file in \"$3\"/templates/*; do [ \"${{file##*/}}\" = NOTES.txt ] && continue; echo ---; echo \"# Source: web/templates/${{file##*/}}\"; cat \"$file\"; done;;\n\
             upgrade) stat -c %a \"$5\" >>\"$here/modes\"; rm -rf \"$here/seen\"; cp -r \"$3\" \"$here/seen\"; {upgrade};;\n\
             uninstall) {upgrade};;\nesac\n",
            here = dir.path().display()
        );
        let path = dir.path().join("helm");
        write(&path, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// Has the first `helm template` fail, as where the cluster does not know a kind.
    fn failing_first(self) -> Self {
        let text = self.read("helm");
        let fails = "template) if [ ! -e \"$here/failed\" ]; then touch \"$here/failed\"; echo 'Error: no matches for kind \"Sub\"' >&2; exit 1; fi;";
        write(&self.path("helm"), &text.replace("template)", fails));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns the commands that it was started with.
    fn calls(&self) -> Vec<String> {
        self.read("calls").lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn options(&self) -> HelmCommandOptions {
        let scratch = tempfile::tempdir_in(self.dir.path()).unwrap();
        HelmCommandOptions {
            bin: self.path("helm"),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            access: vec!["--kubeconfig".into(), "/the/kubeconfig".into()],
            directory: Arc::new(Held(scratch)),
        }
    }

    async fn helm(&self, world: &ReleaseFixture) -> Helm {
        let helm = world.helm();
        helm.set_command(Arc::new(HelmCommand::new(self.options()).await.unwrap()));
        helm
    }
}

/// A directory that is removed at the end.
struct Held(TempDir);

impl AsRef<Path> for Held {
    fn as_ref(&self) -> &Path {
        self.0.path()
    }
}

const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-map}\ndata: {k: one}\n";

/// Writes what an upgrade by `helm` leaves, as soon as the script waits for it, and lets the script end.
async fn upgraded_outside(world: &ReleaseFixture, script: &Script, version: u32, status: Status) {
    let begun = Instant::now();
    while !script.path("waiting").exists() {
        assert!(begun.elapsed() < DEADLINE, "the program was not started");
        pause().await;
    }
    fs::remove_file(script.path("waiting")).unwrap();
    let metadata = json!({
        "name": "web-map",
        "labels": {"app.kubernetes.io/managed-by": "Helm", "heritage": "addon-operator"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": NAMESPACE},
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "one"}});
    if world.map("web-map").await.is_none() {
        world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &map).await;
    }
    let record = Record {
        name: "web".to_owned(),
        info: Info { status, ..Info::default() },
        chart: None,
        config: None,
        manifest: format!("---\n# Source: web/templates/map.yaml\n{PLAIN}"),
        hooks: Vec::new(),
        version,
        namespace: NAMESPACE.to_owned(),
        apply_method: String::new(),
        parts: None,
    };
    let labels =
        json!({"name": "web", "owner": "helm", "status": status.name(), "version": version.to_string()});
    let name = format!("sh.helm.release.v1.web.v{version}");
    world.post(&secrets(), &record_secret(&name, &labels, &encoded(&record))).await;
    let fifo = script.path("fifo");
    tokio::task::spawn_blocking(move || fs::write(fifo, "go\n").unwrap()).await.unwrap();
}

/// What the script does for an upgrade that ends when the test says so.
const WAITS: &str =
    "mkfifo \"$here/fifo\"; touch \"$here/waiting\"; read -r go <\"$here/fifo\"; rm \"$here/fifo\"";

async fn upgrade(world: &ReleaseFixture, helm: &Helm) -> Result<ReleaseOutcome, Failure> {
    // A program that nobody lets end would be waited for.
    tokio::time::timeout(DEADLINE, world.upgrade(helm, json!({"k": "one"}))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_upgraded_by_the_program_and_marked_and_an_unchanged_run_writes_nothing() {
    let script = Script::new("v3.19.0+g1", WAITS);
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    let calls = script.read("calls");
    for part in [
        "upgrade web ",
        " --install ",
        " --history-max 3 ",
        " --timeout 5s ",
        " --take-ownership ",
        " --namespace default --kubeconfig /the/kubeconfig",
        "--dry-run=server --is-upgrade",
    ] {
        assert!(calls.contains(part), "{part:?} is not in\n{calls}");
    }
    assert!(!calls.contains("--server-side"), "that is an option of Helm 4: {calls}");
    assert!(script.read("modes").lines().all(|mode| mode == "600"), "{}", script.read("modes"));
    let object = values::yaml::parse(&script.read("seen/rendered/00000-map.yaml")).unwrap();
    assert_eq!(object["metadata"]["labels"]["heritage"], "addon-operator");
    let secret = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
    let labels = &secret["metadata"]["labels"];
    assert!(
        labels["moduleChecksum"].is_string() && labels["addon-operator.io/owner"].is_string(),
        "{labels}"
    );
    let before = script.calls();
    assert_eq!(upgrade(&world, &helm).await.unwrap().action, ReleaseAction::Unchanged);
    assert_eq!(upgrade(&world, &script.helm(&world).await).await.unwrap().action, ReleaseAction::Unchanged);
    let more: Vec<String> = script.calls().split_off(before.len());
    assert!(more.iter().all(|call| call == "template") && !more.is_empty(), "{more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notes_of_the_chart_are_what_a_dry_run_of_it_says() {
    let says = r#"case "$*" in *--dry-run=server*--output\ json*) cat "$3/templates/NOTES.txt" >"$here/noted"; printf '%s' '{"info":{"notes":"reach {{ web }}\n"}}';; *)"#;
    let script = Script::new("v3.19.0", &format!("{says} {WAITS};; esac"));
    let notes = ("templates/NOTES.txt", "reach {{ .Release.Name }}\n");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN), notes]);
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    assert_eq!(script.read("noted"), notes.1, "the chart itself is asked");
    assert_eq!(script.read("seen/rendered/NOTES.txt"), "reach {{ web }}\n");
    assert_eq!(script.read("seen/templates/NOTES.txt"), "{{ .Files.Get \"rendered/NOTES.txt\" }}");
    let script = Script::new("v3.19.0", "echo 'not {}'");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN), notes]);
    let failure = upgrade(&world, &script.helm(&world).await).await.unwrap_err();
    crate::support::release::says(&failure, &["it printed no release as JSON: line 1, column 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_off_is_cleared_up_before_the_program_is_started() {
    let script = Script::new("v4.1.4", WAITS);
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let labels = json!({"name": "web", "owner": "helm", "status": "pending-install", "version": "1"});
    world.post(&secrets(), &record_secret("sh.helm.release.v1.web.v1", &labels, "")).await;
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    assert!(script.read("calls").contains(" --server-side=false "), "{}", script.read("calls"));
    assert_eq!(world.states().await, ["1 deployed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_charts_below_the_chart_bring_are_there_before_the_program_renders() {
    let crd = CRD.replace("kind: CustomResourceDefinition", "kind: CustomResourceDefinition # of sub");
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("templates/map.yaml", PLAIN),
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        ("charts/sub/crds/crd.yaml", &*crd),
    ];
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    let script = Script::new("v4.1.4", WAITS).failing_first();
    let world = ReleaseFixture::without_nodes(&files);
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    assert!(world.get(path).await.is_some());
    // Where nothing is missing, it is no reason to try again.
    let script = Script::new("v4.1.4", "exit 1").failing_first();
    let failure = upgrade(&world, &script.helm(&world).await).await.unwrap_err();
    says(&failure, &["no matches for kind \"Sub\""]);
    assert_eq!(script.calls(), ["template"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_loses_what_it_prints_removes_nothing() {
    let script = Script::new("v4.1.4", WAITS);
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    let text = script.read("helm").replace("template)", "template) exit 0;");
    write(&script.path("helm"), &text);
    let failure = upgrade(&world, &helm).await.unwrap_err();
    says(&failure, &["it printed no object, and the chart itself has 1: the 1 of the release stay"]);
    assert!(world.map("web-map").await.is_some() && !script.path("waiting").exists());
    // A chart that has none is another matter.
    world.write(&[("templates/map.yaml", "{{- /* nothing */ -}}")]);
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 2, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Upgraded);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_written_by_server_side_apply_by_helm_4_only() {
    let mut world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    world.settings.apply = ApplyMode::Server;
    let script = Script::new("v3.19.0", "exit 1");
    let failure = upgrade(&world, &script.helm(&world).await).await.unwrap_err();
    says(&failure, &["`apply: server` of module.yaml needs Helm 4, and", "is of version 3.19"]);
    let script = Script::new("v4.1.4", WAITS);
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    assert_eq!(outcome.unwrap().action, ReleaseAction::Installed);
    let calls = script.read("calls");
    assert!(calls.contains(" --server-side=true --force-conflicts "), "{calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_the_program_takes_over_is_told() {
    let script = Script::new("v3.19.0", WAITS);
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let annotations = json!({"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "other"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-map", "annotations": annotations}});
    world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &map).await;
    let helm = script.helm(&world).await;
    let (outcome, ()) =
        tokio::join!(upgrade(&world, &helm), upgraded_outside(&world, &script, 1, Status::Deployed));
    let from = TakenFrom::Release("other/db".to_owned());
    assert_eq!(
        outcome.unwrap().taken_over,
        [TakenObject { object: format!("ConfigMap {NAMESPACE}/web-map"), from }]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_program_says_is_why_it_failed() {
    let script = Script::new("v3.19.0", "echo 'Error: UPGRADE FAILED: boom' >&2; exit 1");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let failure = upgrade(&world, &script.helm(&world).await).await.unwrap_err();
    says(&failure, &["helm upgrade failed: helm upgrade: UPGRADE FAILED: boom"]);
    let silent = Script::new("v3.19.0", "exit 0");
    let failure = upgrade(&world, &silent.helm(&world).await).await.unwrap_err();
    says(&failure, &["it ended well, but there is no new revision"]);
    assert!(fs::read_dir(script.dir.path()).unwrap().count() <= 5, "nothing of its files is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_operator_ends_the_program_and_all_that_it_started() {
    let script = Script::new("v3.19.0", WAITS);
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    let helm = script.helm(&world).await;
    let (end, ended) = oneshot::channel();
    let ending = async {
        while !script.path("waiting").exists() {
            pause().await;
        }
        end.send(()).unwrap();
    };
    let (module, values, cancellation) =
        (world.module(), world.values(json!({"k": "one"})), Cancellation::on(ended));
    let run =
        ReleaseRun { module: &module, values: &values, maintenance: false, source: None, is_recorded: true };
    let (outcome, ()) = tokio::join!(helm.upgrade_until(run, &cancellation), ending);
    let failure = outcome.unwrap_err();
    assert!(failure.is_cancelled(), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_removed_by_the_program_as_long_as_its_record_can_be_read() {
    let script = Script::new("v3.19.0", "exit 0");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", PLAIN)]);
    world.upgraded(&world.helm()).await;
    let helm = script.helm(&world).await;
    let release = ReleaseName::from("web");
    assert_eq!(helm.uninstall(&release).await.unwrap().action, ReleaseAction::Uninstalled);
    assert!(script.read("calls").starts_with("uninstall web --timeout 5s --namespace default"));
    assert_eq!(helm.uninstall(&release).await.unwrap().action, ReleaseAction::Absent);
    assert_eq!(script.calls().len(), 1, "there is nothing that it could remove");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_missing_or_too_old_is_refused_with_what_to_do() {
    let said = async |options: HelmCommandOptions| {
        HelmCommand::new(options).await.map(drop).unwrap_err().to_string()
    };
    let old = Script::new("v2.17.0+gd", "exit 0");
    assert!(said(old.options()).await.contains("is of version v2.17.0+gd; it has to be 3.8 or later"));
    let strange = Script::new("hello", "exit 0");
    assert!(said(strange.options()).await.contains("says \"hello\"; --helm-bin has to name Helm 3 or later"));
    let missing = HelmCommandOptions { bin: "/nowhere/helm".into(), ..old.options() };
    let text = said(missing).await;
    assert!(
        text.contains("can't start /nowhere/helm") && text.contains("or leave --helm-backend=native"),
        "{text}"
    );
}
