//! The functions of templates, answered by the real Helm.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use chart::environment::FixedEnvironment;
use chart::template::{Limits, Renderer, TemplateSet, parse};
use chart::value::{Map, MapType, Value};

/// Templates, one by one, with their output or their error.
const CASES: &str = include_str!("../golden/functions/cases.json");
const VALUES: &str = include_str!("../golden/functions/values.yaml");
static VALUES_CLASS: MapType =
    MapType { name: "chartutil.Values", element: chart::value::Type::Any, named: true, methods: &[] };

fn data() -> Value {
    let values = values::yaml::parse(VALUES).unwrap();
    let values = Value::from_json(&values).as_map().unwrap().clone();
    let entries = [("Values".into(), Value::Map(values.as_class(&VALUES_CLASS)))];
    Value::Map(Map::of(&VALUES_CLASS, entries.into_iter().collect()))
}

fn render_with(environment: &mut FixedEnvironment, limits: Limits, template: &str) -> Result<String, String> {
    let name = "c/templates/t";
    let mut set = TemplateSet::new();
    set.add(&parse(name, template.as_bytes()).map_err(|error| error.for_people())?);
    let out =
        Renderer::new(environment, set, limits).render(name, &data()).map_err(|error| error.for_people())?;
    Ok(String::from_utf8_lossy(&out).replace("<no value>", ""))
}

fn render(template: &str) -> Result<String, String> {
    render_with(&mut FixedEnvironment::default(), Limits::default(), template)
}

/// Runs `test` with as much stack as a render has.
fn with_stack<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn_scoped(scope, test).unwrap().join().unwrap()
    })
}

#[test]
fn functions_answer_what_helm_answers() {
    let failures = with_stack(|| {
        let cases: Vec<serde_json::Value> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 2_000);
        let mut failures = String::new();
        for case in cases {
            let text = |key: &str| case.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
            let template = text("tpl").unwrap();
            let expected = text("out").ok_or_else(|| text("err").unwrap());
            let got = render(&template);
            if got != expected {
                writeln!(failures, "{template}\n  expected {expected:?}\n  got      {got:?}").unwrap();
            }
        }
        failures
    });
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn what_grows_without_end_is_an_error() {
    for template in [
        "{{ repeat 1000000000000 \"a\" }}",
        "{{ indent 1000000000000 \"a\" }}",
        "{{ until 1000000000000 }}",
        "{{ seq 1 1000000000000 }}",
        "{{ randAlpha 1000000000000 }}",
        "{{ $l := list 1 }}{{ range until 64 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}",
        "{{ $l := list 1 }}{{ range until 64 }}{{ $l = list $l $l }}{{ end }}{{ toYaml $l }}",
        "{{ $l := list 1 }}{{ range until 64 }}{{ $l = list $l $l }}{{ end }}{{ toString $l }}",
        "{{ $l := list 1 }}{{ range until 64 }}{{ $l = list $l $l }}{{ end }}{{ deepCopy $l }}",
        "{{ $s := \"aaaaaaaa\" }}{{ range until 64 }}{{ $s = replace \"a\" \"aa\" $s }}{{ end }}",
        "{{ $s := \"aaaaaaaa\" }}{{ range until 64 }}{{ $s = regexReplaceAll \"a\" $s \"aa\" }}{{ end }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toJson $d | len }}{{ mustToJson $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepCopy $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $e := dict }}{{ $_ := set $e \"d\" $e }}{{ merge $d $e }}",
        "{{ until 30000 | uniq }}",
        "{{ $l := list 1 }}{{ $m := list 1 }}{{ range until 64 }}{{ $l = list $l $l }}{{ $m = list $m $m }}{{ end }}\
         {{ deepEqual $l $m }}",
        "{{ $s := \"[\" }}{{ mustFromJson (repeat 1000000 $s) }}",
        "{{ mustRegexMatch (repeat 100000 \"(\") \"\" }}",
        "{{ mustRegexMatch (printf \"%s%s\" (repeat 5000 \"(\") (repeat 5000 \")\")) \"\" }}",
    ] {
        let limits = Limits { bytes: 1 << 20, ..Limits::default() };
        let rendered = with_stack(|| render_with(&mut FixedEnvironment::default(), limits, template));
        assert!(rendered.is_err(), "{template}");
    }
}

#[test]
fn randomness_and_time_come_from_the_environment() {
    let template = "{{ randAlphaNum 12 }} {{ uuidv4 }} {{ shuffle \"abcdefgh\" }} {{ randInt 1 1000000 }} \
                    {{ randBytes 6 }} {{ htpasswd \"u\" \"p\" }} {{ now | date \"2006-01-02 15:04\" }}";
    let with_seed = |seed| {
        let mut environment = FixedEnvironment { seed, ..FixedEnvironment::default() };
        render_with(&mut environment, Limits::default(), template).unwrap()
    };
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
    assert!(with_seed(3).ends_with("1970-01-01 00:00"));
}

#[test]
fn certificates_are_made_by_the_environment() {
    let shape = "{{ $ca := genCA \"ca\" 365 }}{{ $c := genSignedCert \"a\" (list \"10.0.0.1\") (list \"a.b\") 1 $ca }}\
                 {{ $s := genSelfSignedCert \"a\" nil nil 1 }}{{ $k := genSelfSignedCertWithKey \"a\" nil nil 1 $s.Key }}\
                 {{ $d := buildCustomCert (b64enc $c.Cert) (b64enc $c.Key) }}\
                 {{ eq $s.Key $k.Key }} {{ eq $c.Cert $d.Cert }} {{ kindOf $c }} {{ $ca.Cert | trunc 27 }}";
    assert_eq!(render(shape).unwrap(), "true true struct -----BEGIN CERTIFICATE-----");
}
