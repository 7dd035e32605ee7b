//! The `jq` program and the commands of `hook`, as hooks call them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_addon-operator");

/// Runs a program with this input. Returns its exit code and what it printed.
fn run(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that does not read its input closes it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn jq(arguments: &[&str], input: &str) -> (i32, String) {
    let mut command = Command::new(BINARY);
    command.args(["hook", "jq"]).args(arguments);
    let (code, out, _) = run(command, input);
    (code, out)
}

#[test]
fn options_do_what_those_of_jq_do() {
    let cases: &[(&[&str], &str, i32, &str)] = &[
        (&["."], r#"{"b":[1,{}],"a":[]}"#, 0, "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}\n"),
        (&["-c", ".", "-"], "{}", 0, "{}\n"),
        (&["-c"], "{}", 0, "{}\n"),
        (&["-n", "-7%3"], "", 0, "-1\n"),
        (&["-R", "."], "a\r\nb", 0, "\"a\\r\"\n\"b\"\n"),
        (&["-c", "."], "1 [2]\n{\"a\":3}", 0, "1\n[2]\n{\"a\":3}\n"),
        (&["-r", ".[]"], r#"["a",1,null]"#, 0, "a\n1\nnull\n"),
        (&["-j", ".[]"], r#"["a",1]"#, 0, "a1"),
        (&["-rc", ".[]"], r#"["a",[1]]"#, 0, "a\n[1]\n"),
        (&["-ac", "."], "\"\u{e4}\u{1f600}\"", 0, "\"\\u00e4\\ud83d\\ude00\"\n"),
        (&["--tab", "."], "[1]", 0, "[\n\t1\n]\n"),
        (&["--indent", "1", "."], "[1]", 0, "[\n 1\n]\n"),
        (&["--indent", "0", "."], "[1]", 0, "[1]\n"),
        (&["-n", "[inputs]", "-c"], "1 2", 0, "[1,2]\n"),
        (&["-n", "input, input"], "1 2 3", 0, "1\n2\n"),
        (&["-sc", "."], "1 2", 0, "[1,2]\n"),
        (&["-R", "."], "a\nb", 0, "\"a\"\n\"b\"\n"),
        (&["-Rs", "."], "a\nb\n", 0, "\"a\\nb\\n\"\n"),
        (&["-e", ".a"], r#"{"a":true}"#, 0, "true\n"),
        (&["-e", ".a"], "{}", 1, "null\n"),
        (&["-e", "empty"], "{}", 4, ""),
        (&["error(\"x\")"], "1 2", 5, ""),
        (&["if . == 1 then error(\"x\") else . end"], "1 2", 5, "2\n"),
        (&[".a |"], "1", 3, ""),
        (&["--nosuch", "."], "1", 2, ""),
        (&["."], "{\"a\":", 2, ""),
        (&["-n", "1, halt, 2"], "", 0, "1\n"),
        (&["-n", "\"bye\" | halt_error(7)"], "", 7, ""),
        (&["-nc", "[$a, $b]", "--arg", "a", "1", "--argjson", "b", "[2]"], "", 0, "[\"1\",[2]]\n"),
        (&["-nc", "$ARGS", "--args", "x", "y"], "", 0, "{\"named\":{},\"positional\":[\"x\",\"y\"]}\n"),
        (&["-nc", "--jsonargs", "$ARGS.positional", "1", "{}"], "", 0, "[1,{}]\n"),
        (&["-nr", "$ENV.PATH | type, (env | has(\"PATH\"))"], "", 0, "string\ntrue\n"),
        (&["-n", "[nan, infinite]", "-c"], "", 0, "[null,1.7976931348623157e+308]\n"),
        (&["-n", "$__loc__", "-c"], "", 0, "{\"file\":\"<top-level>\",\"line\":1}\n"),
        (&["-n", "1 | debug | . + 1"], "", 0, "2\n"),
        (&["--version"], "", 0, "jq-1.7.1\n"),
    ];
    for (arguments, input, code, out) in cases {
        assert_eq!(jq(arguments, input), (*code, (*out).to_owned()), "{arguments:?} on {input}");
    }
}

#[test]
fn files_are_inputs_variables_and_filters() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, two, filter) = (file("one", "1"), file("two", "2 3"), file("filter", "# a comment\n. + 1"));
    assert_eq!(jq([".", &one, &two].as_slice(), ""), (0, "1\n2\n3\n".to_owned()));
    assert_eq!(jq(["-f", &filter, &one].as_slice(), ""), (0, "2\n".to_owned()));
    assert_eq!(jq(["-nc", "$s", "--slurpfile", "s", &two].as_slice(), ""), (0, "[2,3]\n".to_owned()));
    assert_eq!(jq(["-nc", "$s", "--rawfile", "s", &two].as_slice(), ""), (0, "\"2 3\"\n".to_owned()));
    let missing = dir.path().join("missing").to_str().unwrap().to_owned();
    assert_eq!(jq([".", &missing, &one].as_slice(), ""), (2, "1\n".to_owned()));
}

#[test]
fn the_binary_is_jq_when_it_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("jq");
    std::os::unix::fs::symlink(BINARY, &link).unwrap();
    let mut command = Command::new(link);
    command.args(["-r", ".a"]);
    assert_eq!(run(command, r#"{"a":"x"}"#).1, "x\n");
}

#[test]
fn hooks_read_and_change_values_and_contexts_without_bash() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("values"), r#"{"app":{"size":1,"list":["a"]}}"#).unwrap();
    fs::write(path("patch"), "").unwrap();
    fs::write(path("context"), r#"[{"binding":"a"},{"binding":"b","flag":true,"n":null}]"#).unwrap();
    let hook = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command
            .arg("hook")
            .args(arguments)
            .env("VALUES_PATH", path("values"))
            .env("VALUES_JSON_PATCH_PATH", path("patch"))
            .env("BINDING_CONTEXT_PATH", path("context"))
            .env("BINDING_CONTEXT_CURRENT_INDEX", "1");
        let (code, out, _) = run(command, "");
        (code, out)
    };
    assert_eq!(hook(&["values", "get", "app.size"]), (0, "1\n".to_owned()));
    assert_eq!(hook(&["values", "get", "app.no"]), (0, "null\n".to_owned()));
    assert_eq!(hook(&["values", "get", "--required", "app.no"]).0, 1);
    assert_eq!(hook(&["context", "get", "--required", "n"]), (0, "null\n".to_owned()));
    assert_eq!(hook(&["context", "get", "--required", "no"]).0, 1);
    assert_eq!(hook(&["values", "has", "app.list.0"]).0, 0);
    assert_eq!(hook(&["values", "has", "app.list.1"]).0, 1);
    assert_eq!(hook(&["values", "set", "app.name", "-x"]).0, 0);
    assert_eq!(hook(&["values", "set", "app.deep.size", "5"]).0, 0);
    assert_eq!(hook(&["values", "unset", "app.size"]).0, 0);
    assert_eq!(hook(&["values", "set", "app.name.x", "1"]).0, 1);
    assert_eq!(
        fs::read_to_string(path("values")).unwrap(),
        "{\"app\":{\"deep\":{\"size\":5},\"list\":[\"a\"],\"name\":\"-x\"}}\n"
    );
    let operations = fs::read_to_string(path("patch")).unwrap();
    assert_eq!(operations.lines().count(), 4, "{operations}");
    assert_eq!(hook(&["context", "get", "binding"]), (0, "b\n".to_owned()));
    assert_eq!(hook(&["context", "is-true", "flag"]).0, 0);
    assert_eq!(hook(&["context", "is-null", "flag"]).0, 1);
    assert_eq!(hook(&["framework", path("shell").to_str().unwrap()]).0, 0);
    assert!(Path::new(&path("shell/framework/shell/hook.sh")).exists());
}

#[test]
fn the_command_runs_within_a_limit_of_memory_that_leaves_no_room_for_its_largest_stack() {
    let line = format!("ulimit -d 262144 && exec '{BINARY}' hook jq -n '[range(1000)] | length'");
    let output = Command::new("bash").arg("-c").arg(line).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"1000\n"[..]), "{output:?}");
}
