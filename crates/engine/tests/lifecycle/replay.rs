//! Replays the corpora of the fuzz targets, and feeds the targets random texts.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files")]

#[path = "../fuzz/config.rs"]
mod config;
#[path = "../../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/cron.rs"]
mod cron;
#[path = "../fuzz/log.rs"]
mod log;
#[path = "../fuzz/metric.rs"]
mod metric;
#[path = "../fuzz/object_patch.rs"]
mod object_patch;
#[path = "../../../values/tests/fuzz/shuffle.rs"]
mod shuffle;

use corpus::replay;
use shuffle::shuffle;

#[test]
fn every_input_of_the_corpora_is_survived() {
    assert!(replay("config", config::run) >= 20);
    assert!(replay("cron", cron::run) >= 10);
    assert!(replay("log", log::run) >= 10);
    assert!(replay("metric", metric::run) >= 10);
    assert!(replay("object_patch", object_patch::run) >= 15);
}

#[test]
fn random_crontab_lines_are_survived() {
    let words = "abcd * ? / - , _ _ 0 1 5 12 15 31 59 60 7 jan Sun mon */2 1-5 @daily @every_ 5m 1h @ TZ=Asia/Tokyo_ TZ= _*_*_*_*";
    shuffle(words, 20_000, cron::run);
}

#[test]
fn random_output_is_survived() {
    let words = "{ } [ ] \" \"a\":1 , ~ ~ text \\ _ {\"msg\":\"x\"} {\"level\":\"debug\"} \r \u{e9}";
    shuffle(words, 20_000, log::run);
}

#[test]
fn random_metrics_are_survived() {
    let words = "{\"name\":\"a\" ,\"set\":1 ,\"add\":-1 ,\"add\":2 } } } ~ ,\"labels\":{\"a\":\"b\"} ,\"buckets\":[1,2] ,\"action\":\"observe\" ,\"value\":1 {} [ ] 1e999";
    shuffle(words, 20_000, metric::run);
}

#[test]
fn random_object_patches_are_survived() {
    let words = "operation:_Create~ operation:_Delete~ operation:_JSONPatch~ kind:_A~ name:_a~ object:_{kind:_A,_metadata:_{name:_a}}~ jsonPatch:_[{op:_remove,_path:_/a}]~ ---~ jqFilter:_.~ mergePatch:_'a:_1'~ { } \" {\"operation\":\"Delete\",\"kind\":\"A\",\"name\":\"a\"} subresource:_/status~";
    shuffle(words, 20_000, object_patch::run);
}
