//! Signatures of bundles (`spec.verify`): beside archives, and as cosign writes them into registries.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{AddonReason, Include, RepositorySpec, SecretName, SourceSpec, Verification};
use http::Method;
use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SigningKey as _};
use serde_json::json;

use crate::support::registry::Registry;
use crate::support::repository::{Reply, Repository, digest, module};
use crate::support::server;
use crate::support::source::{SourceFixture, bundle, key, problem, repository_problem, spec, spec_of};

fn signed_by(spec: SourceSpec, keys: &[String]) -> SourceSpec {
    let verify = Verification { public_keys: keys.to_vec(), secret: None };
    SourceSpec { verify: Some(verify), ..spec }
}

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
    // A key of another curve, with another hash than the one that is checked.
    let odd = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let of = signed_by(spec(&[repository.url("/index.yaml")]), &[own.public_key_pem(), odd.public_key_pem()]);
    let sources = world.sources();
    for (reply, reason, says) in [
        (Reply::Status(404, Vec::new()), AddonReason::LoadingError, "it is not signed: localhost:"),
        (signature(&other, &web()), AddonReason::LoadingError, "it is wrongly signed"),
        (signature(&own, b"other"), AddonReason::LoadingError, "it is wrongly signed"),
        (signature(&odd, &web()), AddonReason::LoadingError, "it is wrongly signed"),
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

#[tokio::test]
async fn what_openssl_and_cosign_signed_is_accepted() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/signatures");
    let read = |name: &str| fs::read(data.join(name)).unwrap();
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&[("web", "1.0.0", read("web-1.0.0.tgz"))]);
    for name in ["p256", "p384", "ed25519", "rsa"] {
        repository.put("/web-1.0.0.tgz.sig", Reply::File(read(&format!("{name}.sig"))));
        let public = String::from_utf8(read(&format!("{name}.pub"))).unwrap();
        let of = signed_by(spec(&[repository.url("/index.yaml")]), &[public]);
        assert_eq!(bundle(&world.sources().fetch(&key(), &of).await.unwrap()).name.as_str(), "web", "{name}");
    }
}
