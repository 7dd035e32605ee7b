//! What filters give, compared with the answers of the reference's jq.

use serde_json::{Value, json};

use super::*;

/// Other tests let the memory of this process grow.
fn unlimited(filter: &Filter, input: &Value) -> Result<Vec<Value>, JqError> {
    filter.run_within(&Val::from(input), Limits::NONE)
}

fn check(filter: &str, input: &Value, expected: &str) {
    let compiled = Filter::compile(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let results = unlimited(&compiled, input).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let seen: Vec<String> = results.iter().map(ToString::to_string).collect();
    assert_eq!(seen.join(" "), expected, "{filter} on {input}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn filters_give_what_jq_gives() {
    let cases: &[(&str, Value, &str)] = &[
        (".", json!({"b": 1, "a": 2}), r#"{"a":2,"b":1}"#),
        (".a.b.c", json!({}), "null"),
        (".a[1:3]", json!({"a": [1, 2, 3, 4]}), "[2,3]"),
        (".[-1]", json!([1, 2]), "2"),
        (".a.b = 1", json!({}), r#"{"a":{"b":1}}"#),
        (".a[2] = 1", json!({}), r#"{"a":[null,null,1]}"#),
        (
            r#".metadata.annotations["x"] = "y""#,
            json!({"metadata": {}}),
            r#"{"metadata":{"annotations":{"x":"y"}}}"#,
        ),
        ("del(.metadata.annotations.x)", json!({"metadata": {}}), r#"{"metadata":{}}"#),
        ("del(.a[0, 2])", json!({"a": [1, 2, 3]}), r#"{"a":[2]}"#),
        ("del(.[] | select(. > 1))", json!([1, 2, 3]), "[1]"),
        ("setpath([\"a\", 0, \"b\"]; 1)", json!(null), r#"{"a":[{"b":1}]}"#),
        ("to_entries", json!({"b": 1, "a": null}), r#"[{"key":"a","value":null},{"key":"b","value":1}]"#),
        ("with_entries(.value += 1)", json!({"a": 1}), r#"{"a":2}"#),
        ("from_entries", json!([{"name": "a", "value": 1}, {"k": "b", "v": false}]), r#"{"a":1,"b":false}"#),
        ("join(\",\")", json!(["a", null, 1]), r#""a,,1""#),
        ("map(.a) | add", json!([{"a": 1}, {"a": 2}]), "3"),
        ("9007199254740993 + 0", json!(null), "9007199254740993"),
        (".n", json!({"n": 18_446_744_073_709_551_615_u64}), "18446744073709551615"),
        ("1.0 | tostring", json!(null), r#""1""#),
        ("10 / 4, 10 / 5, 7 % 3, -7 % 3", json!(null), "2.5 2 1 -1"),
        ("length", json!("äö"), "2"),
        ("[.[] | tojson]", json!([1, "a", null, 1.5]), r#"["1","\"a\"","null","1.5"]"#),
        ("fromjson", json!("{\"a\":[1]}"), r#"{"a":[1]}"#),
        ("tonumber", json!("12.5"), "12.5"),
        ("contains({a: [\"b\"]})", json!({"a": ["abc"], "c": 1}), "true"),
        ("inside([1, 2])", json!([1]), "true"),
        ("index(\"b\"), indices(\"b\")", json!("abcb"), "1 [1,3]"),
        ("any(. > 2), all(. > 0)", json!([1, 3]), "true true"),
        ("[paths]", json!({"a": [1]}), r#"[["a"],["a",0]]"#),
        ("[leaf_paths]", json!({"a": [1]}), r#"[["a",0]]"#),
        ("[tostream]", json!({"a": [1]}), r#"[[["a",0],1],[["a",0]],[["a"]]]"#),
        ("fromstream(tostream)", json!({"a": [1, {"b": 2}]}), r#"{"a":[1,{"b":2}]}"#),
        ("group_by(.a) | map(length)", json!([{"a": 1}, {"a": 2}, {"a": 1}]), "[2,1]"),
        ("unique, (map(-.) | sort)", json!([3, 1, 3]), "[1,3] [-3,-3,-1]"),
        ("flatten", json!([1, [2, [3]]]), "[1,2,3]"),
        ("walk(if type == \"number\" then . + 1 else . end)", json!([1, {"a": 2}]), r#"[2,{"a":3}]"#),
        (
            "test(\"^a.c$\"), sub(\"b\"; \"x\"), [scan(\"[a-c]\")]",
            json!("abc"),
            r#"true "axc" ["a","b","c"]"#,
        ),
        ("split(\",\")", json!("a,b"), r#"["a","b"]"#),
        ("@base64, (@base64 | @base64d)", json!("hi"), r#""aGk=" "hi""#),
        ("@csv, @tsv", json!([1, "a\"b", null]), r#""1,\"a\"\"b\"," "1\ta\"b\t""#),
        ("@html", json!("<&>"), r#""&lt;&amp;&gt;""#),
        ("\"x\\(.a)y\"", json!({"a": {"b": 1}}), r#""x{\"b\":1}y""#),
        ("IN(1, 2), (INDEX([{id: 1}][]; .id))", json!(1), r#"true {"1":{"id":1}}"#),
        ("limit(2; .[])", json!([1, 2, 3]), "1 2"),
        ("first(.[]), last(.[])", json!([1, 2, 3]), "1 3"),
        ("[range(3)], [range(0; 10; 4)]", json!(null), "[0,1,2] [0,4,8]"),
        ("reduce .[] as $x (0; . + $x)", json!([1, 2]), "3"),
        ("[foreach .[] as $x (0; . + $x)]", json!([1, 2]), "[1,3]"),
        ("try error(\"x\") catch .", json!(null), r#""x""#),
        (".a?", json!([1]), ""),
        ("env, $ENV", json!(null), "{} {}"),
        ("now | type", json!(null), r#""number""#),
        ("todate", json!(0), r#""1970-01-01T00:00:00Z""#),
        ("\"a\" * 3, {a: {b: 1}} * {a: {c: 2}}", json!(null), r#""aaa" {"a":{"b":1,"c":2}}"#),
        ("{a: 1} + {b: 2}, [1, 2] - [1], null + 1", json!(null), r#"{"a":1,"b":2} [2] 1"#),
        ("input_line_number", json!(null), "0"),
        ("halt", json!(1), ""),
        ("transpose", json!([[1, 2], [3]]), "[[1,3],[2,null]]"),
        ("ltrimstr(\"a\"), rtrimstr(\"c\"), startswith(\"a\")", json!("abc"), r#""bc" "ab" true"#),
        ("ascii_upcase, explode", json!("ab"), r#""AB" [97,98]"#),
        ("min_by(.a), max_by(.a)", json!([{"a": 2}, {"a": 1}]), r#"{"a":1} {"a":2}"#),
        ("keys, has(\"a\")", json!({"b": 1, "a": 2}), r#"["a","b"] true"#),
        ("splits(\", *\")", json!("a, b"), r#""a" "b""#),
        ("capture(\"(?<x>a)\")", json!("a"), r#"{"x":"a"}"#),
        (
            "[.[] | type]",
            json!([null, true, 1, "", [], {}]),
            r#"["null","boolean","number","string","array","object"]"#,
        ),
        ("path(.a[0].b)", json!(null), r#"["a",0,"b"]"#),
        ("getpath([\"a\", \"b\"])", json!(null), "null"),
        (".[2:4] = [\"x\"]", json!([1, 2, 3, 4, 5]), r#"[1,2,"x",5]"#),
        ("map_values(empty)", json!({"a": 1}), "{}"),
        (".a |= empty", json!({"a": 1, "b": 2}), r#"{"b":2}"#),
        ("1e1000 | isinfinite", json!(null), "true"),
        ("[limit(3; repeat(1))]", json!(null), "[1,1,1]"),
        ("bsearch(2), bsearch(5)", json!([1, 2, 3]), "1 -4"),
    ];
    for (filter, input, expected) in cases {
        check(filter, input, expected);
    }
}

#[test]
fn filters_give_what_the_reference_gives() {
    let pod: Value = serde_json::from_str(include_str!("truth/pod.json")).unwrap();
    let secret: Value = serde_json::from_str(include_str!("truth/secret.json")).unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in include_str!("truth/filters.jsonl").lines().filter(|line| !line.starts_with("//")) {
        let case: Vec<Value> = serde_json::from_str(line).unwrap();
        let input = match case[0].as_str() {
            Some("pod") => &pod,
            Some("secret") => &secret,
            _ => &Value::Null,
        };
        let text = case[1].as_str().unwrap();
        let expected: Option<Vec<Value>> = case.get(2).map(|results| {
            results
                .as_array()
                .unwrap()
                .iter()
                .map(|result| serde_json::from_str(result.as_str().unwrap()).unwrap())
                .collect()
        });
        let seen = Filter::compile(text).and_then(|filter| unlimited(&filter, input));
        compared += 1;
        match (seen, expected) {
            (Ok(seen), Some(expected)) if seen == expected => {}
            (Err(_), None) => {}
            (seen, expected) => wrong.push(format!("{text}\n  seen:     {seen:?}\n  expected: {expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 500, "{compared}");
}

#[test]
fn one_result_is_kept_for_a_binding() {
    let result = |filter: &str| {
        Filter::compile(filter).unwrap().result(&Input::parse(b"{\"a\": 1}").unwrap()).unwrap()
    };
    assert_eq!(result("empty"), b"null");
    assert_eq!(result(".a"), b"1");
    assert_eq!(result(".a, .b"), b"[1,null]");
    assert_eq!(
        result("{a: \"<é>\", b: [1.5, 1e21, true, {}, []]}"),
        "{\"a\":\"\\u003cé\\u003e\",\"b\":[1.5,1e+21,true,{},[]]}".as_bytes()
    );
}

#[test]
fn whole_numbers_of_128_bits_stay_exact() {
    let result = |filter: &str, text: &str| {
        let result = Filter::compile(filter).unwrap().result(&Input::parse(text.as_bytes()).unwrap());
        String::from_utf8(result.unwrap()).unwrap()
    };
    assert_eq!(result("[100000000000000000001]", "null"), "[100000000000000000001]");
    let text = "{\"a\":[12345678901234567890123,-12345678901234567890123,1.5,\"1234567890123456789012\"],\"é\\n\":{\"b\":1e+30}}";
    assert_eq!(result(".", text), text);
    assert_eq!(result(".a[0] + 1", text), "12345678901234567890124");
    assert_eq!(result("fromjson", "\"[12345678901234567890123]\""), "[12345678901234567890123]");
    assert!(Filter::compile("nan").unwrap().result(&Input::parse(b"1").unwrap()).is_err());
    apart(|_| {
        let deep = Filter::compile("reduce range(2000) as $i (0; [.])").unwrap();
        let error = deep.result(&Input::parse(b"1").unwrap()).unwrap_err().to_string();
        assert_eq!(error, "the result nests deeper than 1000");
    });
}

#[test]
fn a_halt_with_null_is_no_error() {
    check("1, (null | halt_error), 2", &json!(null), "1");
    check("1, (null | halt_error(3)), 2", &json!(null), "1");
    let error = unlimited(&Filter::compile("\"x\" | halt_error").unwrap(), &json!(null)).unwrap_err();
    assert_eq!(error.to_string(), "x");
}

#[test]
fn range_takes_numbers() {
    for text in ["range(.)", "range([])", "range(0; {})", "range(\"\"; 1)", "range(0; 1; null)"] {
        assert!(unlimited(&Filter::compile(text).unwrap(), &json!(null)).is_err(), "{text}");
        check(&format!("try {text} catch 1"), &json!(null), "1");
    }
}

#[test]
fn functions_of_gojq_that_the_library_has_not() {
    check(
        "[1, \"<\"] | format(\"text\"), format(\"csv\")",
        &json!(null),
        "\"[1,\\\"<\\\"]\" \"1,\\\"<\\\"\"",
    );
    check("[JOIN({\"1\": 2}; .[]; tostring)]", &json!([1, 3]), "[[1,2],[3,null]]");
    check("JOIN({\"1\": 2}; tostring)", &json!([1]), "[[1,2]]");
}

#[test]
fn slip_25_regular_expressions_of_filters_are_those_of_re2() {
    for (filter, input, expected) in [
        (r#"test("^\\d$")"#, json!("١"), "false"),
        (r#"test("^[\\w]$")"#, json!("é"), "false"),
        (r#"test("^[a&&b]+$")"#, json!("a&b"), "true"),
        (r#"test("^[a~~b]$")"#, json!("~"), "true"),
        (r#"test("\\<b\\>")"#, json!("a b"), "false"),
        (r#"test("a.b"; "x"), test("A.b"; "ix"), test("a.b")"#, json!("a\nb"), "true true false"),
        (r#"capture("(?<a>x)|(?P<b>y)")"#, json!("y"), r#"{"a":null,"b":"y"}"#),
        (r#"[match("a*"; "g") | .offset]"#, json!("baac"), "[0,1,4]"),
        (r#"gsub("(?<x>[a-z])"; .x + "-")"#, json!("abé"), r#""a-b-é""#),
        (r#"try test("(?=a)") catch "refused""#, json!("a"), r#""refused""#),
        (r#"try test("[[a]") catch "refused""#, json!("["), "true"),
    ] {
        check(filter, &input, expected);
    }
}

#[test]
fn mistakes_say_where_they_are() {
    let error = |filter: &str| Filter::compile(filter).unwrap_err().to_string();
    assert!(error(".a | nosuch").contains("nosuch"), "{}", error(".a | nosuch"));
    assert!(error(".a |").starts_with("the jq filter is not understood: "), "{}", error(".a |"));
    assert!(error(".a\n | nosuch(1)").contains("line 2"), "{}", error(".a\n | nosuch(1)"));
    assert!(Filter::compile("input").is_err());
}

#[test]
fn errors_of_a_run_are_errors() {
    let error =
        |filter: &str| Filter::compile(filter).unwrap().run(&json!({"a": 1})).unwrap_err().to_string();
    assert_eq!(error("error(\"no\")"), "no");
    assert!(error("1 / 0").contains("divide by zero"), "{}", error("1 / 0"));
    assert!(error(".[0]").contains("expected an array but got: object"), "{}", error(".[0]"));
    assert!(error("nan").contains("JSON does not have"), "{}", error("nan"));
    assert!(error("infinite").contains("JSON does not have"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn slip_03_an_error_names_types_and_paths_and_no_data() {
    let object = json!({
        "metadata": {"name": "s"},
        "data": {"pass-word": "aHVudGVyMjI=", "n": 7_135_246, "list": [["aHVudGVyMjI="]], "o": {"k": "aHVudGVyMjI="}},
    });
    let reported =
        |filter: &str| unlimited(&Filter::compile(filter).unwrap(), &object).unwrap_err().to_string();
    for (filter, error) in [
        (".data[\"pass-word\"].x", "expected an object but got: string at .data[\"pass-word\"]"),
        (".data.list[0][0] | keys", "cannot iterate over: string at .data.list[0][0]"),
        (".data.list[0][0][]", "cannot iterate over: string at .data.list[0][0]"),
        (".data.o + 1", "cannot add: object at .data.o and number"),
        (".data.n + .data.o.k", "cannot add: number and string at .data.o.k"),
        (".data.o.k | tonumber", "tonumber cannot be applied to: string at .data.o.k"),
        (".data.o.k | ltrimstr(\"a\") | tonumber", "tonumber cannot be applied to: string"),
        (
            ".data.o.k | fromjson",
            "fromjson cannot be applied to: string at .data.o.k: expected value at line 1 column 1",
        ),
        (".data.o.k + \"!\" | @base64d", "@base64d cannot be applied to string: …"),
        (".data.o.k | test(7)", "match(number; …) cannot be applied to: string at .data.o.k"),
        ("\"(\" + .data.o.k | . as $re | \"x\" | test($re)", "invalid regular expression …: …"),
        ("try .data.o.k.x catch error(\"not so\")", "not so"),
        ("try .data.o.k.x catch error", "expected an object but got: string at .data.o.k"),
    ] {
        assert_eq!(reported(filter), error, "{filter}");
    }
    let hidden =
        "it ended with an error of type string that can quote the object (`addon-operator hook jq` shows it)";
    for filter in [
        "error(.data.o.k)",
        "error(\"bad \\(.data.o.k)\")",
        "try error(.data.o.k) catch error",
        ".data.o.k | strptime(\"%Y\")",
    ] {
        assert_eq!(reported(filter), hidden, "{filter}");
    }
    assert!(reported("error(.data.o)").contains("of type object"));
    // Within a filter the text is that of jq.
    check("try .data.o.k.x catch .", &object, r#""expected an object but got: string (\"aHVudGVyMjI=\")""#);
    // No way to fail tells of what is in the object.
    for filter in [
        "keys",
        ".[0]",
        "tojson | .[0].x",
        "implode",
        "@csv",
        "@sh",
        "has(0)",
        "contains(1)",
        "splits(1)",
        "ascii_downcase",
        "ltrimstr(1) | -.",
        "todate",
        "mktime",
        "test(.)",
        "sub(.; .)",
        "error",
        ". * {}",
        ". / 1",
        ".[.]",
        "setpath([.]; 1)",
        "delpaths(.)",
        "range(.)",
        "limit(.; 1)",
        "strftime(\"%Y\")",
        "@base64d",
        "explode",
        "join(1)",
    ] {
        for path in [".data.o.k", ".data.o", ".data.list", "[.data.o.k]", ".data.n", ".data"] {
            let filter = format!("{path} | {filter}");
            if let Err(error) = unlimited(&Filter::compile(&filter).unwrap(), &object) {
                let error = error.to_string();
                assert!(!error.contains("aHVud") && !error.contains("7135246"), "{filter}: {error}");
            }
        }
    }
}

#[test]
fn a_filter_that_calls_itself_for_ever_ends_with_an_error() {
    for text in ["def f: 1 + f; f", "def f(g): [g, f(g)]; f(1)", "def f: .a |= f; f"] {
        let error = unlimited(&Filter::compile(text).unwrap(), &json!(null)).unwrap_err().to_string();
        assert_eq!(error, "the filter calls itself too often", "{text}");
    }
    let deep = "def count: if . == 0 then 0 else . - 1 | count end; count";
    assert_eq!(unlimited(&Filter::compile(deep).unwrap(), &json!(100_000)).unwrap(), [json!(0)]);
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Filter::compile(&nested).is_err());
}

#[test]
fn a_filter_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Filter::compile(".").unwrap());
}

/// Runs filters on a thread as filters have one.
fn apart<T: Send + 'static>(work: impl FnOnce(&Progress) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(Threads::default().run(|progress| (work(progress), false))).unwrap()
}

#[test]
fn a_filter_of_thousands_of_operators_is_read_on_any_stack_or_refused() {
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let read = || {
        for (part, end) in
            [(".|", "."), ("-", "1"), ("1+", "1"), (".,", "."), ("def f: ", "."), ("try ", ".")]
        {
            let text = |times: usize| {
                // A definition is followed by what it is for.
                let behind = if part.starts_with("def") { ";.".repeat(times) } else { String::new() };
                part.repeat(times) + end + &behind
            };
            assert!(Filter::compile(&text(1_500)).is_ok(), "{part}");
            let error = Filter::compile(&text(60_000)).unwrap_err().to_string();
            assert!(error.ends_with("it has more than 10000 parts: words, numbers and signs"), "{error}");
        }
        Filter::compile(&format!("[{}1]", "1,".repeat(4_000))).unwrap()
    };
    let filter = small.spawn(read).unwrap().join().unwrap();
    let results = apart(move |_| filter.run(&Value::Null)).unwrap();
    assert_eq!(results[0].as_array().unwrap().len(), 4_001);
}

fn run_briefly(filter: &str, input: &Value) -> Result<Vec<Value>, JqError> {
    let limits = Limits { time: Some(std::time::Duration::from_millis(200)), ..Limits::OPERATOR };
    Filter::compile(filter).unwrap().run_within(&Val::from(input), limits)
}

#[test]
fn a_filter_that_loops_for_ever_ends_at_its_deadline() {
    const TEXTS: &[&str] = &[
        "def f: f; f",
        "def f: try f catch f; f",
        "def f(g): f(g | g); f(.)",
        "def f($x): f($x + 1); f(0)",
        "[range(1e12)] | length",
        "last(range(1e15))",
        "first(range(0; 1; 0) | select(. > 0))",
        "[repeat(1)] | length",
        "last(repeat(.))",
        "first(repeat(empty))",
        "until(false; .)",
        "last(while(true; .))",
        "last(recurse(. ; true))",
        "label $f | repeat(1) | if . > 1 then break $f else empty end",
        "[limit(1e12; repeat(1))] | length",
        "last(skip(1e15; repeat(1)))",
        "reduce range(1e12) as $i (\"\"; . + \"x\") | length",
        "until(false; . + \"x\")",
        "until(false; [., .])",
        "reduce range(64) as $i (0; [., .]) | tojson",
        "reduce range(64) as $i (0; [., .]) | [..] | length",
        "(reduce range(64) as $i (0; [., .])) == (reduce range(64) as $i (0; [., .]))",
        "reduce range(64) as $i (0; [., .]) | try error(tojson) catch .",
        "[range(100)] | [.[] as $a | .[] as $b | .[] as $c | .[] as $d | .[] as $e | 1] | length",
        "[range(100)] | reduce (.[] as $a | .[] as $b | .[] as $c | .[] as $d | 1) as $x (0; . + 1)",
        "last(path(repeat(.a)))",
        "[range(30000) | tostring] | . - (. | reverse | map(. + \"x\"))",
    ];
    apart(|progress| {
        for text in TEXTS {
            progress.step();
            let begun = std::time::Instant::now();
            let outcome = run_briefly(text, &json!(null));
            assert!(matches!(outcome, Err(JqError::Limit(_))), "{text}: {outcome:?}");
            assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{text}: {:?}", begun.elapsed());
        }
    });
}

#[test]
fn a_filter_that_grows_for_ever_ends_at_a_limit() {
    const TEXTS: &[&str] = &[
        "until(false; . + .)",
        "until(false; . + . + [1])",
        "path(def f: .a | f; f)",
        "reduce repeat(1) as $x ([]; . + [\"abcdefgh\" * 1000])",
        "[repeat(\"abcdefgh\" * 1000)] | length",
    ];
    apart(|progress| {
        for text in TEXTS {
            progress.step();
            let input = if text.contains("path") { json!(null) } else { json!(["x"]) };
            let filter = Filter::compile(text).unwrap();
            let limits = Limits { time: Some(std::time::Duration::from_secs(2)), ..Limits::OPERATOR };
            let outcome = filter.run_within(&Val::from(&input), limits);
            assert!(matches!(outcome, Err(JqError::Limit(_))), "{text}: {outcome:?}");
        }
        let long = run_briefly("\"x\" * 1e10", &json!(null)).unwrap_err().to_string();
        assert!(long.contains("too long"), "{long}");
    });
}

#[test]
fn what_other_threads_take_is_not_counted_against_a_filter() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    // Takes twice what a filter may hold, again and again.
    let greedy = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            drop(std::hint::black_box(vec![1_u8; 256 << 20]));
        }
    });
    let small = apart(|_| {
        let filter = Filter::compile("[range(2000)] | map(. * 2) | length").unwrap();
        (0..20).map(|_| filter.run(&json!(null))).collect::<Vec<_>>()
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    greedy.join().unwrap();
    for results in small {
        assert_eq!(results.unwrap(), [json!(2000)]);
    }
}

#[test]
fn values_may_nest_deeply() {
    fn run(text: &str) -> Result<Vec<Value>, JqError> {
        let limits = Limits { time: Some(std::time::Duration::from_secs(2)), memory: None };
        Filter::compile(text).unwrap().run_within(&Val::Null, limits)
    }
    const DEEP: &str = "reduce range(50000) as $i (0; [.])";
    apart(|progress| {
        assert_eq!(run(&format!("{DEEP} | length")).unwrap(), [json!(1)]);
        progress.step();
        let objects = "reduce range(50000) as $i (0; {a: .}) | length";
        assert_eq!(run(objects).unwrap(), [json!(1)]);
        progress.step();
        let error = run(DEEP).unwrap_err().to_string();
        assert_eq!(error, "the result nests deeper than 1000");
    });
    let several = [
        "tojson | length",
        "tostring | length",
        "[..] | length",
        "[paths] | length",
        "[tostream] | length",
        "walk(.) | length",
        "flatten | length",
        ". == . | not",
        "([.] | unique) | length",
        "(.. |= .) | length",
        "error",
        ".a",
        "contains([[[]]])",
        "del(.[0][0])|length",
        "[leaf_paths] | length",
        "@base64 | length",
    ];
    let of_deep = several.iter().map(|what| format!("{DEEP} | {what}"));
    let paths = [
        "[range(50000) | \"a\"] as $p | null | setpath($p; 1) | length",
        "[range(50000) | \"a\"] as $p | null | [path(getpath($p))] | length",
        "[path(reduce range(50000) as $i (.; .a))] | length",
    ];
    let texts: std::sync::Mutex<Vec<String>> =
        of_deep.chain(paths.map(str::to_owned)).collect::<Vec<_>>().into();
    let next = || texts.lock().unwrap().pop();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    // Some take all the time that they have.
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(text) = next() {
                    // Either is good; what counts is that it comes to an end.
                    apart(move |_| drop(run(&text)));
                }
            });
        }
    });
}

#[test]
fn numbers_that_are_none_are_sorted_and_compared_as_jq_does() {
    check("[range(100) | nan] | sort | length", &json!(null), "100");
    check("[nan, 1, nan, 0, nan] | sort | .[3:]", &json!(null), "[0,1]");
    check("nan < nan, nan == nan, [nan] == [nan], nan > nan", &json!(null), "true false false false");
}

#[test]
fn alternatives_of_a_destructuring_are_refused_by_name() {
    let error = Filter::compile(". as [$a] ?// $a | $a").unwrap_err().to_string();
    assert!(error.contains("`?//` at line 1, column 11, are not supported"), "{error}");
    check(".a?//\"x\"", &json!([1]), "\"x\"");
    check("\"?//\"", &json!(null), "\"?//\"");
}

#[tokio::test]
async fn a_thread_is_free_again_after_a_filter_that_passed_a_limit() {
    let threads = Threads::default();
    for text in ["def f: f; f", "."] {
        let outcome = threads.run(move |_| (run_briefly(text, &json!(1)), text != "."));
        let outcome = outcome.await.unwrap();
        assert_eq!(outcome.is_ok(), text == ".", "{text}: {outcome:?}");
    }
}

#[test]
fn a_function_that_is_not_defined_is_named_with_its_arguments_and_its_line() {
    let said = |filter: &str| Filter::compile(filter).unwrap_err().to_string();
    let text = said("def greet($name; $word): 1;\n  greet(\"a\")");
    assert!(text.ends_with("filter greet/1 is not defined at line 2, column 3"), "{text}");
    assert!(
        said("$nobody").ends_with("variable $nobody is not defined at line 1, column 1"),
        "{}",
        said("$nobody")
    );
}
