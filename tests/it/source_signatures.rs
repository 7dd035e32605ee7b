//! Signatures of bundles (`spec.verify`): beside archives, and as cosign writes them into registries.

use std::collections::BTreeSet;
use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{AddonReason, Include, RepositorySpec, SecretName, SourceSpec, Verification};
use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SigningKey as _};
use serde_json::json;

use crate::support::registry::{MANIFEST, Registry};
use crate::support::repository::{Reply, Repository, digest, module};
use crate::support::server;
use crate::support::source::{
    SourceFixture, addons, bundle, key, problem, repository_problem, spec, spec_of,
};

pub(crate) fn signed_by(spec: SourceSpec, keys: &[String]) -> SourceSpec {
    let verify = Verification { public_keys: keys.to_vec(), secret: None };
    SourceSpec { verify: Some(verify), ..spec }
}

/// Returns a file that openssl or cosign made. The private keys are nowhere.
fn read(name: &str) -> Vec<u8> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/signatures");
    fs::read(data.join(name)).unwrap()
}

pub(crate) fn text(name: &str) -> String {
    String::from_utf8(read(name)).unwrap()
}

/// The type of a list of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn web() -> Vec<u8> {
    module("web", "1.0.0", "hello")
}

/// Publishes the bundle with this file beside it.
fn publish(repository: &Repository, signature: Reply) {
    repository.publish(&[("web", "1.0.0", web())]);
    repository.put("/web-1.0.0.tgz.sig", signature);
}

fn signature(key: &KeyPair, bytes: &[u8]) -> Reply {
    Reply::File(format!("{}\n", STANDARD.encode(key.sign(bytes).unwrap())).into_bytes())
}

#[tokio::test]
async fn a_bundle_is_used_if_one_of_the_keys_signed_its_archive() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let edwards = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    publish(&repository, signature(&own, &web()));
    let sources = world.sources();
    let of = spec(&[repository.url("/index.yaml")]);
    let both = signed_by(of.clone(), &[other.public_key_pem(), own.public_key_pem()]);
    let fetched = sources.fetch(&key(), &both).await.unwrap();
    assert_eq!(bundle(&fetched).name.as_str(), "web");
    let asked = |part: &str| repository.asked().iter().filter(|(path, _)| path.ends_with(part)).count();
    assert_eq!(asked(".sig"), 1);
    // What was verified is not verified again with the same keys, in any order.
    let turned = signed_by(of.clone(), &[own.public_key_pem(), other.public_key_pem()]);
    assert_eq!(sources.fetch(&key(), &turned).await.unwrap(), fetched);
    assert_eq!(asked(".sig"), 0);
    publish(&repository, signature(&edwards, &web()));
    let ours = signed_by(of.clone(), &[edwards.public_key_pem()]);
    assert_eq!(sources.fetch(&key(), &ours).await.unwrap(), fetched);
    // The bytes of a signature will do, too.
    publish(&repository, Reply::File(other.sign(&web()).unwrap()));
    let ours = signed_by(of, &[other.public_key_pem()]);
    assert_eq!(sources.fetch(&key(), &ours).await.unwrap(), fetched);
}

#[tokio::test]
async fn nothing_of_a_bundle_without_a_signature_is_unpacked() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    // A key of another curve, whose hash is longer.
    let longer = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let of =
        signed_by(spec(&[repository.url("/index.yaml")]), &[own.public_key_pem(), longer.public_key_pem()]);
    let sources = world.sources();
    for (reply, reason, says) in [
        (Reply::Status(404, Vec::new()), AddonReason::LoadingError, "it is not signed: localhost:"),
        (signature(&other, &web()), AddonReason::LoadingError, "it is wrongly signed"),
        (signature(&own, b"other"), AddonReason::LoadingError, "it is wrongly signed"),
        (signature(&longer, b"other"), AddonReason::LoadingError, "it is wrongly signed"),
        (Reply::File(b"signature".to_vec()), AddonReason::LoadingError, "it is wrongly signed"),
        (Reply::File(Vec::new()), AddonReason::LoadingError, "it is wrongly signed"),
        (Reply::Zeros(1 << 20), AddonReason::FetchingError, "the signature of the bundle can't be fetched"),
        (Reply::Status(500, Vec::new()), AddonReason::FetchingError, "500"),
        (Reply::Page, AddonReason::FetchingError, "web page"),
    ] {
        publish(&repository, reply);
        let (found, said) = problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(found, reason, "{said}");
        assert!(said.contains(says) && !said.contains('\n'), "{says}: {said}");
        assert_eq!((world.count("blobs"), world.count("staging")), (0, 0), "{said}");
    }
    // One that is here already is not better for it.
    let unsigned = spec(&[repository.url("/index.yaml")]);
    bundle(&sources.fetch(&key(), &unsigned).await.unwrap());
    assert_eq!(world.count("blobs"), 1);
    publish(&repository, Reply::Status(404, Vec::new()));
    let (found, _) = problem(&sources.fetch(&key(), &of).await.unwrap());
    assert_eq!(found, AddonReason::LoadingError);
    let pinned = |spec: SourceSpec| {
        let digest = Some(format!("sha256:{}", digest(&web())).parse().unwrap());
        let include = vec![Include { name: "web".to_owned(), version: None, digest }];
        let repositories = spec.repositories.into_iter();
        let repositories = repositories.map(|its| RepositorySpec { include: include.clone(), ..its });
        SourceSpec { verify: spec.verify, ..spec_of(repositories.collect()) }
    };
    let of = pinned(of);
    assert_eq!(problem(&sources.fetch(&key(), &of).await.unwrap()).0, AddonReason::LoadingError);
    publish(&repository, signature(&own, &web()));
    bundle(&sources.fetch(&key(), &of).await.unwrap());
}

#[tokio::test]
async fn keys_that_can_not_be_used_are_told_and_nothing_is_fetched() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let own = KeyPair::generate().unwrap();
    publish(&repository, signature(&own, &web()));
    for (name, data) in [
        ("keys", json!({"cosign.pub": own.public_key_pem(), "cosign.key": "secret"})),
        ("none", json!({"cosign.key": own.serialize_pem()})),
        ("wrong", json!({"a.pub": own.serialize_pem()})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    }
    let with = |keys: &[&str], secret: Option<(&str, &str)>| {
        let name = |(namespace, name): (&str, &str)| SecretName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let public_keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let verify = Verification { public_keys, secret: secret.map(name) };
        SourceSpec { verify: Some(verify), ..spec(&[repository.url("/index.yaml")]) }
    };
    let sources = world.sources();
    let private = own.serialize_pem();
    for (of, reason, says) in [
        (
            with(&["x"], None),
            "LoadingError",
            "spec.verify.publicKeys[0] can't be used: it is no public key in PEM",
        ),
        (with(&[&private], None), "LoadingError", "it is a private key"),
        (with(&[], None), "LoadingError", "spec.verify names no key"),
        (
            with(&[], Some(("ops", "none"))),
            "LoadingError",
            "Secret ops/none of spec.verify has no public key",
        ),
        (
            with(&[], Some(("ops", "wrong"))),
            "LoadingError",
            "a.pub of Secret ops/wrong of spec.verify can't be used",
        ),
        (with(&[], Some(("ops", "gone"))), "TemplatingURLError", "there is no Secret ops/gone"),
        (with(&[], Some(("other", "keys"))), "TemplatingURLError", "Secrets may be in ops only"),
    ] {
        let (found, said) = repository_problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(found, reason, "{said}");
        assert!(said.contains(says) && !said.contains('\n'), "{says}: {said}");
        assert!(!said.contains("MIG"), "{said}");
    }
    assert_eq!(repository.asked(), []);
    bundle(&sources.fetch(&key(), &with(&[], Some(("ops", "keys")))).await.unwrap());
    let git =
        signed_by(spec(&["git::https://localhost/a.git//index.yaml".to_owned()]), &[own.public_key_pem()]);
    let (reason, said) = repository_problem(&sources.fetch(&key(), &git).await.unwrap());
    assert_eq!(reason, "LoadingError");
    assert!(said.contains("a repository of git have none that are checked"), "{said}");
}

#[tokio::test]
async fn a_registry_has_the_signatures_that_cosign_writes() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let include = vec![Include { name: "web".to_owned(), version: Some("1.0.0".to_owned()), digest: None }];
    let of = spec_of(vec![RepositorySpec { url: registry.url(""), secret: None, include }]);
    let of = signed_by(of, &[own.public_key_pem()]);
    let manifest = registry.push_bundle("web", "1.0.0", &web());
    let sources = world.sources();
    let refused = async |says: &str| {
        repository.asked();
        let (found, said) = problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(found, AddonReason::LoadingError, "{said}");
        assert!(said.contains(says) && !said.contains('\n'), "{says}: {said}");
        let blob = format!("/blobs/sha256:{}", digest(&web()));
        assert!(repository.asked().iter().all(|(path, _)| !path.ends_with(&blob)), "{said}");
        assert_eq!(world.count("blobs"), 0);
    };
    refused(&format!("it is not signed: the registry has no tag {}.sig", manifest.replace(':', "-"))).await;
    registry.sign("web", &manifest, &manifest, &other);
    refused("none of its signatures is of a key of spec.verify").await;
    let elsewhere = format!("sha256:{}", digest(b"elsewhere"));
    registry.sign("web", &manifest, &elsewhere, &own);
    refused(&format!("its signature is of the manifest {elsewhere}")).await;
    let tag = format!("{}.sig", manifest.replace(':', "-"));
    registry.put_manifest("web", &tag, &json!({"layers": []}));
    refused("has no signature of cosign").await;
    registry.sign("web", &manifest, &manifest, &own);
    bundle(&sources.fetch(&key(), &of).await.unwrap());
    repository.asked();
    bundle(&sources.fetch(&key(), &of).await.unwrap());
    assert_eq!(repository.asked().len(), 1, "it was verified a moment ago");
    // Another bundle under the tag needs a signature of its own.
    registry.push_bundle("web", "1.0.0", &module("web", "1.0.0", "goodbye"));
    let (found, _) = problem(&sources.fetch(&key(), &of).await.unwrap());
    assert_eq!(found, AddonReason::LoadingError);
}

/// One random life of a repository: archives and signatures come and go, alone and together, some of them of the wrong archive or of
/// the wrong key; other keys are trusted; the operator begins anew; and somebody without `spec.verify` has the same archives fetched.
async fn life(seed: u64, keys: &[KeyPair]) {
    let mut random = StdRng::seed_from_u64(seed);
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let archives: Vec<Vec<u8>> = (0..4).map(|says: u32| module("web", "1.0.0", &says.to_string())).collect();
    let of = spec(&[repository.url("/index.yaml")]);
    let mut sources = world.sources();
    // What each key signed that anybody could see, and what may be in the store.
    let mut signed: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut permitted: BTreeSet<String> = BTreeSet::new();
    let (mut trusted, mut offered, mut shown) = (vec![0], 0, None);
    repository.publish(&[("web", "1.0.0", archives[0].clone())]);
    for step in 0..40 {
        match random.random_range(0..9) {
            0 | 1 => {
                offered = random.random_range(0..archives.len());
                repository.publish(&[("web", "1.0.0", archives[offered].clone())]);
            }
            2..=4 => {
                let (by, what) = (random.random_range(0..keys.len()), random.random_range(0..archives.len()));
                signed.insert((by, digest(&archives[what])));
                shown = Some((by, what));
                repository.put("/web-1.0.0.tgz.sig", signature(&keys[by], &archives[what]));
            }
            5 => {
                shown = None;
                let odd = [
                    Reply::Status(404, Vec::new()),
                    Reply::File(b"AAAA".to_vec()),
                    Reply::Status(500, Vec::new()),
                ];
                let [none, wrong, broken] = odd;
                let reply = match random.random_range(0..3) {
                    0 => none,
                    1 => wrong,
                    _ => broken,
                };
                repository.put("/web-1.0.0.tgz.sig", reply);
            }
            6 => trusted = (0..keys.len()).filter(|_| random.random_range(0..2) == 0).chain([0]).collect(),
            7 => {
                drop(sources);
                sources = world.sources();
            }
            _ => {
                permitted.insert(bundle(&sources.fetch(&key(), &of).await.unwrap()).digest.to_string());
            }
        }
        let public: Vec<String> = trusted.iter().map(|by| keys[*by].public_key_pem()).collect();
        let verified = signed_by(of.clone(), &public);
        let fetched = sources.fetch(&key(), &verified).await.unwrap();
        let is_signed_now = shown.is_some_and(|(by, what)| what == offered && trusted.contains(&by));
        let was_signed = |hex: &str| trusted.iter().any(|by| signed.contains(&(*by, hex.to_owned())));
        match &addons(&fetched)[0].outcome {
            Ok(bundle) => {
                let hex = bundle.digest.as_str().trim_start_matches("sha256:");
                assert_eq!(hex, digest(&archives[offered]), "seed {seed}, step {step}");
                assert!(was_signed(hex), "seed {seed}, step {step}: nobody who is trusted signed it");
                permitted.insert(bundle.digest.to_string());
            }
            Err(problem) => assert!(!is_signed_now, "seed {seed}, step {step}: {}", problem.message),
        }
        let blobs = fs::read_dir(world.directory().join("blobs")).into_iter().flatten();
        for blob in blobs.map(|blob| blob.unwrap().file_name().into_string().unwrap()) {
            let blob = format!("sha256:{blob}");
            assert!(permitted.contains(&blob), "seed {seed}, step {step}: {blob} was unpacked");
        }
    }
}

#[tokio::test]
async fn whatever_is_published_only_what_a_trusted_key_signed_is_used_or_unpacked() {
    let keys: Vec<KeyPair> = (0..3).map(|_| KeyPair::generate().unwrap()).collect();
    for seed in 0..12 {
        life(seed, &keys).await;
    }
}

#[tokio::test]
async fn what_openssl_signed_is_accepted() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&[("web", "1.0.0", read("web-1.0.0.tgz"))]);
    for name in ["p256", "p384", "ed25519", "rsa"] {
        repository.put("/web-1.0.0.tgz.sig", Reply::File(read(&format!("{name}.sig"))));
        let of = signed_by(spec(&[repository.url("/index.yaml")]), &[text(&format!("{name}.pub"))]);
        assert_eq!(bundle(&world.sources().fetch(&key(), &of).await.unwrap()).name.as_str(), "web", "{name}");
    }
}

#[tokio::test]
async fn what_cosign_signed_beside_an_archive_is_accepted_in_both_of_its_formats() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&[("web", "1.0.0", read("cosign/web-1.0.0.tgz"))]);
    for key_name in ["p256", "p384", "p521", "ed25519", "rsa"] {
        for format in ["sig", "sigstore.json"] {
            let file = format!("cosign/{key_name}.{format}");
            repository.put("/web-1.0.0.tgz.sig", Reply::File(read(&file)));
            let of =
                signed_by(spec(&[repository.url("/index.yaml")]), &[text(&format!("cosign/{key_name}.pub"))]);
            assert_eq!(
                bundle(&world.sources().fetch(&key(), &of).await.unwrap()).name.as_str(),
                "web",
                "{file}"
            );
        }
    }
    // The signature of one key is no signature of another.
    repository.put("/web-1.0.0.tgz.sig", Reply::File(read("cosign/p384.sigstore.json")));
    let of = signed_by(spec(&[repository.url("/index.yaml")]), &[text("cosign/p256.pub")]);
    let fresh = SourceFixture::new(&repository, &[]).await;
    assert_eq!(problem(&fresh.sources().fetch(&key(), &of).await.unwrap()).0, AddonReason::LoadingError);
}

/// Serves what cosign pushed, as a registry with the call for what refers to a manifest does, or as one without.
///
/// cosign 3.1.3 made it of a bundle in a registry, first with another key, then with `p256.pub`: up to version 2 it does what it does
/// with `--new-bundle-format=false` now.
pub(crate) fn serve(repository: &Repository, is_new: bool, has_referrers: bool) -> String {
    let registry = Registry::open(repository);
    let manifest = read("cosign/manifest.json");
    let its = digest(&manifest);
    let put = |reference: &str, kind: &str, file: &str| {
        let text = read(&format!("cosign/{file}"));
        let headers = vec![
            ("content-type", kind.to_owned()),
            ("docker-content-digest", format!("sha256:{}", digest(&text))),
        ];
        registry.put(&format!("web/manifests/{reference}"), Reply::With(headers, text));
    };
    let blob = |file: &str| {
        let bytes = read(&format!("cosign/{file}"));
        registry.put(&format!("web/blobs/sha256:{}", digest(&bytes)), Reply::File(bytes));
    };
    put("1.0.0", MANIFEST, "manifest.json");
    registry.tags("web", &["1.0.0"]);
    registry.put(&format!("web/blobs/sha256:{}", digest(b"{}")), Reply::File(b"{}".to_vec()));
    let blobs =
        ["web-1.0.0.tgz", "simple.payload", "simple.config", "other.sigstore.json", "own.sigstore.json"];
    blobs.into_iter().for_each(blob);
    if !is_new {
        put(&format!("sha256-{its}.sig"), MANIFEST, "simple.json");
        return format!("sha256:{its}");
    }
    for file in ["other.json", "own.json"] {
        put(&format!("sha256:{}", digest(&read(&format!("cosign/{file}")))), MANIFEST, file);
    }
    if has_referrers {
        registry
            .put(&format!("web/referrers/sha256:{its}"), Reply::Typed(INDEX, read("cosign/referrers.json")));
    } else {
        put(&format!("sha256-{its}"), INDEX, "referrers.json");
    }
    format!("sha256:{its}")
}

#[tokio::test]
async fn what_cosign_signed_in_a_registry_is_accepted_in_both_of_its_formats() {
    for (is_new, has_referrers) in [(false, false), (true, false), (true, true)] {
        let repository = Repository::tls(&[]).await;
        let world = SourceFixture::new(&repository, &[]).await;
        let manifest = serve(&repository, is_new, has_referrers);
        let url = Registry::open(&repository).url("");
        let include =
            vec![Include { name: "web".to_owned(), version: Some("1.0.0".to_owned()), digest: None }];
        let of = spec_of(vec![RepositorySpec { url, secret: None, include }]);
        // A stranger's key is among them, and none of its signatures.
        let stranger = signed_by(of.clone(), &[text("cosign/p384.pub")]);
        let (reason, said) = problem(&world.sources().fetch(&key(), &stranger).await.unwrap());
        assert_eq!(reason, AddonReason::LoadingError);
        assert!(said.contains("none of its signatures is of a key of spec.verify"), "{said}");
        assert_eq!(world.count("blobs"), 0);
        repository.requests();
        // There are two signatures; that of the last key is the second one.
        let of = signed_by(of, &[text("cosign/p256.pub")]);
        assert_eq!(bundle(&world.sources().fetch(&key(), &of).await.unwrap()).version, "1.0.0", "{manifest}");
        // Registries have manifests for those who accept their type.
        let asked = repository.requests();
        let manifests: Vec<_> = asked.iter().filter(|asked| asked.path.contains("/manifests/")).collect();
        assert!(manifests.len() >= 2);
        for asked in manifests {
            let accept = asked.headers["accept"].to_str().unwrap();
            assert!(accept.contains(MANIFEST) && accept.contains(INDEX), "{}: {accept}", asked.path);
        }
    }
}
