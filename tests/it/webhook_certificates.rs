//! Certificates of the listener of webhooks: which are used, when others take their place, and which clients are let in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

use addon_operator::app::Outcome;
use addon_operator::driver;
use addon_operator::webhook::{CertificateFiles, Clock, Options, Webhooks};
use apiserver::FaultPlan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::hook::AdmissionKind;
use engine::{Narrowing, WebhookCertificate, WebhookClient, WebhookRegistration};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::DEADLINE;
use crate::support::in_process::Cluster;
use crate::support::pause::pause;
use crate::support::program::get as get_page;
use crate::support::server::{get, ok, send};
use crate::webhook_listener::{Asked, PATH, asked, review, started, world};
use crate::webhooks::MAPS;

/// An authority of a test.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns a certificate of `authority` for a name, and its key.
fn issued(authority: &CertifiedIssuer<'static, KeyPair>, name: &str, is_expired: bool) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if is_expired {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_of_the_given_authorities_are_answered() {
    let world = world().await;
    let (ours, others) = (authority(), authority());
    world.write("clients.crt", &ours.pem());
    let file = world.path("clients.crt").display().to_string();
    let (operator, stranger) = started(&world, &[("admission-server-client-ca", &file)]).await;
    assert!(stranger.post(PATH, &review("a")).await.is_err());
    let false_friend = Asked { own: Some(issued(&others, "api-server", false)), ..stranger.clone() };
    assert!(false_friend.post(PATH, &review("a")).await.is_err());
    let friend = Asked { own: Some(issued(&ours, "api-server", false)), ..stranger };
    assert_eq!(friend.post(PATH, &review("a")).await.unwrap().0, 200);
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Writes certificates as a Secret volume does: into a new directory, to which `..data` leads from one moment to the next.
fn exchange(volume: &Path, version: &str, (cert, key): &(String, String), ca: &str) {
    let directory = volume.join(version);
    fs::create_dir_all(&directory).unwrap();
    for (name, text) in [("tls.crt", cert.as_str()), ("tls.key", key.as_str()), ("ca.crt", ca)] {
        fs::write(directory.join(name), text).unwrap();
        if !volume.join(name).is_symlink() {
            symlink(format!("..data/{name}"), volume.join(name)).unwrap();
        }
    }
    symlink(version, volume.join("..tmp")).unwrap();
    fs::rename(volume.join("..tmp"), volume.join("..data")).unwrap();
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// Waits until a certificate is shown. Until then it is the one before.
async fn shows(at: &Asked, [before, now]: [&str; 2]) {
    let begun = Instant::now();
    loop {
        let shown = at.shown().await;
        if shown == der(now) {
            return;
        }
        assert_eq!(shown, der(before));
        assert!(begun.elapsed() < DEADLINE);
        pause().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_files_with_certificates_are_followed_and_those_that_do_not_fit_are_not_used() {
    let world = world().await;
    let volume = world.path("certs");
    let (first, second) = (authority(), authority());
    let [one, two, three] = [(&first), (&second), (&second)].map(|by| issued(by, "127.0.0.1", false));
    exchange(&volume, "1", &one, &first.pem());
    let (operator, at) =
        started(&world, &[("admission-server-certs-dir", &volume.display().to_string())]).await;
    assert_eq!(at.shown().await, der(&one.0));
    ok(&world.server, Method::POST, MAPS, &json!({"metadata": {"name": "a"}})).await;
    // Another certificate of another authority: the API server trusts it first, then it is shown. Another replica may show the one
    // before for a while.
    exchange(&volume, "2", &two, &second.pem());
    let bundle = STANDARD.encode(format!("{}\n{}", second.pem().trim_end(), first.pem()));
    let at = asked(&world, |webhook| webhook["clientConfig"]["caBundle"] == bundle.as_str()).await;
    // It trusts both, so it is answered meanwhile.
    shows(&at, [&one.0, &two.0]).await;
    ok(&world.server, Method::POST, MAPS, &json!({"metadata": {"name": "b"}})).await;
    // None of these is used: the one that comes after them follows the one before.
    let wrong = [
        (issued(&second, "127.0.0.1", true), second.pem()),
        (issued(&second, "10.0.0.1", false), second.pem()),
        ((two.0.clone(), three.1.clone()), second.pem()),
        (issued(&first, "127.0.0.1", false), second.pem()),
        (("garbage".to_owned(), "garbage".to_owned()), "garbage".to_owned()),
    ];
    for (place, (files, ca)) in wrong.iter().enumerate() {
        exchange(&volume, &format!("wrong-{place}"), files, ca);
        assert_eq!(at.shown().await, der(&two.0), "{place}");
    }
    exchange(&volume, "3", &three, &second.pem());
    shows(&at, [&two.0, &three.0]).await;
    let page = get_page(&operator.port.to_string(), "/metrics");
    assert!(page.contains("addon_operator_webhook_certificate_expires_seconds 6"), "{page}");
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Returns what the API server is told of one webhook with these certificates.
fn told(ca_bundle: &str) -> WebhookRegistration {
    let webhook = json!({
        "name": "maps.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1/x", "caBundle": ca_bundle},
    });
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "addon-operator-ops"}, "webhooks": [webhook],
    });
    WebhookRegistration { validating: Some(object), ..WebhookRegistration::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_our_own_certificate_is_renewed_at_two_thirds_of_its_life_and_trusted_before_it_is_shown() {
    let world = Cluster::new().await;
    // The certificate that is due for renewal, and the next one, are valid now.
    let start = Timestamp::now() - SignedDuration::from_hours(250 * 24);
    let (time, held) = watch::channel(start);
    let options = || replica_options(None, &held);
    let (inbox, _questions, mut channels) = driver::channels();
    let webhooks = Webhooks::bind(world.client(), options(), true).await.unwrap();
    let first = webhooks.serve(&inbox).await.unwrap();
    assert_eq!(first.valid_for.as_secs().div_ceil(86_400), 365);
    webhooks.register(&told(&first.ca_bundle)).await.0.unwrap();
    let port = port_of(&webhooks);
    let trusting = |bundle: &str| Asked { port, trusted: STANDARD.decode(bundle).unwrap(), own: None };
    let old = trusting(&first.ca_bundle).shown().await;
    // Two thirds of a year, and a second.
    let due = start + SignedDuration::from_hours(365 * 24) * 2 / 3 + SignedDuration::from_secs(1);
    time.send_replace(due);
    let Some(engine::Event::WebhookCertificateRenewed { certificate }) = channels.next_answer().await else {
        panic!("the certificate was not renewed")
    };
    assert_eq!(certificate.valid_for.as_secs().div_ceil(86_400), 365);
    // Those who trust the new one still trust what is shown until the API server was told.
    let both = trusting(&certificate.ca_bundle);
    assert_eq!(both.shown().await, old);
    webhooks.register(&told(&certificate.ca_bundle)).await.0.unwrap();
    let new = both.shown().await;
    assert_ne!(new, old);
    // A later start finds it.
    let again = Webhooks::bind(world.client(), options(), true).await.unwrap();
    assert_eq!(again.serve(&inbox).await.unwrap().ca_bundle, certificate.ca_bundle);
    drop((webhooks, again));
    // One that starts when it is outworn makes another one.
    time.send_replace(due + SignedDuration::from_hours(365 * 24));
    let late = Webhooks::bind(world.client(), options(), true).await.unwrap();
    assert_ne!(late.serve(&inbox).await.unwrap().ca_bundle, certificate.ca_bundle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_the_api_server_refuses_is_named_and_those_that_are_registered_can_be_made_harmless() {
    let world = Cluster::new().await;
    let (_time, held) = watch::channel(Timestamp::now());
    let webhooks = Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap();
    let WebhookClient::Url(url) = webhooks.client().clone() else { panic!("it is reached by a URL") };
    let webhook = |name: &str, expression: &str| {
        json!({
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": format!("{url}/validate/{name}")}, "matchConditions": [{"name": "x", "expression": expression}],
        })
    };
    let configuration = |list: &[Value]| {
        let mut object = told("").validating.unwrap();
        object["webhooks"] = list.into();
        object
    };
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/addon-operator-ops";
    let known = async || {
        let object = get(&world.server, path).await.unwrap_or_default();
        let list = object["webhooks"].as_array().cloned().unwrap_or_default();
        let of = |webhook: &Value| (webhook["name"].clone(), webhook["failurePolicy"].clone());
        list.iter().map(of).collect::<Vec<_>>()
    };
    let write = |list: &[Value]| WebhookRegistration {
        validating: Some(configuration(list)),
        ..WebhookRegistration::default()
    };
    let (good, other) = (webhook("good.example.com", "true"), webhook("other.example.com", "true"));
    let (outcome, refusals, versions) = webhooks.register(&write(&[good.clone(), other.clone()])).await;
    assert_eq!((outcome, refusals), (Ok(()), Vec::new()));
    let version = get(&world.server, path).await.unwrap()["metadata"]["resourceVersion"].clone();
    assert_eq!(
        versions.configurations.into_values().map(|it| json!(it.to_string())).collect::<Vec<_>>(),
        [version]
    );
    let odd = webhook("odd.example.com", "object.foo(");
    let (outcome, refusals, _) = webhooks.register(&write(&[good.clone(), odd])).await;
    assert_eq!((outcome, refusals.len()), (Ok(()), 1));
    let named: Vec<_> = refusals[0].webhooks.iter().collect();
    assert_eq!((named.len(), named[0].0.as_str()), (1, "odd.example.com"));
    let why = named[0].1;
    assert!(
        why.starts_with("matchConditions[0].expression: Invalid value: \"object.foo(\": compilation failed"),
        "{why}"
    );
    assert!(!why.contains('\n'), "{why}");
    // Nothing of that was written. What is not wanted any more goes, and the rest lets requests go on.
    let both =
        [("good.example.com", "Fail"), ("other.example.com", "Fail")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(known().await, both);
    let narrow = |stay: Option<&str>| {
        let stay = stay.map(|name| [name.to_owned()].into());
        let narrowing = Narrowing { head: configuration(&[]), stay };
        let narrowed = [(AdmissionKind::Validating, narrowing)].into();
        WebhookRegistration { narrowed, ..WebhookRegistration::default() }
    };
    let (outcome, refusals, _) = webhooks.register(&narrow(Some("good.example.com"))).await;
    assert_eq!((outcome, refusals), (Ok(()), Vec::new()));
    assert_eq!(known().await, [(json!("good.example.com"), json!("Ignore"))]);
    // At the end all stay, whatever they are.
    webhooks.register(&write(&[good, other])).await.0.unwrap();
    webhooks.register(&narrow(None)).await.0.unwrap();
    let both = [("good.example.com", "Ignore"), ("other.example.com", "Ignore")];
    assert_eq!(known().await, both.map(|(a, b)| (json!(a), json!(b))));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_a_hook_may_come_to_want_stay_beside_those_that_are_wanted_and_hold_up_nobody() {
    let world = Cluster::new().await;
    let (_time, held) = watch::channel(Timestamp::now());
    let webhooks = Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap();
    let WebhookClient::Url(url) = webhooks.client().clone() else { panic!("it is reached by a URL") };
    let register = async |names: &[&str], keeps_others: bool| {
        let webhook = |name: &&str| {
            let url = if *name == "foreign.example.com" { "https://127.0.0.1" } else { url.as_str() };
            json!({
                "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "clientConfig": {"url": format!("{url}/validate/{name}")},
            })
        };
        let mut object = told("").validating.unwrap();
        object["webhooks"] = names.iter().map(webhook).collect();
        let registration =
            WebhookRegistration { validating: Some(object), keeps_others, ..WebhookRegistration::default() };
        webhooks.register(&registration).await.0.unwrap();
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/addon-operator-ops";
        let object = get(&world.server, path).await.unwrap();
        let of = |webhook: &Value| {
            let text = |field: &str| webhook[field].as_str().unwrap().to_owned();
            format!("{} {}", text("name"), text("failurePolicy"))
        };
        object["webhooks"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    register(&["old.example.com", "both.example.com", "foreign.example.com"], false).await;
    let known = register(&["both.example.com", "new.example.com"], true).await;
    assert_eq!(known, ["both.example.com Fail", "new.example.com Fail", "old.example.com Ignore"]);
    let known = register(&["both.example.com", "new.example.com"], false).await;
    assert_eq!(known, ["both.example.com Fail", "new.example.com Fail"]);
}

/// Where our own certificate is.
const SECRET: &str = "/api/v1/namespaces/ops/secrets/addon-operator-ops-tls";

/// Waits until the Secret is as wanted, and returns it.
async fn secret_with(world: &Cluster, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let secret = get(&world.server, SECRET).await.unwrap_or_default();
        if is_wanted(&secret) {
            return secret;
        }
        assert!(begun.elapsed() < DEADLINE, "{secret}");
        tokio::task::yield_now().await;
    }
}

/// Returns how many certificates a text has that is PEM in base64.
fn certificates_in(bundle: &str) -> usize {
    CertificateDer::pem_slice_iter(&STANDARD.decode(bundle).unwrap()).count()
}

/// Returns what the API server shall trust from now on.
async fn renewed(channels: &mut driver::Channels) -> WebhookCertificate {
    let answer = tokio::time::timeout(DEADLINE, channels.next_answer()).await;
    match answer.unwrap() {
        Some(engine::Event::WebhookCertificateRenewed { certificate }) => certificate,
        other => panic!("{other:?}"),
    }
}

async fn shown_to(trusted: &str, webhooks: &Webhooks) -> Vec<u8> {
    Asked { port: port_of(webhooks), trusted: STANDARD.decode(trusted).unwrap(), own: None }.shown().await
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_a_secret_that_is_lost_or_garbled_gets_the_certificate_back_that_replicas_show() {
    let world = Cluster::new().await;
    let (_time, held) = watch::channel(Timestamp::now());
    let (inbox, _questions, _channels) = driver::channels();
    let replica = async || Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap();
    let running = replica().await;
    let bundle = running.serve(&inbox).await.unwrap().ca_bundle;
    let of = |secret: &Value| secret["data"].clone();
    let before = of(&secret_with(&world, |secret| !secret.is_null()).await);
    ok(&world.server, Method::DELETE, SECRET, &Value::Null).await;
    secret_with(&world, |secret| of(secret) == before).await;
    let garbage = [json!({"data": {"tls.crt": "Z2FyYmFnZQ=="}}), json!({"metadata": {"annotations": null}})];
    for garbage in garbage {
        let annotation = |secret: &Value| secret["metadata"]["annotations"].is_object();
        ok(&world.server, Method::PATCH, SECRET, &garbage).await;
        secret_with(&world, |secret| of(secret) == before && annotation(secret)).await;
    }
    let late = replica().await;
    let (other_inbox, _questions, _channels) = driver::channels();
    assert_eq!(late.serve(&other_inbox).await.unwrap().ca_bundle, bundle);
    assert_eq!(shown_to(&bundle, &late).await, shown_to(&bundle, &running).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_a_replica_that_starts_while_the_secret_is_gone_waits_for_those_that_have_it() {
    let world = Cluster::new().await;
    let (_time, held) = watch::channel(Timestamp::now());
    let (inbox, _questions, _channels) = driver::channels();
    let replica = async || Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap();
    let leader = replica().await;
    let bundle = leader.serve(&inbox).await.unwrap().ca_bundle;
    leader.register(&told(&bundle)).await.0.unwrap();
    // It is written again, and nobody sees that for a while.
    world.server.faults().add(FaultPlan::on(Method::GET, SECRET).fail(404).times(15));
    let (other_inbox, _other_questions, _other_channels) = driver::channels();
    let late = replica().await;
    assert_eq!(late.serve(&other_inbox).await.unwrap().ca_bundle, bundle);
    assert_eq!(shown_to(&bundle, &late).await, shown_to(&bundle, &leader).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_another_authority_in_the_secret_is_adopted_and_what_replicas_show_stays_trusted() {
    let (world, elsewhere) = (Cluster::new().await, Cluster::new().await);
    let (time, held) = watch::channel(Timestamp::now());
    let replica = async |world: &Cluster| {
        Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap()
    };
    let (inbox, _questions, mut channels) = driver::channels();
    let (other_inbox, _other_questions, mut other_channels) = driver::channels();
    let (leader, standby) = (replica(&world).await, replica(&world).await);
    let first = leader.serve(&inbox).await.unwrap();
    leader.register(&told(&first.ca_bundle)).await.0.unwrap();
    standby.serve(&other_inbox).await.unwrap();
    let old = shown_to(&first.ca_bundle, &standby).await;
    // Another replica, which found none, made one.
    let (third, (third_inbox, _third_questions, _third_channels)) =
        (replica(&elsewhere).await, driver::channels());
    third.serve(&third_inbox).await.unwrap();
    let mut made = get(&elsewhere.server, SECRET).await.unwrap();
    made["metadata"] = json!({"annotations": made["metadata"]["annotations"]});
    let (status, answer) = send(&world.server, Method::PATCH, SECRET, &made).await;
    assert_eq!(status, 200, "{answer}");
    let both = |bundle: &str| certificates_in(bundle) == 2;
    let secret = secret_with(&world, |secret| secret["data"]["ca.crt"].as_str().is_some_and(both)).await;
    let all = secret["data"]["ca.crt"].as_str().unwrap();
    // The leader tells the API server of both, and shows the other one then.
    let mut told_last = renewed(&mut channels).await.ca_bundle;
    if &*told_last != all {
        told_last = renewed(&mut channels).await.ca_bundle;
    }
    assert_eq!(&*told_last, all);
    assert_eq!(shown_to(all, &leader).await, old);
    leader.register(&told(all)).await.0.unwrap();
    let new = shown_to(all, &leader).await;
    assert_ne!(new, old);
    assert_eq!(new, shown_to(all, &third).await);
    // The standby shows the old one until then, and would tell of both if it led now. So would a replica that starts.
    let mut of_standby = renewed(&mut other_channels).await.ca_bundle;
    if &*of_standby != all {
        of_standby = renewed(&mut other_channels).await.ca_bundle;
    }
    assert_eq!((&*of_standby, shown_to(all, &standby).await), (all, old));
    let late = replica(&world).await;
    assert_eq!(&*late.serve(&third_inbox).await.unwrap().ca_bundle, all);
    time.send_modify(|time| *time += SignedDuration::from_mins(11));
    let begun = Instant::now();
    while shown_to(all, &standby).await != new {
        assert!(begun.elapsed() < DEADLINE, "the standby shows the old one for ever");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_a_secret_whose_time_somebody_wrote_gets_another_certificate_at_once() {
    let world = Cluster::new().await;
    let (_time, held) = watch::channel(Timestamp::now());
    let (inbox, _questions, mut channels) = driver::channels();
    let webhooks = Webhooks::bind(world.client(), replica_options(None, &held), true).await.unwrap();
    let first = webhooks.serve(&inbox).await.unwrap();
    let due = json!({"metadata": {"annotations": {"addon-operator.io/renew-at": "2020-01-01T00:00:00Z"}}});
    ok(&world.server, Method::PATCH, SECRET, &due).await;
    let next = renewed(&mut channels).await;
    assert_eq!((certificates_in(&first.ca_bundle), certificates_in(&next.ca_bundle)), (1, 2));
}

/// What a replica is started with whose certificate a test looks at.
fn replica_options(certificates: Option<CertificateFiles>, held: &watch::Receiver<Timestamp>) -> Options {
    Options {
        address: ("127.0.0.1".to_owned(), 0),
        certificates,
        client_authorities: Vec::new(),
        namespace: "ops".to_owned(),
        name: "addon-operator-ops".to_owned(),
        client: WebhookClient::Url("https://127.0.0.1:0".to_owned()),
        clock: Clock::Held(held.clone()),
    }
}

fn port_of(webhooks: &Webhooks) -> u16 {
    let WebhookClient::Url(url) = webhooks.client() else { panic!("a URL was given") };
    url.parse::<http::Uri>().unwrap().port_u16().unwrap()
}

/// A standby tells the API server nothing, and is asked all the same: whatever it shows has to be trusted.
async fn standby_shows(certificates: Option<&CertificateFiles>, replace: impl Fn(&watch::Sender<Timestamp>)) {
    let world = Cluster::new().await;
    let (time, held) = watch::channel(Timestamp::now() - SignedDuration::from_hours(250 * 24));
    let (inbox, _questions, mut channels) = driver::channels();
    let (other_inbox, _other_questions, mut other_channels) = driver::channels();
    let options = || replica_options(certificates.cloned(), &held);
    let leader = Webhooks::bind(world.client(), options(), true).await.unwrap();
    let first = leader.serve(&inbox).await.unwrap();
    leader.register(&told(&first.ca_bundle)).await.0.unwrap();
    let standby = Webhooks::bind(world.client(), options(), true).await.unwrap();
    assert_eq!(standby.serve(&other_inbox).await.unwrap().ca_bundle, first.ca_bundle);
    let shown = async |webhooks: &Webhooks, bundle: &str| {
        let port = port_of(webhooks);
        Asked { port, trusted: STANDARD.decode(bundle).unwrap(), own: None }.shown().await
    };
    let old = shown(&standby, &first.ca_bundle).await;
    replace(&time);
    let Some(engine::Event::WebhookCertificateRenewed { certificate }) = channels.next_answer().await else {
        panic!("the leader did not renew its certificate")
    };
    let of_standby = other_channels.next_answer().await;
    assert!(matches!(of_standby, Some(engine::Event::WebhookCertificateRenewed { .. })), "{of_standby:?}");
    leader.register(&told(&certificate.ca_bundle)).await.0.unwrap();
    let new = shown(&leader, &certificate.ca_bundle).await;
    assert_ne!(new, old);
    // It does not know whether the leader is so far. What it shows is trusted by whoever trusts the new one.
    assert_eq!(shown(&standby, &certificate.ca_bundle).await, old);
    let later = *time.borrow() + SignedDuration::from_mins(11);
    time.send_replace(later);
    let begun = Instant::now();
    while shown(&standby, &certificate.ca_bundle).await != new {
        assert!(begun.elapsed() < DEADLINE, "the standby shows the old one for ever");
        pause().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_a_standby_shows_our_new_certificate_when_the_leader_has_had_time_to_tell_of_it() {
    standby_shows(None, |time| {
        let due =
            *time.borrow() + SignedDuration::from_hours(365 * 24) * 2 / 3 + SignedDuration::from_secs(1);
        time.send_replace(due);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_a_standby_shows_the_new_certificate_of_files_when_the_leader_has_had_time_to_tell_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (authority(), authority());
    exchange(directory.path(), "1", &issued(&first, "127.0.0.1", false), &first.pem());
    let [cert, key, ca] = ["tls.crt", "tls.key", "ca.crt"].map(|name| directory.path().join(name));
    standby_shows(Some(&CertificateFiles { cert, key, ca }), |_| {
        exchange(directory.path(), "2", &issued(&second, "127.0.0.1", false), &second.pem());
    })
    .await;
}
