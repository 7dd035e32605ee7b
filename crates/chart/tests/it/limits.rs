//! Templates that ask for too much end in an error, never in a crash.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chart::environment::FixedEnvironment;
use chart::template::{ExecError, Limits, Renderer, TemplateSet, parse};
use chart::value::{Map, Value};
use golang::fmt::{PrintError, sprint};

use crate::in_memory::rendered;

/// A thread of a test has 2 MiB of stack, of which a render may use half.
const SMALL: Limits = Limits {
    steps: 100_000,
    depth: 20_000,
    bytes: 1 << 20,
    file: usize::MAX,
    text: usize::MAX,
    stack: 1 << 20,
};

fn render_within(text: &str, limits: Limits) -> Result<String, ExecError> {
    let mut set = TemplateSet::new();
    set.add(&parse("c/t.yaml", text.as_bytes()).unwrap());
    let mut environment = FixedEnvironment::default();
    let out = Renderer::new(&mut environment, set, limits)
        .render("c/t.yaml", &Value::map([("a", Value::Int(1))]))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn refused(text: &str) -> String {
    let error = render_within(text, SMALL).unwrap_err();
    assert!(error.is_limit(), "{error}");
    error.to_string()
}

#[test]
fn a_loop_without_end_is_stopped_by_its_steps() {
    assert_eq!(
        refused("{{ range 9223372036854775807 }}{{ end }}"),
        "rendering c/t.yaml: template: c/t.yaml:1:9: executing \"c/t.yaml\" at <9223372036854775807>: \
         the render takes more than 100000 steps"
    );
}

#[test]
fn what_takes_long_counts_as_many_steps() {
    // None of them is begun: a render may take a hundred thousand steps here.
    let costly = [
        "{{ htpasswd \"a\" \"b\" }}",
        "{{ bcrypt \"a\" }}",
        "{{ derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}",
        "{{ genPrivateKey \"rsa\" }}",
        "{{ genPrivateKey \"dsa\" }}",
        "{{ genPrivateKey \"ecdsa\" }}",
        "{{ genPrivateKey \"ed25519\" }}",
        "{{ genCA \"a\" 1 }}",
        "{{ genSelfSignedCert \"a\" nil nil 1 }}",
    ];
    for template in costly {
        let error = refused(template);
        assert!(error.ends_with("the render takes more than 100000 steps"), "{template}: {error}");
    }
    // What is no hash and no key costs nothing.
    assert_eq!(render_within("{{ htpasswd \"a:\" \"b\" }}", SMALL).unwrap(), "invalid username: a:");
    assert_eq!(render_within("{{ genPrivateKey \"x\" }}", SMALL).unwrap(), "Unknown type x");
}

#[test]
fn a_chart_that_makes_a_few_keys_renders_and_one_that_makes_hundreds_does_not() {
    let limits = Limits { stack: 1 << 20, ..Limits::default() };
    let several = "{{ $ca := genCA \"a\" 365 }}{{ range 12 }}{{ $c := genSignedCert \"b\" nil nil 365 $ca }}{{ end }}\
                   {{ $_ := genPrivateKey \"rsa\" }}{{ $_ := genPrivateKey \"rsa\" }}{{ $_ := htpasswd \"a\" \"b\" }}";
    render_within(several, limits).unwrap();
    for costly in ["genPrivateKey \"rsa\"", "genCA \"a\" 1", "genPrivateKey \"ecdsa\""] {
        let error =
            render_within(&format!("{{{{ range 500 }}}}{{{{ $_ := {costly} }}}}{{{{ end }}}}"), limits);
        assert!(error.unwrap_err().is_limit(), "{costly}");
    }
}

#[test]
fn a_file_and_a_chart_render_to_no_more_than_they_may() {
    let render = |limits: Limits| {
        let files = [
            ("Chart.yaml", "{apiVersion: v2, name: top, version: 0.1.0}"),
            ("templates/a.yaml", "# {{ repeat 600 \"x\" }}"),
            ("templates/b.yaml", "# {{ repeat 600 \"x\" }}"),
        ];
        rendered(&files, limits).map(|_| ()).map_err(|error| error.to_string())
    };
    let limits = Limits { stack: 1 << 20, file: 1_000, text: 2_000, ..Limits::default() };
    assert_eq!(render(limits), Ok(()));
    let file = "rendering top/templates/b.yaml: the file renders to more than 601 bytes";
    assert_eq!(render(Limits { file: 601, ..limits }), Err(file.to_owned()));
    let chart = "rendering top/templates/a.yaml: the chart renders to more than 1000 bytes";
    assert_eq!(render(Limits { text: 1_000, ..limits }), Err(chart.to_owned()));
}

#[test]
fn output_without_end_is_stopped_by_its_bytes() {
    let error = refused("{{ range 99999 }}0123456789012345678901234567890123456789{{ end }}");
    assert!(error.ends_with("the render makes more than 1048576 bytes"), "{error}");
    let error = refused("{{ range 99 }}{{ $x := printf \"%99999d\" 1 }}{{ end }}");
    assert!(error.contains("the render makes more than 1048576 bytes"), "{error}");
}

#[test]
fn templates_that_execute_themselves_are_stopped() {
    let by_template = refused("{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}");
    assert!(
        by_template.contains("executing \"a\" at <{{template \"a\" .}}>: templates are nested too deeply"),
        "{by_template}"
    );
    let by_tpl =
        "{{ define \"a\" }}{{ tpl \"{{ template \\\"a\\\" . }}\" . }}{{ end }}{{ template \"a\" . }}";
    assert!(refused(by_tpl).contains("templates are nested too deeply"));
}

#[test]
fn a_limit_of_depth_is_counted() {
    let limits = Limits { depth: 5, ..SMALL };
    let text = "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}";
    let error = render_within(text, limits).unwrap_err();
    assert!(error.to_string().ends_with("exceeded maximum template depth (5)"), "{error}");
}

#[test]
fn a_template_includes_itself_a_thousand_times_at_most() {
    let text = "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ include \"r\" . }}";
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let error = thread
        .spawn(move || render_within(text, Limits::default()).unwrap_err().to_string())
        .unwrap()
        .join()
        .unwrap();
    let end = "error calling include: rendering template has a nested reference name: r: unable to execute template";
    assert!(error.ends_with(end));
    assert_eq!(error.matches("executing \"r\"").count(), 1_001);
}

#[test]
fn sources_that_nest_too_deeply_are_refused() {
    for (open, close) in [
        ("(", ")"),
        ("{{ if 1 }}", "{{ end }}"),
        ("{{ if 1 }}{{ else if 2 }}", "{{ end }}"),
        ("{{ block \"b\" . }}", "{{ end }}"),
    ] {
        let (before, after) = if open == "(" { ("{{ ", " }}") } else { ("", "") };
        let text = format!("{before}{}1{}{after}", open.repeat(20_000), close.repeat(20_000));
        let error = parse("c/t.yaml", text.as_bytes()).unwrap_err();
        assert_eq!(error.message, "max expression depth exceeded", "{open}");
    }
    let chain = format!("{{{{ if 0 }}}}{}{{{{ end }}}}", "{{ else if 0 }}".repeat(200));
    assert_eq!(render_within(&chain, SMALL).unwrap(), "");
}

#[test]
fn deep_values_are_refused_and_dropped_without_recursion() {
    // Builds for tests need more stack for what is within the limit.
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    thread.spawn(refuse_deep_values).unwrap().join().unwrap();
}

fn refuse_deep_values() {
    let mut deep = Value::Nil;
    for level in 0..200_000 {
        deep = if level % 2 == 0 { Value::list(vec![deep]) } else { Value::map([("k", deep)]) };
    }
    assert_eq!(sprint(std::slice::from_ref(&deep)), Err(PrintError::Nesting));
    assert!(deep.to_json().is_err());
    assert!(deep.deep_equal(&deep.clone()));
    drop(deep);
}

#[test]
fn a_value_that_holds_itself_many_times_is_refused() {
    let mut wide = Value::text("x");
    for _ in 0..60 {
        wide = Value::list(vec![wide.clone(), wide]);
    }
    assert_eq!(sprint(std::slice::from_ref(&wide)), Err(PrintError::Size));
}

#[test]
fn a_map_that_holds_itself_is_refused_and_freed_with_its_render() {
    let mut environment = FixedEnvironment::default();
    let (before, map) = (Map::default(), Map::default());
    before.insert("kept", Value::list(vec![]));
    let context = Renderer::new(&mut environment, TemplateSet::new(), SMALL);
    map.insert("self", Value::Map(map.clone()));
    map.insert("text", Value::text("x"));
    assert_eq!(sprint(&[Value::Map(map.clone())]), Err(PrintError::Nesting));
    drop(context);
    assert!(map.is_empty());
    assert!(!before.is_empty());
}
