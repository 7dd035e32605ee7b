//! The broker: what platforms are offered, and what becomes of their instances.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::{
    BrokerAnswer, BrokerBody, BrokerCallId, BrokerRegistration, BrokerRequest, Config, ConfigText, Effect,
    Engine, Event, Failure, FailureKind, InstanceStage, Module, Notice, Offer, OfferedPlan, Plans,
    ValuesLayout,
};
use serde_json::{Value, json};
use values::preset::Presets;

use crate::build::{config as config_map, files};
use crate::plans::plan;
use crate::repositories::{addon, config, digest, sourced_with};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

/// What platforms are told, and what is kept for them.
#[derive(Default)]
pub(crate) struct Platform {
    kept: Option<String>,
    answers: BTreeMap<BrokerCallId, BrokerAnswer>,
    registrations: Vec<Arc<BrokerRegistration>>,
    /// How the next writes of the instances, and the next registrations end.
    keeping: VecDeque<Failure>,
    registering: VecDeque<Result<bool, Failure>>,
    calls: u64,
}

impl World {
    pub(crate) fn carry_out_broker(&mut self, effect: &Effect) {
        match effect {
            Effect::AnswerBroker { id, answer } => {
                let other = self.platform.answers.insert(*id, answer.clone());
                assert!(other.is_none(), "{id} is answered twice");
            }
            Effect::KeepInstances { run, text } => {
                let failure = self.platform.keeping.pop_front();
                if failure.is_none() {
                    self.platform.kept = Some(text.0.clone());
                }
                self.send_in(5, Event::InstancesKept { run: *run, outcome: failure.map_or(Ok(()), Err) });
            }
            Effect::ReadInstances { run } => {
                let outcome = Ok(self.platform.kept.clone().map(ConfigText));
                self.send_in(5, Event::InstancesRead { run: *run, outcome });
            }
            Effect::RegisterBrokers { run, registration } => {
                let outcome = self.platform.registering.pop_front().unwrap_or(Ok(true));
                self.platform.registrations.push(Arc::clone(registration));
                self.send_in(5, Event::BrokersRegistered { run: *run, outcome });
            }
            _ => {}
        }
    }

    /// Sends a call, and returns its id.
    fn calls(
        &mut self,
        method: &str,
        path: &str,
        version: Option<&str>,
        body: Option<Value>,
    ) -> BrokerCallId {
        self.platform.calls += 1;
        let id = BrokerCallId::new(self.platform.calls);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let request = BrokerRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            api_version: version.map(str::to_owned),
            body: body.map(Arc::new),
        };
        self.send_in(0, Event::BrokerAsked { id, request });
        id
    }

    /// Returns what was answered to a call: the status, and the object or the Secret with credentials.
    fn answered(&mut self, id: BrokerCallId) -> (u16, Value) {
        let answer = self.platform.answers.remove(&id).unwrap();
        match answer.body {
            BrokerBody::Json(body) => (answer.status, (*body).clone()),
            BrokerBody::Credentials { namespace, secret } => {
                (answer.status, json!({"in": format!("{namespace}/{secret}")}))
            }
        }
    }

    /// Sends a call, and returns what is answered within 20 ms.
    fn asks(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let id = self.calls(method, path, Some("2.16"), body);
        self.run_for(20);
        self.answered(id)
    }

    /// Returns the stages of instances that were told, in their order.
    fn stages(&self) -> Vec<InstanceStage> {
        let stage = |notice: &Notice| match notice {
            Notice::InstanceChanged { stage, .. } => Some(*stage),
            _ => None,
        };
        self.notices.iter().filter_map(stage).collect()
    }

    fn kept(&self) -> Value {
        serde_json::from_str(self.platform.kept.as_deref().unwrap_or("null")).unwrap()
    }

    /// The operator ends at once and starts again, with what is in the cluster.
    fn restarts_with_broker(&mut self) {
        self.restarts();
        self.forgets_everything();
        let registry = self.repositories.registry.clone();
        let mut catalog = files().catalog();
        let bundles = registry.links(&BTreeSet::new()).into_iter().filter_map(|link| {
            let module = self.repositories.bundles.get(&link.digest)?.clone();
            Some(Arc::new(Module { name: link.name, ..module }))
        });
        Arc::make_mut(&mut catalog.modules).extend(bundles);
        self.engine = Engine::with_registry(brokered(), catalog, &registry, &BTreeSet::new());
        self.rereads_config();
        self.send_in(0, Event::Started);
        self.run_for(5_000);
    }

    /// Returns the state and the description of the last operation of the instance `i`.
    fn state(&mut self) -> (String, String) {
        let (status, body) = self.asks("GET", "/cluster/v2/service_instances/i/last_operation", None);
        assert_eq!(status, 200, "{body}");
        let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
        (text("state"), text("description"))
    }
}

fn brokered() -> Config {
    Config { has_broker: true, ..config() }
}

/// Returns what a plan says of itself.
fn offered(name: &str) -> OfferedPlan {
    OfferedPlan {
        id: format!("id-of-{name}").into(),
        name: name.into(),
        description: format!("a {name} one").into(),
        display_name: name.to_uppercase().into(),
        free: (name == "big").then_some(false),
    }
}

fn offer(plans: Vec<OfferedPlan>) -> Arc<Offer> {
    Arc::new(Offer {
        description: "a thing".into(),
        tags: vec!["sql".into()],
        requires: Vec::new(),
        metadata: Arc::new(json!({"displayName": "DB", "labels": {"team": "x"}})),
        plans,
    })
}

/// A world with a configuration whose addons are `db` with the plans big, which has credentials, and micro; and `web`, a
/// module without plans.
fn world() -> World {
    let mut world = sourced_with(&files(), brokered());
    world.offers(URL, Ok(vec![addon("db", "1.0.0", 1), addon("web", "1.0.0", 2)]));
    world.bundle(1, "db", &[]);
    world.bundle(2, "web", &[]);
    let db = world.repositories.bundles.get_mut(&digest(1)).unwrap();
    db.layout = ValuesLayout::Root;
    db.plans = Plans {
        presets: Arc::new(Presets::new(vec![plan("big", 9), plan("micro", 1)])),
        credentials: [("big".into(), "plans/big/bind.yaml".into())].into(),
        offer: Some(offer(vec![offered("big"), offered("micro")])),
    };
    world.repositories.bundles.get_mut(&digest(2)).unwrap().plans.offer = Some(offer(Vec::new()));
    world.send_in(0, config_map(200, &[]));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!(world.phase("a"), "Ready");
    world
}

#[expect(clippy::needless_pass_by_value, clippy::unnecessary_wraps, reason = "as calls are made of it")]
fn wants(plan: &str, parameters: Value) -> Option<Value> {
    Some(json!({"service_id": "id-db", "plan_id": format!("id-of-{plan}"), "parameters": parameters,
        "organization_guid": "o", "space_guid": "s"}))
}

const INSTANCE: &str = "/cluster/v2/service_instances/i?accepts_incomplete=true";
const REMOVED: &str =
    "/cluster/v2/service_instances/i?service_id=id-db&plan_id=id-of-big&accepts_incomplete=true";
const BINDING: &str = "/cluster/v2/service_instances/i/service_bindings/b";

/// A world in which there is an instance `i` of `db`, with the plan big.
fn provisioned() -> World {
    let mut world = world();
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).0, 202);
    world.run_for(3_000);
    assert_eq!(world.state().0, "succeeded");
    world
}

/// One life with an instance that comes and goes.
pub(crate) fn tour() {
    let mut world = provisioned();
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(3_000);
}

#[test]
fn a32_the_catalog_has_a_service_for_each_registered_addon_with_plans_and_schemas() {
    let mut world = world();
    let (status, catalog) = world.asks("GET", "/cluster/v2/catalog", None);
    assert_eq!(status, 200);
    let [db, web] = catalog["services"].as_array().unwrap().as_slice() else { panic!("{catalog}") };
    assert_eq!(
        (&db["id"], &db["name"], &db["description"]),
        (&json!("id-db"), &json!("db"), &json!("a thing"))
    );
    let labels = json!({"team": "x", "local": "true", "provisionOnlyOnce": "true"});
    assert_eq!(db["metadata"], json!({"displayName": "DB", "labels": labels}));
    assert_eq!(
        (&db["bindable"], &db["plan_updateable"], &db["tags"]),
        (&json!(true), &json!(false), &json!(["sql"]))
    );
    let big = json!({
        "id": "id-of-big", "name": "big", "description": "a big one", "free": false, "bindable": true,
        "maximum_polling_duration": 3600, "metadata": {"displayName": "BIG"},
        "schemas": {"service_instance": {"create": {"parameters":
            {"type": "object", "properties": {"size": {"type": "integer"}}}}}},
    });
    assert_eq!(db["plans"][0], big);
    assert_eq!((&db["plans"][1]["free"], &db["plans"][1]["bindable"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&web["plans"][0]["id"], &web["plans"][0]["name"]),
        (&json!("id-web-default"), &json!("default"))
    );
    assert_eq!(web["bindable"], json!(false));
    let none = json!({"services": []});
    assert_eq!(world.asks("GET", "/ns/team/v2/catalog", None), (200, none.clone()));
    world.deletes("a");
    world.run_for(3_000);
    assert_eq!(world.asks("GET", "/cluster/v2/catalog", None), (200, none));
}

/// Each call that is refused whatever is there, with its status and error.
#[test]
#[expect(clippy::too_many_lines, reason = "one line for each call")]
fn calls_that_are_wrong_have_the_status_and_the_error_of_the_specification() {
    let mut world = provisioned();
    let wanted = || wants("micro", json!({}));
    let without = |field: &str| {
        let mut body = wanted().unwrap();
        body.as_object_mut().unwrap().remove(field);
        Some(body)
    };
    let with = |field: &str, value: Value| {
        let mut body = wanted().unwrap();
        body[field] = value;
        Some(body)
    };
    let other = "/cluster/v2/service_instances/other?accepts_incomplete=true";
    let long = format!("/cluster/v2/service_instances/{}?accepts_incomplete=true", "x".repeat(129));
    let large = json!({"text": "x".repeat(64 << 10)});
    let binding = "/cluster/v2/service_instances/i/service_bindings/b";
    let cases: Vec<(&str, &str, Option<Value>, u16, &str)> = vec![
        // Provisioning.
        ("PUT", "/cluster/v2/service_instances/other", wanted(), 422, "AsyncRequired"),
        (
            "PUT",
            "/cluster/v2/service_instances/other?accepts_incomplete=false",
            wanted(),
            422,
            "AsyncRequired",
        ),
        ("PUT", other, None, 400, "BadRequest"),
        ("PUT", other, Some(json!([])), 400, "BadRequest"),
        ("PUT", other, without("service_id"), 400, "BadRequest"),
        ("PUT", other, without("plan_id"), 400, "BadRequest"),
        ("PUT", other, without("organization_guid"), 400, "BadRequest"),
        ("PUT", other, without("space_guid"), 400, "BadRequest"),
        ("PUT", other, with("space_guid", json!("")), 400, "BadRequest"),
        ("PUT", other, with("space_guid", json!(7)), 400, "BadRequest"),
        ("PUT", other, with("maintenance_info", json!({"version": "1.0.0"})), 422, "MaintenanceInfoConflict"),
        ("PUT", other, with("service_id", json!("no")), 400, "BadRequest"),
        ("PUT", other, with("plan_id", json!("no")), 400, "BadRequest"),
        ("PUT", other, with("plan_id", json!("id-web-default")), 400, "BadRequest"),
        ("PUT", other, with("parameters", json!("text")), 400, "BadRequest"),
        ("PUT", other, with("parameters", large), 400, "BadRequest"),
        ("PUT", &long, wanted(), 400, "BadRequest"),
        ("PUT", "/cluster/v2/service_instances/a%2Fb?accepts_incomplete=true", wanted(), 400, "BadRequest"),
        ("PUT", "/ns/team/v2/service_instances/o?accepts_incomplete=true", wanted(), 400, "BadRequest"),
        ("PUT", INSTANCE, wants("micro", json!({})), 409, "Conflict"),
        ("PUT", INSTANCE, wants("big", json!({"size": 2})), 409, "Conflict"),
        // Nothing of that takes time.
        ("PUT", "/cluster/v2/service_instances/i", wants("micro", json!({})), 409, "Conflict"),
        ("PUT", other, wants("big", json!({})), 409, "Conflict"),
        ("PUT", other, wants("micro", json!({"size": 1})), 409, "Conflict"),
        // Showing.
        ("GET", "/cluster/v2/service_instances/other", None, 404, "NotFound"),
        ("GET", "/ns/team/v2/service_instances/i", None, 404, "NotFound"),
        // What can't be an id is the id of nothing.
        ("GET", "/cluster/v2/service_instances/a%2Fb", None, 404, "NotFound"),
        ("GET", "/cluster/v2/service_instances/i/service_bindings/%20", None, 404, "NotFound"),
        ("GET", "/cluster/v2/service_instances/a%2Fb/last_operation", None, 400, "BadRequest"),
        ("GET", "/cluster/v2/service_instances/other/last_operation", None, 404, "NotFound"),
        (
            "GET",
            "/cluster/v2/service_instances/other/last_operation?operation=provision",
            None,
            404,
            "NotFound",
        ),
        (
            "GET",
            "/cluster/v2/service_instances/other/last_operation?operation=deprovision",
            None,
            410,
            "Gone",
        ),
        // Removing.
        ("DELETE", "/cluster/v2/service_instances/i?accepts_incomplete=true", None, 400, "BadRequest"),
        (
            "DELETE",
            "/cluster/v2/service_instances/i?service_id=id-db&accepts_incomplete=true",
            None,
            400,
            "BadRequest",
        ),
        (
            "DELETE",
            "/cluster/v2/service_instances/i?service_id=id-db&plan_id=id-of-micro&accepts_incomplete=true",
            None,
            400,
            "BadRequest",
        ),
        (
            "DELETE",
            "/cluster/v2/service_instances/i?service_id=id-db&plan_id=id-of-big",
            None,
            422,
            "AsyncRequired",
        ),
        (
            "DELETE",
            "/cluster/v2/service_instances/other?service_id=id-db&plan_id=id-of-big&accepts_incomplete=true",
            None,
            410,
            "Gone",
        ),
        (
            "DELETE",
            "/ns/team/v2/service_instances/i?service_id=id-db&plan_id=id-of-big&accepts_incomplete=true",
            None,
            410,
            "Gone",
        ),
        // Bindings.
        ("PUT", binding, None, 400, "BadRequest"),
        ("PUT", binding, Some(json!({"service_id": "id-db"})), 400, "BadRequest"),
        ("PUT", binding, wants("micro", json!({})), 400, "BadRequest"),
        ("PUT", binding, wants("big", json!({"a": 1})), 400, "BadRequest"),
        (
            "PUT",
            "/cluster/v2/service_instances/other/service_bindings/b",
            wants("big", json!({})),
            400,
            "BadRequest",
        ),
        ("GET", binding, None, 404, "NotFound"),
        ("GET", "/cluster/v2/service_instances/i/service_bindings/b/last_operation", None, 404, "NotFound"),
        ("PATCH", binding, None, 422, "NotSupported"),
        ("DELETE", binding, None, 400, "BadRequest"),
        (
            "DELETE",
            "/cluster/v2/service_instances/i/service_bindings/b?service_id=id-db&plan_id=id-of-big",
            None,
            410,
            "Gone",
        ),
        // What the broker does not do.
        ("PATCH", INSTANCE, wanted(), 422, "NotSupported"),
        ("POST", INSTANCE, wanted(), 422, "NotSupported"),
        ("PATCH", binding, wanted(), 422, "NotSupported"),
        ("DELETE", "/cluster/v2/catalog", None, 422, "NotSupported"),
        ("GET", "/v2/catalog", None, 422, "NotSupported"),
        ("GET", "/cluster/v3/catalog", None, 422, "NotSupported"),
        ("GET", "/ns/Team/v2/catalog", None, 422, "NotSupported"),
        ("GET", "/cluster/v2/service_instances", None, 422, "NotSupported"),
        ("GET", "/", None, 422, "NotSupported"),
    ];
    let before = world.kept();
    for (method, path, body, status, error) in cases {
        let (found, answer) = world.asks(method, path, body);
        assert_eq!((found, answer["error"].as_str()), (status, Some(error)), "{method} {path}: {answer}");
        let description = answer["description"].as_str().unwrap();
        assert!(description.len() > 20 && !description.contains('\n'), "{description}");
    }
    assert_eq!(world.kept(), before, "nothing is half done");
}

/// Each call of the specification (2.17) with each status that it knows for it, and what brings that here. Statuses that never come
/// have no line: 201 and 200 of what would be made or removed at once, 202 and `AsyncRequired` of bindings, 409 of a binding with
/// other parameters (there are none), `RequiresApp`, `MaintenanceInfoConflict` of updates, and 410 of the last operation of a binding.
#[test]
#[expect(clippy::too_many_lines, reason = "one line for each status")]
fn each_call_of_the_specification_has_each_status_that_it_knows() {
    type Line<'w> = (&'w dyn Fn() -> World, &'static str, &'static str, Option<Value>, u16, &'static str);
    const UNBIND: &str =
        "/cluster/v2/service_instances/i/service_bindings/b?service_id=id-db&plan_id=id-of-big";
    const SHOWN: &str = "/cluster/v2/service_instances/i";
    const LAST: &str = "/cluster/v2/service_instances/i/last_operation";
    const LAST_OF_BINDING: &str = "/cluster/v2/service_instances/i/service_bindings/b/last_operation";
    let big = || wants("big", json!({}));
    // What is there when somebody calls: nothing, what is being made, what is there, with a binding, what is being removed, nothing
    // any more.
    let making = || {
        let mut world = world();
        assert_eq!(world.asks("PUT", INSTANCE, big()).0, 202);
        world
    };
    let bound = || {
        let mut world = provisioned();
        assert_eq!(world.asks("PUT", BINDING, big()).0, 201);
        world
    };
    let removing = || {
        let mut world = provisioned();
        assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
        world
    };
    let gone = || {
        let mut world = removing();
        world.run_for(3_000);
        world
    };
    let before: [&dyn Fn() -> World; 6] = [&world, &making, &provisioned, &bound, &removing, &gone];
    let [nothing, making, there, bound, removing, gone] = before;
    let maintained = || {
        let mut body = big().unwrap();
        body["maintenance_info"] = json!({"version": "2.0.0"});
        Some(body)
    };
    let lines: Vec<Line<'_>> = vec![
        (nothing, "GET", "/cluster/v2/catalog", None, 200, ""),
        // Polling the last operation of an instance.
        (making, "GET", LAST, None, 200, ""),
        (there, "GET", LAST, None, 200, ""),
        (nothing, "GET", "/cluster/v2/service_instances/%20/last_operation", None, 400, "BadRequest"),
        (nothing, "GET", LAST, None, 404, "NotFound"),
        (gone, "GET", LAST, None, 410, "Gone"),
        // Of a binding.
        (bound, "GET", LAST_OF_BINDING, None, 200, ""),
        (
            nothing,
            "GET",
            "/cluster/v2/service_instances/i/service_bindings/%20/last_operation",
            None,
            400,
            "BadRequest",
        ),
        (there, "GET", LAST_OF_BINDING, None, 404, "NotFound"),
        // Provisioning.
        (there, "PUT", INSTANCE, big(), 200, ""),
        (nothing, "PUT", INSTANCE, big(), 202, ""),
        (making, "PUT", INSTANCE, big(), 202, ""),
        (nothing, "PUT", INSTANCE, None, 400, "BadRequest"),
        (there, "PUT", INSTANCE, wants("micro", json!({})), 409, "Conflict"),
        (nothing, "PUT", "/cluster/v2/service_instances/i", big(), 422, "AsyncRequired"),
        (removing, "PUT", INSTANCE, big(), 422, "ConcurrencyError"),
        (nothing, "PUT", INSTANCE, maintained(), 422, "MaintenanceInfoConflict"),
        // Fetching an instance.
        (there, "GET", SHOWN, None, 200, ""),
        (removing, "GET", SHOWN, None, 200, ""),
        (nothing, "GET", SHOWN, None, 404, "NotFound"),
        (making, "GET", SHOWN, None, 404, "NotFound"),
        // Updating one.
        (there, "PATCH", INSTANCE, big(), 422, "NotSupported"),
        // Binding.
        (bound, "PUT", BINDING, big(), 200, ""),
        (there, "PUT", BINDING, big(), 201, ""),
        (there, "PUT", BINDING, None, 400, "BadRequest"),
        (nothing, "PUT", BINDING, big(), 400, "BadRequest"),
        (making, "PUT", BINDING, big(), 422, "ConcurrencyError"),
        (removing, "PUT", BINDING, big(), 422, "ConcurrencyError"),
        // Fetching a binding.
        (bound, "GET", BINDING, None, 200, ""),
        (there, "GET", BINDING, None, 404, "NotFound"),
        // Unbinding.
        (bound, "DELETE", UNBIND, None, 200, ""),
        (bound, "DELETE", BINDING, None, 400, "BadRequest"),
        (there, "DELETE", UNBIND, None, 410, "Gone"),
        // Deprovisioning.
        (there, "DELETE", REMOVED, None, 202, ""),
        (removing, "DELETE", REMOVED, None, 202, ""),
        (there, "DELETE", INSTANCE, None, 400, "BadRequest"),
        (gone, "DELETE", REMOVED, None, 410, "Gone"),
        (
            there,
            "DELETE",
            "/cluster/v2/service_instances/i?service_id=id-db&plan_id=id-of-big",
            None,
            422,
            "AsyncRequired",
        ),
        (making, "DELETE", REMOVED, None, 422, "ConcurrencyError"),
    ];
    for (before, method, path, body, status, error) in lines {
        let (found, answer) = before().asks(method, path, body);
        assert_eq!(
            (found, answer["error"].as_str().unwrap_or_default()),
            (status, error),
            "{method} {path}: {answer}"
        );
    }
    // One that comes while another change of the instance is recorded.
    let mut world = bound();
    let other = "/cluster/v2/service_instances/i/service_bindings/other";
    let first = world.calls("PUT", other, Some("2.17"), big());
    let second = world.calls("DELETE", UNBIND, Some("2.17"), None);
    world.run_for(20);
    assert_eq!(world.answered(first).0, 201);
    let (status, answer) = world.answered(second);
    assert_eq!((status, &answer["error"]), (422, &json!("ConcurrencyError")));
}

#[test]
fn a_platform_of_another_version_is_refused_before_all_else() {
    let mut world = world();
    for (version, status) in [
        (None, 412),
        (Some(""), 412),
        (Some("2.12"), 412),
        (Some("2"), 412),
        (Some("1.14"), 412),
        (Some("3.0"), 412),
        (Some("garbage"), 412),
        (Some("2.13"), 200),
        (Some("2.14"), 200),
        (Some("2.17"), 200),
    ] {
        let id = world.calls("GET", "/cluster/v2/catalog", version, None);
        world.run_for(20);
        assert_eq!(world.answered(id).0, status, "{version:?}");
    }
    let id = world.calls("GET", "/nothing", None, None);
    world.run_for(20);
    assert_eq!(world.answered(id).0, 412);
}

#[test]
fn parameters_that_mean_the_same_are_the_same() {
    let mut world = world();
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({"size": 3}))).0, 202);
    world.run_for(3_000);
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({"size": 3.0}))), (200, json!({})));
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({"size": 3.5}))).0, 409);
}

#[test]
fn an_instance_is_made_bound_unbound_and_removed() {
    let mut world = world();
    let accepted = (202, json!({"operation": "provision"}));
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))), accepted);
    assert_eq!(world.state().0, "in progress");
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))), accepted);
    // What is not there yet is not shown, and not bound or removed.
    assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i", None).0, 404);
    for (method, path, body) in [("PUT", BINDING, wants("big", json!({}))), ("DELETE", REMOVED, None)] {
        let (status, answer) = world.asks(method, path, body);
        assert_eq!((status, &answer["error"]), (422, &json!("ConcurrencyError")), "{method} {path}");
    }
    world.run_for(3_000);
    assert_eq!(world.state(), ("succeeded".to_owned(), "module db runs".to_owned()));
    assert!(world.deployed.contains_key("db") && world.credentials.contains_key("db"));
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))), (200, json!({})));
    let shown = json!({"service_id": "id-db", "plan_id": "id-of-big"});
    assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i", None), (200, shown.clone()));
    // What is there needs no time, so also a platform without patience is told.
    let impatient = "/cluster/v2/service_instances/i";
    assert_eq!(world.asks("PUT", impatient, wants("big", json!({}))), (200, json!({})));
    let secret = json!({"in": "ops/db-binding"});
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))), (201, secret.clone()));
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))), (200, secret.clone()));
    assert_eq!(world.asks("GET", BINDING, None), (200, secret));
    let last = world.asks("GET", &format!("{BINDING}/last_operation"), None);
    assert_eq!(last, (200, json!({"state": "succeeded"})));
    let unbound = format!("{BINDING}?service_id=id-db&plan_id=id-of-big");
    assert_eq!(world.asks("DELETE", &unbound, None), (200, json!({})));
    assert_eq!(world.asks("DELETE", &unbound, None).0, 410);
    assert_eq!(world.asks("DELETE", REMOVED, None), (202, json!({"operation": "deprovision"})));
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).1["error"], "ConcurrencyError");
    assert_eq!(world.state().0, "in progress");
    assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i", None), (200, shown), "it is there still");
    world.run_for(3_000);
    for (path, status) in [
        ("/cluster/v2/service_instances/i/last_operation", 410),
        ("/cluster/v2/service_instances/i/last_operation?operation=deprovision", 410),
        ("/cluster/v2/service_instances/i", 404),
        ("/cluster/v2/service_instances/never/last_operation", 404),
    ] {
        assert_eq!(world.asks("GET", path, None).0, status, "{path}");
    }
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 410);
    assert!(!world.deployed.contains_key("db"));
    assert_eq!(world.kept()["instances"], json!([]));
    // What was written for it is gone, and it can be made again, with another plan.
    assert_eq!(world.asks("PUT", INSTANCE, wants("micro", json!({}))).0, 202);
    world.run_for(3_000);
    assert_eq!(world.state().0, "succeeded");
    let (status, answer) = world.asks("PUT", BINDING, wants("micro", json!({})));
    assert_eq!((status, answer["description"].as_str().unwrap().contains("not bindable")), (400, true));
}

#[test]
fn parameters_go_into_the_secret_and_are_there_before_the_module_runs() {
    let mut world = world().showing_values();
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({"size": 3}))).0, 202);
    let trace = world.run_for(3_000);
    let upgrades: Vec<&str> = trace.lines().filter(|line| line.contains("upgrade db")).collect();
    assert!(upgrades.len() == 1 && upgrades[0].contains(r#""size":3"#), "{trace}");
    assert_eq!(world.state().0, "succeeded");
    assert_eq!(world.config_text("db"), (Some("plan: big\n".to_owned()), Some("size: 3\n".to_owned())));
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(3_000);
    assert_eq!(world.config_text("db"), (None, None));
    assert_eq!(world.config_text("dbEnabled"), (Some("false".to_owned()), None));
    let (status, answer) = world.asks("PUT", INSTANCE, wants("big", json!({"size": "x"})));
    assert_eq!((status, &answer["error"]), (400, &json!("BadRequest")), "{answer}");
    let (status, answer) = world.asks("PUT", INSTANCE, wants("big", json!({"plan": "micro"})));
    assert_eq!((status, &answer["error"]), (400, &json!("BadRequest")), "{answer}");
}

#[test]
fn a_module_that_people_configured_is_not_taken_from_them() {
    for pairs in [&[("db", "plan: micro")][..], &[("dbEnabled", "true")]] {
        let mut world = world();
        world.send_in(0, config_map(300, pairs));
        world.run_for(3_000);
        let (status, answer) = world.asks("PUT", INSTANCE, wants("big", json!({})));
        assert_eq!((status, &answer["error"]), (409, &json!("Conflict")), "{answer}");
        assert!(answer["description"].as_str().unwrap().contains(pairs[0].0), "{answer}");
    }
}

#[test]
fn an_instance_that_somebody_switched_off_says_so_and_is_made_again_when_a_platform_asks() {
    let mut world = provisioned();
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))).0, 201);
    world.edits_config("dbEnabled", "false");
    world.run_for(3_000);
    assert!(!world.deployed.contains_key("db"));
    let (state, says) = world.state();
    assert!(state == "succeeded" && says.contains("is off now"), "{says}");
    let (status, answer) = world.asks("PUT", BINDING, wants("big", json!({})));
    assert_eq!((status, answer["description"].as_str().unwrap().contains("is off")), (400, true));
    assert_eq!(world.asks("GET", BINDING, None).0, 404);
    assert_eq!(world.asks("PUT", "/cluster/v2/service_instances/i", wants("big", json!({}))).0, 422);
    assert_eq!(
        world.asks("PUT", INSTANCE, wants("big", json!({}))),
        (202, json!({"operation": "provision"}))
    );
    world.run_for(3_000);
    assert_eq!(world.state(), ("succeeded".to_owned(), "module db runs".to_owned()));
    assert!(world.deployed.contains_key("db"));
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))).0, 200);
    // What is offered no more can't be made again, and can be removed.
    world.deletes("a");
    world.run_for(5_000);
    assert!(world.state().1.contains("is off now"));
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).0, 400);
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(3_000);
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 410);
}

#[test]
fn an_instance_has_failed_when_three_runs_of_its_module_have_and_can_be_removed() {
    let mut world = world();
    for _ in 0..4 {
        world = world.release("db", Err("the chart is bad"));
    }
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).0, 202);
    world.run_for(6_000);
    assert_eq!(world.state().0, "in progress", "two runs failed");
    world.run_for(6_000);
    let (state, why) = world.state();
    assert_eq!(state, "failed");
    assert!(why.contains("module db fails") && why.contains("the chart is bad"), "{why}");
    let (status, answer) = world.asks("PUT", BINDING, wants("big", json!({})));
    assert_eq!((status, answer["description"].as_str().unwrap().contains("could not be made")), (400, true));
    // The module is tried further: what recovers is there.
    world.run_for(20_000);
    assert_eq!(world.state().0, "succeeded");
    let stages = [InstanceStage::Provisioning, InstanceStage::ProvisionFailed, InstanceStage::Provisioned];
    assert_eq!(world.stages(), stages, "each is told once");
    let told = |world: &World| -> Vec<(bool, &'static str, String)> {
        let of_instances = world.announcements.iter().filter(|told| told.reason.starts_with("Instance"));
        of_instances.map(|told| (told.warning, told.reason, told.message.clone())).collect()
    };
    let failed = "instance i of the cluster, provision-failed: module db fails: the chart is bad".to_owned();
    let there = "instance i of the cluster, which is module db: provisioned".to_owned();
    assert_eq!(told(&world), [(true, "InstanceFailed", failed), (false, "InstanceProvisioned", there)]);
    assert!(
        world.announcements.iter().all(|told| !told.reason.starts_with("Instance") || told.source.is_some())
    );
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(60_000);
    assert_eq!(told(&world).pop().unwrap().1, "InstanceRemoved");
    let mut world = crate::broker::world();
    for _ in 0..5 {
        world = world.release("db", Err("the chart is bad"));
    }
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).0, 202);
    world.run_for(12_000);
    assert_eq!(world.state().0, "failed");
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(60_000);
    assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i/last_operation", None).0, 410);
}

#[test]
fn of_two_calls_at_once_for_one_instance_one_is_refused_and_for_two_both_are_taken() {
    let mut world = world();
    let wanted =
        |service: &str, plan: &str| Some(in_a_place(json!({"service_id": service, "plan_id": plan})));
    let put = |world: &mut World, id: &str, body: Option<Value>| {
        let path = format!("/cluster/v2/service_instances/{id}?accepts_incomplete=true");
        world.calls("PUT", &path, Some("2.14"), body)
    };
    let first = put(&mut world, "i", wanted("id-db", "id-of-big"));
    let second = put(&mut world, "i", wanted("id-db", "id-of-micro"));
    let other = put(&mut world, "w", wanted("id-web", "id-web-default"));
    world.run_for(50);
    assert_eq!(world.answered(first).0, 202);
    let (status, answer) = world.answered(second);
    assert_eq!((status, &answer["error"]), (422, &json!("ConcurrencyError")));
    assert_eq!(world.answered(other).0, 202);
    world.run_for(3_000);
    assert!(world.deployed.contains_key("db") && world.deployed.contains_key("web"));
    assert_eq!(world.kept()["instances"].as_array().unwrap().len(), 2);
}

/// Returns what is kept of so many instances of modules that are not there, each with a text of so many bytes among its
/// parameters. The first one is that of `db`, with so many bindings.
fn crowd(instances: usize, bytes: usize, bindings: usize) -> String {
    let bindings: Vec<String> = (0..bindings).map(|number| format!("b{number}")).collect();
    let instances: Vec<Value> = (0..instances)
        .map(|number| {
            let is_first = number == 0;
            let (id, module) =
                if is_first { ("i".to_owned(), "db".to_owned()) } else { (format!("x{number}"), format!("m{number}")) };
            let parameters = if is_first { json!({}) } else { json!({"text": "x".repeat(bytes)}) };
            json!({
                "namespace": "", "id": id, "serviceId": "id-db", "planId": "id-of-big", "plan": "big", "module": module,
                "key": module, "parameters": parameters, "state": "provisioned",
                "bindings": if is_first { json!(bindings) } else { json!([]) },
            })
        })
        .collect();
    json!({"version": 1, "instances": instances}).to_string()
}

/// A world with these instances, in which `db` runs.
fn crowded(instances: usize, bytes: usize, bindings: usize) -> World {
    let mut world = provisioned();
    world.platform.kept = Some(crowd(instances, bytes, bindings));
    world.restarts_with_broker();
    assert_eq!(world.state().0, "succeeded");
    world
}

#[expect(clippy::unnecessary_wraps, reason = "as calls are made of it")]
fn wants_web() -> Option<Value> {
    let ids = json!({"service_id": "id-web", "plan_id": "id-web-default"});
    Some(in_a_place(ids))
}

/// Adds what a platform says of where an instance is for.
fn in_a_place(mut ids: Value) -> Value {
    ids["organization_guid"] = json!("o");
    ids["space_guid"] = json!("s");
    ids
}

#[test]
fn no_more_is_kept_than_there_may_be() {
    let other = "/cluster/v2/service_instances/other?accepts_incomplete=true";
    // The last instance and the last binding, and one more of each.
    let mut world = crowded(999, 0, 99);
    assert_eq!(world.asks("PUT", other, wants_web()).0, 202);
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))).0, 201);
    let mut world = crowded(1_000, 0, 100);
    for (method, path, body, says) in [
        ("PUT", other, wants_web(), "there are 1000 instances"),
        ("PUT", BINDING, wants("big", json!({})), "has 100 bindings"),
    ] {
        let before = world.kept();
        let (status, answer) = world.asks(method, path, body);
        assert_eq!((status, &answer["error"]), (400, &json!("BadRequest")), "{answer}");
        assert!(answer["description"].as_str().unwrap().contains(says), "{answer}");
        assert_eq!(world.kept(), before);
    }
    // What is there can be used, and removed, which makes room.
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 202);
    world.run_for(3_000);
    assert_eq!(world.asks("PUT", other, wants_web()).0, 202);
    // 900 KiB in all.
    let mut world = crowded(15, 60 << 10, 0);
    let large = json!({"text": "x".repeat(60 << 10)});
    let mut body = wants_web().unwrap();
    body["parameters"] = large;
    let before = world.kept();
    let (status, answer) = world.asks("PUT", other, Some(body));
    assert_eq!((status, &answer["error"]), (400, &json!("BadRequest")));
    assert!(answer["description"].as_str().unwrap().contains("larger than what is kept"), "{answer}");
    assert_eq!(world.kept(), before);
    assert_eq!(world.asks("PUT", other, wants_web()).0, 202);
    // A record with more of them was not written by the broker.
    let mut world = sourced_with(&files(), brokered());
    world.platform.kept = Some(crowd(1_001, 0, 0));
    world.run_for(100);
    assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i", None).0, 503);
}

#[test]
fn a_hundred_calls_wait_while_another_one_is_recorded_and_the_next_is_refused() {
    let mut world = world();
    let first = world.calls("PUT", INSTANCE, Some("2.14"), wants("big", json!({})));
    let path = |number: usize| format!("/cluster/v2/service_instances/w{number}?accepts_incomplete=true");
    let waiting: Vec<BrokerCallId> =
        (0..101).map(|number| world.calls("PUT", &path(number), Some("2.14"), wants_web())).collect();
    world.run_for(1);
    let (status, answer) = world.answered(*waiting.last().unwrap());
    assert_eq!((status, &answer["error"]), (422, &json!("ConcurrencyError")));
    assert_eq!(world.platform.answers.len(), 0, "the others wait");
    world.run_for(3_000);
    assert_eq!(world.answered(first).0, 202);
    let statuses: Vec<u16> = waiting[..100].iter().map(|id| world.answered(*id).0).collect();
    assert_eq!((statuses[0], &statuses[1..]), (202, &[409; 99][..]), "there is one instance of a module");
}

#[test]
fn who_removed_an_instance_is_told_that_it_is_gone_and_a_hundred_are_remembered() {
    let mut world = world();
    let gone = |world: &mut World, id: usize| {
        world.asks("GET", &format!("/cluster/v2/service_instances/r{id}/last_operation"), None).0
    };
    for number in 0..101 {
        let put = format!("/cluster/v2/service_instances/r{number}?accepts_incomplete=true");
        assert_eq!(world.asks("PUT", &put, wants_web()).0, 202);
        world.run_for(1_000);
        let removed = format!("{put}&service_id=id-web&plan_id=id-web-default");
        assert_eq!(world.asks("DELETE", &removed, None).0, 202, "{number}");
        world.run_for(1_000);
        assert_eq!(gone(&mut world, number), 410, "{number}");
    }
    assert_eq!((gone(&mut world, 0), gone(&mut world, 1)), (404, 410));
}

#[test]
fn what_can_not_be_recorded_is_not_done() {
    let mut world = world();
    world.platform.keeping.push_back(Failure::new(FailureKind::Cluster, "no answer"));
    let (status, answer) = world.asks("PUT", INSTANCE, wants("big", json!({})));
    assert_eq!((status, &answer["error"]), (500, &json!("InternalError")), "{answer}");
    world.run_for(3_000);
    assert_eq!(world.config_text("dbEnabled"), (None, None));
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))).0, 202);
    // That it is there is recorded as soon as that can be.
    world.platform.keeping.push_back(Failure::new(FailureKind::Cluster, "no answer"));
    world.run_for(10_000);
    assert_eq!(world.state().0, "succeeded");
}

#[test]
fn instances_survive_a_restart_wherever_they_were() {
    let mut world = provisioned();
    assert_eq!(world.asks("PUT", BINDING, wants("big", json!({}))).0, 201);
    world.restarts_with_broker();
    assert_eq!(world.state().0, "succeeded");
    assert_eq!(world.asks("PUT", INSTANCE, wants("big", json!({}))), (200, json!({})));
    assert_eq!(world.asks("GET", BINDING, None).0, 200);
    let mut world = crate::broker::world();
    let id = world.calls("PUT", INSTANCE, Some("2.14"), wants("big", json!({})));
    world.run_for(6);
    assert_eq!(world.answered(id).0, 202, "nothing is written yet but that it is wanted");
    world.restarts_with_broker();
    assert_eq!(world.state().0, "succeeded");
    assert!(world.deployed.contains_key("db"));
    let id = world.calls("DELETE", REMOVED, Some("2.14"), None);
    world.run_for(6);
    assert_eq!(world.answered(id).0, 202);
    world.restarts_with_broker();
    assert!(!world.deployed.contains_key("db"));
    assert_eq!(world.asks("DELETE", REMOVED, None).0, 410);
}

#[test]
fn a_record_that_somebody_spoiled_is_told_and_left_alone() {
    for text in ["", "[]", r#"{"version":1}"#, r#"{"version":2,"instances":[]}"#] {
        let mut world = sourced_with(&files(), brokered());
        world.platform.kept = Some(text.to_owned());
        world.run_for(100);
        let (status, answer) = world.asks("PUT", INSTANCE, wants("big", json!({})));
        assert_eq!((status, &answer["error"]), (422, &json!("ConcurrencyError")), "{text}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("can't be read"), "{answer}");
        assert_eq!(world.asks("GET", "/cluster/v2/service_instances/i", None).0, 503);
        assert_eq!(world.platform.kept.as_deref(), Some(text));
    }
}

#[test]
fn service_catalog_is_told_of_brokers_and_of_another_offer_once() {
    let mut world = world();
    let last = |world: &World| world.platform.registrations.last().unwrap().clone();
    let first = last(&world);
    assert!(first.cluster.is_some() && first.namespaces.is_empty());
    let count = world.platform.registrations.len();
    world.run_for(60_000);
    assert_eq!(world.platform.registrations.len(), count, "nothing has changed");
    world.offers(URL, Ok(vec![addon("db", "1.0.0", 1)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(5_000);
    assert!(last(&world).cluster.is_some() && last(&world).cluster != first.cluster);
    world.applies("team/x", &[URL]);
    world.run_for(5_000);
    assert_eq!(last(&world).namespaces.keys().map(|name| &**name).collect::<Vec<_>>(), ["team"]);
    world.deletes("a");
    world.deletes("team/x");
    world.run_for(5_000);
    assert_eq!(*last(&world), BrokerRegistration::default());
    // What fails is tried again.
    let count = world.platform.registrations.len();
    world.platform.registering.extend([Err(Failure::new(FailureKind::Forbidden, "403")), Ok(false)]);
    world.applies("b", &[URL]);
    world.run_for(20_000);
    assert!(world.platform.registrations.len() >= count + 2);
    let count = world.platform.registrations.len();
    world.run_for(700_000);
    assert!(world.platform.registrations.len() > count, "Service Catalog may come later");
}
