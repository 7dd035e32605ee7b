//! What modules of namespaces cost the API server at a start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use addon_operator::app::{self, Outcome};
use addon_operator::cluster::connect_in_process;
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::module_sources::{World, state};
use crate::support::pause::pause;
use crate::support::repository::Packed;
use crate::support::server::{self, get, ok};

/// The namespaces; two names, so that what each costs is seen.
const TEAMS: [&str; 2] = ["blue", "red"];

fn web() -> Vec<u8> {
    let meta = b"id: id-web\nname: web\nversion: 1.0.0\ndescription: d\ndisplayName: D\n";
    let map = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta);
    packed.file("Chart.yaml", 0o644, b"name: web\nversion: 0.1.0\n");
    packed.file("templates/map.yaml", 0o644, map);
    packed.finish()
}

/// Makes a namespace with an account that has the rights, and a source.
async fn settle(world: &World, team: &str) {
    let server = &world.cluster.server;
    ok(server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": team}})).await;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{team}");
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["*"]}]);
    let role = json!({"metadata": {"name": "modules"}, "rules": rules});
    ok(server, Method::POST, &format!("{rbac}/roles"), &role).await;
    let binding = json!({
        "metadata": {"name": "modules"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "modules"},
        "subjects": [{"kind": "ServiceAccount", "name": "addon-operator", "namespace": team}],
    });
    ok(server, Method::POST, &format!("{rbac}/rolebindings"), &binding).await;
    let source = json!({
        "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "AddonsConfiguration", "metadata": {"name": "x"},
        "spec": {"repositories": [{"url": world.repository.url("/index.yaml")}]},
    });
    ok(server, Method::POST, &place(team), &source).await;
}

fn place(team: &str) -> String {
    format!("/apis/addons.kyma-project.io/v1alpha1/namespaces/{team}/addonsconfigurations")
}

/// Returns in short what a request about a team's namespace is.
fn kind_of(request: &Request<Body>) -> Option<(String, String)> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let (_, rest) = path.split_once("/namespaces/")?;
    let (team, rest) = rest.split_once('/')?;
    let verb = match request.method().as_str() {
        "GET" if query.contains("watch=true") => "WATCH",
        "GET" if !rest.contains('/') => "LIST",
        other => other,
    };
    let as_whom = if request.headers().contains_key("impersonate-user") { " as the guest" } else { "" };
    let resource = rest.split('/').next()?;
    TEAMS.contains(&team).then(|| (team.to_owned(), format!("{verb} {resource}{as_whom}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_costs_each_namespace_two_lists_of_secrets_and_its_watches() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web())]);
    let flags: Value = TEAMS.iter().map(|team| (format!("{team}WebEnabled"), json!("true"))).collect();
    world.cluster.put("addon-operator", json!({ "data": flags })).await;
    for team in TEAMS {
        settle(&world, team).await;
    }
    let operator = world.start().await;
    for team in TEAMS {
        // The status comes last: what is not written now is written at the next start.
        let path = format!("{}/x", place(team));
        let mut is_running = false;
        while !is_running {
            is_running = get(&world.cluster.server, &path).await.is_some_and(|it| state(&it) == "Running");
            pause().await;
        }
    }
    assert_eq!(operator.stop().await, Outcome::Done);

    let (shutdown, ended) = watch::channel(false);
    let requests: Arc<Mutex<BTreeMap<(String, String), usize>>> = Arc::default();
    let counted = Arc::clone(&requests);
    let service = world.cluster.server.service().map_request(move |request: Request<Body>| {
        if let Some(kind) = kind_of(&request) {
            *counted.lock().unwrap().entry(kind).or_default() += 1;
        }
        request
    });
    let client = connect_in_process(service, "ops");
    let running = tokio::spawn(app::run(world.cluster.around(client, false, ended, &world.options()), drop));
    // What comes last in each.
    let is_watched = |team: &&str| {
        let watches = ((*team).to_owned(), "WATCH configmaps as the guest".to_owned());
        requests.lock().unwrap().contains_key(&watches)
    };
    server::until("the watches", || TEAMS.iter().all(&is_watched)).await;
    shutdown.send_replace(true);
    assert_eq!(running.await.unwrap().unwrap(), Outcome::Done);
    let requests = requests.lock().unwrap();
    for team in TEAMS {
        let of_team = requests.iter().filter(|((its, _), _)| its == team);
        let counts: Vec<(&str, usize)> = of_team.map(|((_, kind), count)| (kind.as_str(), *count)).collect();
        assert_eq!(
            counts,
            [
                ("LIST configmaps as the guest", 1),
                ("LIST secrets as the guest", 2),
                ("WATCH configmaps as the guest", 1),
                ("WATCH secrets as the guest", 1),
            ],
            "{team}"
        );
    }
}
