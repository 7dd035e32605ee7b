//! Tests of release records.

use serde_json::json;

use super::*;

fn record() -> Record {
    let mut chart = Chart::default();
    "demo".clone_into(&mut chart.metadata.name);
    "1.0.0".clone_into(&mut chart.metadata.version);
    "v2".clone_into(&mut chart.metadata.api_version);
    chart.templates.push(File { name: "templates/a".into(), data: b"x".as_slice().into() });
    chart.values = Some(std::sync::Arc::new(json!({"n": 80.0}).as_object().unwrap().clone()));
    let time = Time(Some("2026-01-02T03:04:05.6Z".parse().unwrap()));
    Record {
        name: "rel".to_owned(),
        info: Info {
            first_deployed: time,
            last_deployed: time,
            description: "Install complete".to_owned(),
            status: Status::Deployed,
            ..Info::default()
        },
        chart: Some(stored_chart(&chart).unwrap()),
        config: stored_config(json!({"port": 81}).as_object().unwrap()).unwrap(),
        manifest: "---\n# Source: <x>\n".to_owned(),
        hooks: Vec::new(),
        version: 1,
        namespace: "ns".to_owned(),
        apply_method: String::new(),
        parts: None,
    }
}

#[test]
fn how_objects_were_written_is_the_last_field_and_only_there_if_it_says_something() {
    let text = |record: &Record| String::from_utf8(golang::json::to_vec(record).unwrap()).unwrap();
    assert!(!text(&record()).contains("apply_method"));
    let applied = Record { apply_method: SERVER_SIDE.to_owned(), ..record() };
    assert!(text(&applied).ends_with(r#""namespace":"ns","apply_method":"ssa"}"#));
    assert_eq!(decode(encode(&applied).unwrap().as_bytes()).unwrap().apply_method, SERVER_SIDE);
}

#[test]
fn a_record_has_the_form_that_helm_writes() {
    let text = String::from_utf8(golang::json::to_vec(&record()).unwrap()).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"name":"rel","info":{"first_deployed":"2026-01-02T03:04:05.6Z","last_deployed":"2026-01-02T03:04:05.6Z","#,
            r#""deleted":"","description":"Install complete","status":"deployed"},"#,
            r#""chart":{"metadata":{"name":"demo","version":"1.0.0","apiVersion":"v2"},"lock":null,"#,
            r#""templates":[{"name":"templates/a","data":"eA=="}],"values":{"n":80},"schema":null,"files":null},"#,
            r#""config":{"port":81},"manifest":"---\n# Source: \u003cx\u003e\n","version":1,"namespace":"ns"}"#
        )
    );
}

#[test]
fn what_was_written_is_read_back() {
    let data = encode(&record()).unwrap();
    let read = decode(data.as_bytes()).unwrap();
    assert_eq!(golang::json::to_vec(&read).unwrap(), golang::json::to_vec(&record()).unwrap());
}

#[test]
fn an_encoder_packs_one_record_like_the_other_and_any_gzip_unpacks_it() {
    use std::io::Read as _;

    use base64::Engine as _;
    let mut encoder = Encoder::default();
    let mut record = record();
    let mut state = 1_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 40) % 90).unwrap())
    };
    for length in [0, 1, 100_000, 10, 700_000] {
        record.manifest = (0..length).map(|_| noise()).collect();
        let data = encoder.encode(&record).unwrap();
        assert_eq!(data, encode(&record).unwrap(), "nothing is left of the record before");
        let packed = base64::engine::general_purpose::STANDARD.decode(&data).unwrap();
        let mut json = Vec::new();
        let mut unpacked = flate2::read::MultiGzDecoder::new(packed.as_slice());
        unpacked.read_to_end(&mut json).unwrap();
        assert_eq!(json, golang::json::to_vec(&record).unwrap());
        assert_eq!(decode(data.as_bytes()).unwrap().manifest, record.manifest);
    }
}

#[test]
fn damaged_records_are_errors() {
    let data = encode(&record()).unwrap();
    for cut in 0..data.len() {
        assert!(decode(&data.as_bytes()[..cut]).is_err(), "{cut}");
    }
    for (data, expected) in [("!", "release record is not base64"), ("e30", "release record is not base64")] {
        assert!(decode(data.as_bytes()).unwrap_err().to_string().starts_with(expected));
    }
    assert!(decode(b"MQ==").unwrap_err().to_string().starts_with("release record is not a Helm release"));
    assert_eq!(decode(b"e30=").unwrap().info.status, Status::Unknown);
}

#[test]
fn a_record_that_fits_no_secret_is_refused() {
    let mut record = record();
    let mut state = 1_u64;
    record.manifest = (0..1_500_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 40) % 26).unwrap())
        })
        .collect();
    let error = encode(&record).unwrap_err().to_string();
    assert!(error.contains("a Secret holds 1048576"), "{error}");
}

#[test]
fn labels_and_names_are_helms() {
    let extra = [("owner".to_owned(), "me".to_owned()), ("team".to_owned(), "a".to_owned())].into();
    let labels = labels(&record(), &extra);
    let shown: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(shown, ["name=rel", "owner=helm", "status=deployed", "team=a", "version=1"]);
    assert_eq!(secret_name("rel.x", 12), "sh.helm.release.v1.rel.x.v12");
    assert_eq!(parse_secret_name("sh.helm.release.v1.rel.v2.v12"), Some(("rel.v2", 12)));
    assert_eq!(parse_secret_name("sh.helm.release.v1.rel.vx"), None);
}

/// Returns letters that can't be packed well.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from((state >> 40) % 64).unwrap())
    };
    (0..length).map(letter).collect()
}

/// Returns a record whose chart, manifest and hook have so many letters.
fn large(chart: usize, manifest: usize, hook: usize) -> Record {
    let mut record = record();
    let file = json!({"metadata": {"name": "demo"}, "values": {"n": 80}, "files": [{"name": "a", "data": noise(chart)}]});
    record.chart = Some(serde_json::value::to_raw_value(&file).unwrap());
    record.manifest = noise(manifest);
    let hook = json!({"name": "h", "manifest": noise(hook), "last_run": {"phase": "Succeeded"}});
    record.hooks = vec![serde_json::from_value(hook).unwrap()];
    record
}

#[test]
fn a_large_record_is_a_head_that_helm_reads_and_parts_that_restore_it() {
    for (record, is_manifest_shown, count) in [
        (large(3_000_000, 10, 10), true, 3),
        (large(10, 1_500_000, 10), false, 2),
        (large(10, 10, 1_500_000), false, 2),
        (large(10, 10, 10), true, 1),
    ] {
        let mut encoder = Encoder::default();
        let split = encoder.split(&record, "stubs").unwrap();
        assert!(split.head.len() <= MAX_RECORD_BYTES);
        assert!(split.parts.iter().all(|part| part.len() <= MAX_PART_BYTES));
        assert_eq!(split.reference().count, count);
        let head = decode(split.head.as_bytes()).unwrap();
        assert_eq!((&head.name, &head.info, head.version), (&record.name, &record.info, record.version));
        let chart: serde_json::Value = serde_json::from_str(head.chart.as_ref().unwrap().get()).unwrap();
        assert_eq!((&chart["metadata"]["name"], chart.get("files")), (&json!("demo"), None));
        assert_eq!(head.manifest == record.manifest, is_manifest_shown);
        assert_eq!(head.manifest == "stubs", !is_manifest_shown);
        assert_eq!(head.hooks[0].last_run, record.hooks[0].last_run);
        let restored = restore(head, &split.parts.concat()).unwrap();
        assert_eq!(golang::json::to_vec(&restored).unwrap(), golang::json::to_vec(&record).unwrap());
    }
}

#[test]
fn the_state_of_a_large_record_changes_in_its_head_alone() {
    let mut record = large(10, 1_500_000, 10);
    let mut encoder = Encoder::default();
    let split = encoder.split(&record, "").unwrap();
    record.info.status = Status::Superseded;
    record.hooks[0].last_run.phase = "Failed".to_owned();
    let again = encoder.split(&record, "").unwrap();
    assert_eq!(split.reference(), again.reference());
    let head = decode(encoder.head(&record, "").unwrap().as_bytes()).unwrap();
    let restored = restore(head, &split.parts.concat()).unwrap();
    assert_eq!(
        (restored.info.status, restored.hooks[0].last_run.phase.as_str()),
        (Status::Superseded, "Failed")
    );
}

#[test]
fn parts_that_are_not_those_of_the_record_are_errors() {
    let record = large(10, 1_500_000, 10);
    let split = Encoder::default().split(&record, "").unwrap();
    let head = || decode(split.head.as_bytes()).unwrap();
    let whole = split.parts.concat();
    for packed in [&whole[..whole.len() - 1], &whole[1..], &[], b"x"] {
        assert!(restore(head(), packed).is_err());
    }
    let error = restore(Record { hooks: Vec::new(), ..head() }, &whole).unwrap_err();
    assert!(error.to_string().contains("of another revision"), "{error}");
    let mut other = whole.clone();
    other[1_000] ^= 1;
    assert_ne!(digest(&other), digest(&whole));
    assert_eq!(
        (digest(b"abc").len(), digest(b"abc").as_str()),
        (40, "ba7816bf8f01cfea414140de5dae2223b00361a3")
    );
}

#[test]
fn a_record_that_needs_too_many_parts_is_refused() {
    let record = large(3_000_000, 10, 10);
    assert!(Encoder::default().split_within(&record, "", 3).is_ok());
    let error = Encoder::default().split_within(&record, "", 2).unwrap_err().to_string();
    assert!(error.contains("at most 2000000 are kept") && error.contains(".helmignore"), "{error}");
}
