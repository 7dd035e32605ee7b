//! What ten thousand objects cost the engine itself, whose controller has nothing to do: docs/performance.md has the numbers.
//!
//! `cargo test --release -p engine --test lifecycle figures -- --ignored --nocapture`

use std::time::Duration;

use serde_json::{Value, json};

use crate::build::files;
use crate::control_plane::ControlPlane;
use crate::controllers::site;

const OBJECTS: u32 = 10_000;

#[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
fn says_nothing(_: &Value) -> Result<Value, &'static str> {
    Ok(json!({}))
}

fn measured(objects: u32) -> Duration {
    const CONFIG: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site}]";
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", CONFIG), says_nothing);
    for number in 0..objects {
        site(&mut plane, &format!("s{number}"), json!({"text": "x".repeat(300)}));
    }
    plane.spent = Some(Duration::ZERO);
    let told = plane.run_for(3_600);
    assert_eq!(told.len(), usize::try_from(objects).unwrap());
    plane.spent.unwrap() / objects
}

#[test]
#[ignore = "measures time; docs/performance.md has the numbers"]
fn figures_of_objects_with_nothing_to_do() {
    for objects in [OBJECTS / 100, OBJECTS / 10, OBJECTS] {
        println!("{objects} objects: {:?} a key", measured(objects));
    }
}
