//! A module from a git repository, end to end: one object is applied, and the module runs; a new commit replaces it.

use addon_operator::app::Outcome;
use http::Method;
use serde_json::json;

use crate::support::git_server::{Files, GitRepository, index};
use crate::support::in_process::Cluster;
use crate::support::repository::Repository;
use crate::support::server::{self, get, ok};
use crate::support::source_cluster::{SOURCES, install_kinds};

/// Returns a repository with a module that is a chart with one ConfigMap and a hook.
fn published(says: &str) -> GitRepository {
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {says: {{ .Values.web.says }}}\n";
    let meta = "id: id-web\nname: web\nversion: 1.0.0\ndescription: A test.\ndisplayName: Web\n";
    let hook = format!(
        "#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then echo '{{\"configVersion\":\"v1\",\"onStartup\":1}}'; exit; fi\n\
         echo '{says}' >>\"$WORLD/ran\"\n"
    );
    let mut files = index("stable/index.yaml", &[("web", "1.0.0")]);
    let texts = [
        ("meta.yaml", "100644", meta.to_owned()),
        ("Chart.yaml", "100644", "name: web\nversion: 0.1.0\n".to_owned()),
        ("values.yaml", "100644", format!("web: {{says: {says}}}\n")),
        ("templates/map.yaml", "100644", map.to_owned()),
        ("hooks/tell.sh", "100755", hook),
    ];
    files.extend(
        texts.map(|(path, mode, text)| (format!("stable/web-1.0.0/{path}"), (mode, text.into_bytes()))),
    );
    let mut git = GitRepository::default();
    git.commit(&Files::from_iter(files), &["refs/heads/main"]);
    git
}

async fn a21_a10_a_module_comes_from_a_commit_and_the_next_commit_replaces_it() {
    let cluster = Cluster::new().await;
    install_kinds(&cluster.server).await;
    let repository = Repository::tls(&["localhost"]).await;
    let authority = repository.write_authority(cluster.dir.path()).to_string_lossy().into_owned();
    published("one").serve(&repository, "/platform/addons.git");
    let operator = cluster.start(&[("source-allow", "localhost"), ("source-ca", &*authority)]).await;
    let url = format!("git::{}", repository.url("/platform/addons.git//stable/index.yaml?ref=main&depth=1"));
    let object = json!({
        "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "ClusterAddonsConfiguration",
        "metadata": {"name": "platform"}, "spec": {"repositories": [{"url": url}]},
    });
    ok(&cluster.server, Method::POST, SOURCES, &object).await;
    cluster.put("addon-operator", json!({"data": {"webEnabled": "true"}})).await;
    cluster.settled("web", |map| map["data"]["says"] == "one").await;
    let ran = |line: &str| {
        let text = std::fs::read_to_string(cluster.path("ran")).unwrap_or_default();
        text.lines().any(|ran| ran == line)
    };
    server::until("the first hook", || ran("one")).await;
    published("two").serve(&repository, "/platform/addons.git");
    let raise = json!({"spec": {"reprocessRequest": 1}});
    ok(&cluster.server, Method::PATCH, &format!("{SOURCES}/platform"), &raise).await;
    cluster.settled("web", |map| map["data"]["says"] == "two").await;
    server::until("the hook of the next commit", || ran("two")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let object = get(&cluster.server, &format!("{SOURCES}/platform")).await.unwrap();
    assert_eq!(object["status"]["phase"], "Ready", "{object}");
}

scenarios! {
    a21_a10_a_module_comes_from_a_commit_and_the_next_commit_replaces_it,
}
