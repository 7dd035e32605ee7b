//! The broker as a client sees it that we did not write: that of Service Catalog, a module of Go.
//!
//! It is asked for: `.ci/run` does, or `cargo test --test it broker_peers -- --ignored`. `BROKER_CLIENT` names the program, which
//! `go build` makes in `tests/peers/broker-client`.

use std::process::{Command, Stdio};

use crate::broker::{start, world};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a program that is built with Go"]
async fn a_client_that_we_did_not_write_leads_an_instance_through_its_life() {
    #[expect(clippy::disallowed_methods, reason = "where the other client is, is said from outside")]
    let client = std::env::var_os("BROKER_CLIENT");
    let Some(client) = client else {
        eprintln!("skipped: BROKER_CLIENT names no program");
        return;
    };
    let world = world().await;
    let (operator, platform) = start(&world).await;
    let url = format!("http://127.0.0.1:{}/cluster", platform.port);
    let mut command = Command::new(client);
    command
        .args([&url, "platform", "a long password", "cache", "big", r#"{"size": 12}"#])
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}");
    for line in [
        "catalog: cache with plan big",
        "provisioned",
        "shown",
        r#""URI":"cache://cache-redis.ops/12""#,
        "unbound",
        "deprovisioned",
    ] {
        assert!(said.contains(line), "{line} is not in {said}");
    }
    // Which optional parts are not there is what docs/sources.md says.
    let absent: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("not there: ")).collect();
    let expected = [
        "a dashboard",
        "maintenance_info",
        "another plan of an instance",
        "parameters of what is shown",
        "updates of instances: an instance is not changed: remove it and make another one",
        "bindings that take time",
    ];
    assert_eq!(absent.len(), expected.len(), "{absent:?}");
    for (absent, expected) in absent.iter().zip(expected) {
        assert!(absent.starts_with(expected), "{absent}");
    }
    operator.stop().await;
}
