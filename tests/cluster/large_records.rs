//! Records of releases that fit no Secret, on a real API server, and what Helm makes of them.

use engine::{ReleaseAction, ReleaseName};
use serde_json::Value;

use crate::Cluster;

/// Returns letters that can't be packed well.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from((state >> 40) % 64).unwrap())
    };
    (0..length).map(letter).collect()
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn helm_lists_and_shows_a_release_whose_record_fits_no_secret_and_we_remove_it() {
    let cluster = Cluster::connect("large").await;
    std::fs::write(cluster.chart.path().join("noise.txt"), noise(1_500_000)).unwrap();
    let adapter = cluster.adapter();
    assert_eq!(cluster.upgrade(&adapter, "one").await, ReleaseAction::Installed);
    assert_eq!(cluster.upgrade(&adapter, "two").await, ReleaseAction::Upgraded);
    let parts = ["v1", "v1.part1", "v1.part2", "v2", "v2.part1", "v2.part2"];
    assert_eq!(cluster.secrets().await, parts.map(|part| format!("sh.helm.release.v1.web.{part}")));

    let list: Value = serde_json::from_str(&cluster.helm(&["list", "-o", "json"])).unwrap();
    let listed = |field: &str| list[0][field].as_str().unwrap().to_owned();
    assert_eq!(list.as_array().unwrap().len(), 1, "a continuation is no release: {list}");
    assert_eq!([listed("revision"), listed("status"), listed("chart")], ["2", "deployed", "web-1.0.0"]);
    let history: Value = serde_json::from_str(&cluster.helm(&["history", "web", "-o", "json"])).unwrap();
    let states: Vec<&str> =
        history.as_array().unwrap().iter().map(|revision| revision["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["superseded", "deployed"]);
    for (arguments, state) in
        [(vec!["status", "web"], "deployed"), (vec!["status", "web", "--revision", "1"], "superseded")]
    {
        let told = cluster.helm(&arguments);
        assert!(told.contains(&format!("STATUS: {state}")), "{told}");
    }

    // Another operator reads it whole: nothing to do is nothing done.
    assert_eq!(cluster.upgrade(&cluster.adapter(), "two").await, ReleaseAction::Unchanged);
    cluster.adapter().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert_eq!(cluster.secrets().await, Vec::<String>::new());
    assert!(cluster.object("api/v1/configmaps", "web-map").await.is_none());
    cluster.forget().await;
}
