#!/usr/bin/env bash
# Tests of the shell framework: bash src/hook/shell/test.sh [bash to test with]
# Each test is a function that runs in a directory of its own.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bash=$(type -P "${1:-bash}")

# equal WHAT EXPECTED SEEN
equal() {
  [[ $2 == "$3" ]] && return
  printf '%s\n  expected: %s\n  seen:     %s\n' "$1" "$2" "$3" >&2
  exit 1
}

# Compares JSON, in which the order of keys says nothing.
same() {
  equal "$1" "$(jq -cS . <<< "$2")" "$(jq -cS . <<< "$3")"
}

# Writes a hook that sources the framework; its text comes from stdin.
hook() {
  { printf '#!/usr/bin/env bash\nsource %q\n' "${here}/shell_lib.sh"; cat; } > hook.sh
}

# Runs the hook; sets `out`, `err` and `status`.
run() {
  status=0
  "${bash}" hook.sh "$@" > out 2> err < /dev/null || status=$?
  out=$(< out) err=$(< err)
}

# ok EXPECTED: the last hook succeeded and printed this.
ok() {
  equal "status (${err})" 0 "${status}"
  equal "output" "$1" "${out}"
}

contexts() {
  printf '%s\n' "$1" > contexts.json
  export BINDING_CONTEXT_PATH=${PWD}/contexts.json
}

values() {
  printf '%s\n' "$1" > values.json
  printf '%s\n' '{"global":{},"app":{"set":true}}' > config.json
  : > patch.json
  : > config-patch.json
  chmod 600 values.json
  export VALUES_PATH=${PWD}/values.json VALUES_JSON_PATCH_PATH=${PWD}/patch.json
  export CONFIG_VALUES_PATH=${PWD}/config.json CONFIG_VALUES_JSON_PATCH_PATH=${PWD}/config-patch.json
}

test_config_is_printed_and_nothing_runs() {
  hook <<'HOOK'
__config__() { echo 'configVersion: v1'; }
__main__() { echo ran; }
hook::run "$@"
echo not reached
HOOK
  run --config
  ok 'configVersion: v1'
}

test_each_context_gets_the_first_function_that_exists() {
  contexts '[
    {"binding":"onStartup"}, {"binding":"beforeHelm","snapshots":{}}, {"binding":"afterHelm","snapshots":{}},
    {"binding":"pods","type":"Synchronization","objects":[]},
    {"binding":"pods","type":"Event","watchEvent":"Added"}, {"binding":"pods","type":"Event","watchEvent":"Modified"},
    {"binding":"pods","type":"Event","watchEvent":"Deleted"}, {"binding":"nodes","type":"Synchronization","objects":[]},
    {"binding":"nodes","type":"Event","watchEvent":"Added"}, {"binding":"nodes","type":"Event","watchEvent":"Deleted"},
    {"binding":"pods","type":"Group","groupName":"pair","snapshots":{}}, {"binding":"each-5","type":"Schedule"},
    {"binding":"a.b.c","type":"Validating","review":{}}, {"binding":"a.b.c","type":"Mutating","review":{}},
    {"binding":"up","type":"Conversion","fromVersion":"example.com/v1","toVersion":"v2"},
    {"binding":"up","type":"Conversion","fromVersion":"v2","toVersion":"v3"}, {"type":"Other"}]'
  hook <<'HOOK'
say() { echo "${BINDING_CONTEXT_CURRENT_INDEX} ${BINDING_CONTEXT_CURRENT_BINDING} ${FUNCNAME[1]}"; }
for name in __on_startup __on_before_helm __on_kubernetes::pods::synchronization __on_kubernetes::pods::added \
  __on_kubernetes::pods::added_or_modified __on_kubernetes::pods __on_kubernetes::nodes __on_group::pair \
  __on_schedule::each-5 __on_validating::a.b.c __on_mutating::a.b.c __on_conversion::up::example.com.v1::v2 \
  __on_conversion::up __main__; do
  eval "${name}() { say; }"
done
hook::run "$@"
HOOK
  run
  ok '0 onStartup __on_startup
1 beforeHelm __on_before_helm
2 afterHelm __main__
3 pods __on_kubernetes::pods::synchronization
4 pods __on_kubernetes::pods::added
5 pods __on_kubernetes::pods::added_or_modified
6 pods __on_kubernetes::pods
7 nodes __on_kubernetes::nodes
8 nodes __on_kubernetes::nodes
9 nodes __on_kubernetes::nodes
10 pods __on_group::pair
11 each-5 __on_schedule::each-5
12 a.b.c __on_validating::a.b.c
13 a.b.c __on_mutating::a.b.c
14 up __on_conversion::up::example.com.v1::v2
15 up __on_conversion::up
16 unknown __main__'
}

test_no_function_for_a_context_is_an_error_with_the_list() {
  contexts '[{"binding":"pods","type":"Event","watchEvent":"Modified"}]'
  hook <<< 'hook::run "$@"'
  run
  equal status 1 "${status}"
  equal 'first line' "ERROR: Can't find any handler from the list: __on_kubernetes::pods::modified, __on_kubernetes::pods::added_or_modified, __on_kubernetes::pods, __main__" "${err%%$'\n'*}"
}

test_without_contexts_nothing_runs() {
  contexts '[]'
  hook <<< '__main__() { echo ran; }; hook::run "$@"; echo end'
  run
  ok end
}

test_variables_do_not_leak_from_one_context_to_the_next() {
  contexts '[{"binding":"a"},{"binding":"b"}]'
  hook <<< '__main__() { echo "${seen:-new}"; seen=old; }; hook::run "$@"'
  run
  ok $'new\nnew'
}

test_a_failure_ends_the_hook_with_one_traceback() {
  contexts '[{"binding":"a"},{"binding":"b"}]'
  hook <<'HOOK'
inner() {
  bash -c "exit 7"
}
__main__() {
  echo "${BINDING_CONTEXT_CURRENT_BINDING}"
  inner
}
hook::run "$@"
HOOK
  run
  equal status 7 "${status}"
  equal output a "${out}"
  equal 'number of tracebacks' 1 "$(grep -c '^Traceback (most recent call last):$' err)"
  equal 'last line' 'Exiting with status 7' "${err##*$'\n'}"
  equal 'the innermost call' '  File "hook.sh", line 4, in inner
    bash -c "exit 7"' "$(tail -n 3 err | head -n 2)"
  equal 'the outermost call' '  File "hook.sh", line 10, in main
    hook::run "$@"' "$(head -n 3 err | tail -n 2)"
}

test_strict_mode_is_on() {
  for text in 'echo "${unknown}"' 'false | true' 'x=$(false; echo y)' 'echo /nowhere/*' 'false'; do
    hook <<< "${text}; echo reached"
    run
    [[ ${status} != 0 && ${out} != *reached* ]] || equal "${text}" failure "${status} ${out}"
  done
}

test_paths_are_converted() {
  hook <<'HOOK'
for path in '' a.b-c.d items.0.name "a.'b.c'" 'a."b.c.d".e' .a 0 'x.0' "a.'0'" a.b/c; do
  context::_convert_user_path_to_jq_path "${path}"
done
context::_dirname a.b.c; context::_basename a.b.c
context::_dirname "a.'b.c.d'"; context::_basename "a.'b.c.d'"
context::_dirname a; context::_basename "'a.b'.0"
HOOK
  run
  ok '.
.a."b-c".d
.items[0].name
.a."b.c"
.a."b.c.d".e
.a
.[0]
.x[0]
.a."0"
.a."b/c"
a.b
c
a
b.c.d

0'
}

test_contexts_are_read() {
  contexts '[{"binding":"skip"},{"binding":"x","n":null,"t":true,"f":false,"s":"text","a.b":{"c-d":[1,{"k":"v w"}]},"o":{"0":"zero"}}]'
  hook <<'HOOK'
__main__() {
  [[ ${BINDING_CONTEXT_CURRENT_INDEX} == 1 ]] || return 0
  context::global::jq -r 'length'
  context::jq -r '.s'
  context::jq -c '."a.b"' # a program with a comment behind
  context::jq -c '[.t, .f] # a comment inside'
  context::jq --arg x 1 -cr '[$x, .n]'
  context::jq -n 'inputs | .s'
  context::jq -c 'def f: .t; f'
  context::jq -s 'length'
  context::get s
  context::get nothing.at.all
  context::get "'a.b'.c-d.1.k"
  context::get o.0
  context::get s.deeper
  context::get --required n
  for test in has:s has:n has:nothing has:a.b.c "has:'a.b'.c-d.0" "has:'a.b'.c-d.2" has: has:s.x is_true:t is_true:s is_true:x \
    is_false:f is_false:n is_null:n is_null:nothing is_null:f; do
    if "context::${test%%:*}" "${test#*:}"; then echo "${test} yes"; else echo "${test} no"; fi
  done
  context::get --required nothing.here
}
hook::run "$@"
HOOK
  run
  equal status 1 "${status}"
  equal error "Error: Value nothing.here required, but doesn't exist" "${err%%$'\n'*}"
  equal output "2
text
{\"c-d\":[1,{\"k\":\"v w\"}]}
[true,false]
[\"1\",null]
\"text\"
true
1
text
null
v w
zero
null
null
has:s yes
has:n yes
has:nothing no
has:a.b.c no
has:'a.b'.c-d.0 yes
has:'a.b'.c-d.2 no
has: yes
has:s.x no
is_true:t yes
is_true:s no
is_true:x no
is_false:f yes
is_false:n no
is_null:n yes
is_null:nothing yes
is_null:f no" "${out}"
}

test_names_with_spaces_have_no_function_of_their_own_and_harm_nothing() {
  contexts '[{"binding":"my pods","type":"Event","watchEvent":"Added"},{"binding":"a  b","type":"Group","groupName":"two words","snapshots":{}},
    {"binding":"$(touch pwned) *","type":"Schedule"},{"binding":"line\nbreak","type":"Schedule"}]'
  hook <<'HOOK'
pods() { echo "the wrong one"; }
__main__() { echo "${BINDING_CONTEXT_CURRENT_INDEX}/${CONTEXT_LENGTH} <${BINDING_CONTEXT_CURRENT_BINDING}> ${BINDING_CONTEXT_CURRENT_TYPE} <${BINDING_CONTEXT_GROUP_NAME}> $(context::get binding)"; }
hook::run
HOOK
  run
  [[ ! -e pwned ]] || equal 'names are not run' no yes
  [[ ${out} != *wrong* ]] || equal 'function' __main__ pods
  equal 'first line' '0/4 <my pods> Event <> my pods' "${out%%$'\n'*}"
  equal 'second line' '1/4 <a  b> Group <two words> a  b' "$(sed -n 2p out)"
  equal 'third line' '2/4 <$(touch pwned) *> Schedule <> $(touch pwned) *' "$(sed -n 3p out)"
  equal 'fourth line' '3/4 <line break> Schedule <> line' "$(sed -n 4p out)"
}

test_all_lifecycle_points_have_functions() {
  contexts '[{"binding":"onStartup"},{"binding":"beforeAll","snapshots":{}},{"binding":"afterAll","snapshots":{}},{"binding":"beforeHelm","snapshots":{}},
    {"binding":"afterHelm","snapshots":{}},{"binding":"beforeDeleteHelm","snapshots":{}},{"binding":"afterDeleteHelm","snapshots":{}}]'
  hook <<'HOOK'
for name in __on_startup __on_before_all __on_after_all __on_before_helm __on_after_helm __on_before_delete_helm __on_after_delete_helm; do
  eval "${name}() { echo ${name}; }"
done
hook::run "$@"
HOOK
  run
  ok $'__on_startup\n__on_before_all\n__on_after_all\n__on_before_helm\n__on_after_helm\n__on_before_delete_helm\n__on_after_delete_helm'
}

test_variables_that_are_not_set_are_no_error_of_the_framework() {
  contexts '[{"binding":"a"}]'
  hook <<'HOOK'
unset BINDING_CONTEXT_CURRENT_INDEX BINDING_CONTEXT_CURRENT_BINDING
context::get binding
context::has '' && echo whole
values::has x || echo "no values: $?"
HOOK
  unset VALUES_PATH CONFIG_VALUES_PATH
  run
  equal 'first lines' $'a\nwhole' "$(head -n 2 out)"
  [[ ${status} != 0 && ${err} == *VALUES_PATH* ]] || equal 'the variable is named' VALUES_PATH "${status} ${err}"
}

test_a_handler_can_be_any_command_and_its_status_is_the_hooks() {
  contexts '[{"binding":"a"}]'
  mkdir bin
  printf '#!/usr/bin/env bash\necho "program sees ${BINDING_CONTEXT_CURRENT_INDEX}"\nexit 9\n' > bin/__main__
  chmod +x bin/__main__
  hook <<< 'hook::run "$@"'
  PATH=${PWD}/bin:${PATH} run
  equal status 9 "${status}"
  equal output 'program sees 0' "${out}"
}

test_internal_names_that_hooks_call_are_there() {
  contexts '[{"binding":"a"},{"binding":"pods","type":"Event","watchEvent":"Deleted"}]'
  hook <<'HOOK'
BINDING_CONTEXT_CURRENT_INDEX=1
hook::_get_possible_handler_names
hook::_determine_kubernetes_and_scheduler_handlers
__on_kubernetes::pods() { echo "ran ${HANDLERS:-}"; }
hook::_run_first_available_handler "$(hook::_get_possible_handler_names) __main__"
HOOK
  run
  ok '__on_kubernetes::pods::deleted __on_kubernetes::pods
__on_kubernetes::pods::deleted __on_kubernetes::pods
ran '
}

test_values_are_read() {
  values '{"global":{"a":1},"app":{"list":["x",5],"t":true,"n":null,"name":"web app","d.e":{"f-g":2}}}'
  hook <<'HOOK'
values::get global.a; values::get app.name; values::get app.list; values::get app.nothing; values::get "app.'d.e'.f-g"
values::get --required app.name; values::get --config app.set; values::get --config --required app.set
values::jq -c '.app.list'; values::jq --config -c '.app'
values::get_first_defined app.x app.n app.name
for test in has:app.n has:app.x is_true:app.t is_true:app.n is_false:app.t is_null:app.x; do
  if "values::${test%%:*}" "${test#*:}"; then echo "${test} yes"; else echo "${test} no"; fi
done
for value in x 5 6; do if values::array_has app.list "${value}"; then echo "${value} in"; else echo "${value} out"; fi; done
if values::has --config app.set; then echo config yes; fi
values::get --required app.n
HOOK
  run
  equal error "Error: Value app.n required, but doesn't exist" "${err%%$'\n'*}"
  equal output '1
web app
[
  "x",
  5
]
null
2
web app
true
true
["x",5]
{"set":true}
null
has:app.n yes
has:app.x no
is_true:app.t yes
is_true:app.n no
is_false:app.t no
is_null:app.x yes
x in
5 in
6 out
config yes' "${out}"
}

test_a_change_of_values_is_seen_at_once_and_written_as_operations() {
  values '{"global":{},"app":{"size":1,"old":{"x":1},"list":["a","b"],"n":null}}'
  hook <<'HOOK'
values::set app.size 3
values::set app.name 'web "app"'
values::set app.flag true
values::set app.deep.er.value '{"a": [1, 2]}'
values::set "app.'with.dot'.a/b~c" 007
values::set app.list.1 c
values::set app.n.key x
values::set app.text '{not json'
values::set app.empty ''
values::unset app.old
values::unset app.nothing
values::unset app.list.0
values::json_patch add /app/list/- '"tail"'
values::json_patch remove /app/text
values::get app.size
HOOK
  run
  ok 3
  same 'values' '{"global":{},"app":{"size":3,"list":["c","tail"],"n":{"key":"x"},"name":"web \"app\"","flag":true,"deep":{"er":{"value":{"a":[1,2]}}},"with.dot":{"a/b~c":"007"},"empty":""}}' "$(< values.json)"
  equal 'operations' '{"op":"add","path":"/app/size","value":3}
{"op":"add","path":"/app/name","value":"web \"app\""}
{"op":"add","path":"/app/flag","value":true}
{"op":"add","path":"/app/deep","value":{}}
{"op":"add","path":"/app/deep/er","value":{}}
{"op":"add","path":"/app/deep/er/value","value":{"a":[1,2]}}
{"op":"add","path":"/app/with.dot","value":{}}
{"op":"add","path":"/app/with.dot/a~1b~0c","value":"007"}
{"op":"add","path":"/app/list","value":["a","c"]}
{"op":"add","path":"/app/n","value":{}}
{"op":"add","path":"/app/n/key","value":"x"}
{"op":"add","path":"/app/text","value":"{not json"}
{"op":"add","path":"/app/empty","value":""}
{"op":"remove","path":"/app/old"}
{"op":"add","path":"/app/list","value":["c"]}
{"op":"add","path":"/app/list/-","value":"tail"}
{"op":"remove","path":"/app/text"}' "$(< patch.json)"
  equal 'rights of the file' 600 "$(stat -c %a values.json)"
  equal 'files left' 'config-patch.json config.json err hook.sh out patch.json values.json' "$(echo *)"
}

test_values_that_users_configure_are_changed_apart() {
  values '{"global":{},"app":{"size":1}}'
  hook <<'HOOK'
values::set --config app.size 5
values::unset --config app.set
values::json_patch --config add /app/x 1
values::get --config app.size
values::get app.size
HOOK
  run
  ok $'5\n1'
  same 'config' '{"global":{},"app":{"size":5,"x":1}}' "$(< config.json)"
  equal 'operations' '{"op":"add","path":"/app/size","value":5}
{"op":"remove","path":"/app/set"}
{"op":"add","path":"/app/x","value":1}' "$(< config-patch.json)"
  equal 'operations on values' '' "$(< patch.json)"
}

test_a_change_that_is_not_possible_changes_nothing() {
  values '{"global":{},"app":{"name":"x"}}'
  hook <<< 'values::set app.name.deeper 1'
  run
  [[ ${status} != 0 ]] || equal status failure 0
  equal 'values' '{"global":{},"app":{"name":"x"}}' "$(< values.json)"
  equal 'operations' '' "$(< patch.json)"
}

test_without_jq_the_operator_takes_its_place() {
  values '{"global":{},"app":{"size":1}}'
  mkdir bin
  local tool
  for tool in bash cp mv; do ln -s "$(type -P "${tool}")" bin/; done
  printf '#!%s\n[[ $1 == hook && $2 == jq ]] || exit 9\nshift 2\nexec %s "$@"\n' "$(type -P bash)" "$(type -P jq)" > operator
  chmod +x operator
  hook <<< 'values::set app.size 2; values::get app.size'
  PATH=${PWD}/bin ADDON_OPERATOR_BINARY=${PWD}/operator run
  ok 2
}

test_other_files_of_the_framework_are_sourced_in_order() {
  mkdir -p framework/sub
  echo 'echo b' > framework/b.sh
  echo 'echo A' > framework/a.SH
  echo 'echo c' > framework/sub/c.sh
  echo 'echo no' > framework/no.txt
  hook <<< 'shopt -q failglob && echo strict; shopt -q nullglob || echo as before'
  export SHELL_FRAMEWORK_DIR=${PWD}/framework
  run
  ok $'A\nb\nc\nstrict\nas before'
  export SHELL_FRAMEWORK_DIR=${PWD}/nowhere
  run
  ok $'strict\nas before'
}

# What an unmodified hook does where there is no /shell_lib.sh.
prelude() {
  [[ ! -e /shell_lib.sh && ! -e /frameworks ]] || exit 0
  cat > hook.sh
  export BASH_ENV=${here}/prelude.sh
}

test_the_prelude_finds_what_is_not_at_its_place() {
  contexts '[{"binding":"onStartup"}]'
  prelude <<'HOOK'
#!/usr/bin/env bash
source /shell_lib.sh
__config__() { echo config; }
__main__() { echo "main $(context::get binding)"; }
hook::run "$@"
HOOK
  run
  ok 'main onStartup'
  run --config
  ok config
}

test_the_prelude_leaves_everything_else_as_it_is() {
  mkdir -p lib
  echo 'declare -A table=([k]=v); declare plain=1; echo "$# ${1:-none}"' > lib/a.sh
  echo 'echo "$# $1"; return 3' > lib/b.sh
  prelude <<'HOOK'
#!/usr/bin/env bash
. /frameworks/shell/path.sh
. /framework/shell/path.sh
path::_to_json a.0; echo
source lib/a.sh
echo "${table[k]} ${plain} $#"
source lib/a.sh "own argument" two
f() { local x=1; . lib/a.sh; echo "in f $# $1"; }
f 'of f'
echo "after ${plain}"
[[ 1 == 2 ]] && source lib/b.sh x
true || . lib/b.sh x
source lib/b.sh 'of b' || echo "status $?"
if ! source lib/b.sh 'of b'; then echo failed; fi
builtin source lib/b.sh direct || true
source /nowhere/x.sh || echo "missing"
HOOK
  run arg1 'arg 2'
  equal output '["a",0]
2 arg1
v 1 2
2 own argument
1 of f
in f 1 of f
after 1
1 of b
status 3
1 of b
failed
1 direct
missing' "${out}"
}

test_the_prelude_goes_on_with_the_one_before() {
  echo 'BEFORE=yes' > mine.sh
  export ADDON_OPERATOR_NEXT_BASH_ENV=${PWD}/mine.sh
  prelude <<< 'echo "${BEFORE:-no}"'
  run
  ok yes
}

reconcile_result() {
  : > result.json
  export RECONCILE_RESULT_PATH=${PWD}/result.json
}

test_a_controller_says_what_should_be_in_one_process() {
  contexts '[{"binding":"site","children":{"Deployment.apps":{"a":{"kind":"Deployment","metadata":{"generation":2},
    "spec":{"replicas":2},"status":{"availableReplicas":2,"observedGeneration":2}}},"ConfigMap":{}},
    "object":{"metadata":{"name":"a","namespace":"shop"}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() {
  reconcile::jq --arg text yes '{
    children: [child("v1"; "ConfigMap"; $object.metadata.name) + {data: {text: $text}}],
    conditions: [condition("Ready"; ready("Deployment.apps"); "A"; "b"), condition("Maps"; ready("ConfigMap"); "A"; "b"),
      condition("Other"; null; "A"; "b")],
    status: {owned: (owned | length), same: (({a: 1} | hashed("a"; 20)) == ({a: 1} | hashed("a"; 20))),
      other: (({a: 2} | hashed("a"; 20)) == ({a: 1} | hashed("a"; 20))), name: (1 | hashed("a-long-prefix"; 12))}
  }'
}
hook::run "$@"
HOOK
  # Every process that is started is counted.
  mkdir bin
  printf '#!/bin/sh\necho jq >> "%s/started"\nexec "%s" "$@"\n' "${PWD}" "$(type -P jq)" > bin/jq
  chmod +x bin/jq
  PATH=${PWD}/bin:${PATH} run
  ok ''
  equal processes 1 "$(wc -l < started | tr -d ' ')"
  same children '[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"},"data":{"text":"yes"}}]' \
    "$(jq -c .children result.json)"
  equal conditions '["True","False","Unknown"]' "$(jq -c '[.conditions[].status]' result.json)"
  equal status '[1,true,false,12,true]' \
    "$(jq -c '.status | [.owned, .same, .other, (.name | length), (.name | test("^a-l-[0-9a-f]{8}$"))]' result.json)"
}

test_whether_a_kind_is_ready_that_is_no_kind_of_children_is_an_error() {
  contexts '[{"binding":"site","children":{"Deployment.apps":{}},"object":{"metadata":{"name":"a"}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() {
  reconcile::jq '{status: {known: ready("Deployment.apps"), unknown: (try ready("Deployment") catch .)}}'
}
hook::run "$@"
HOOK
  run
  ok ''
  same status '{"known":false,"unknown":"ready: Deployment is none of the kinds of children of the binding: Deployment.apps"}' \
    "$(jq -c .status result.json)"
}

test_a_hash_is_the_same_whatever_jq_counts_it() {
  contexts '[{"binding":"site","children":{},"object":{"metadata":{"name":"a"},"spec":{
    "z":[1.0,1e3,-0,2.50,0.1,1e-7,100000000000000000000,-12345678901234567890],"b":{"y":1,"x":"\u00fc\u0001\u007f\ud83d\ude00"},"a":null}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() {
  reconcile::jq '{status: {one: ($object.spec | hashed("a"; 20)), other: ({a: null, b: {x: $object.spec.b.x, y: 1}, z: $object.spec.z} | hashed("a"; 20)),
    text: ("text" | hashed("a"; 20)), list: (["a", 1] | hashed("a"; 20)), none: (null | hashed("a"; 20))}}'
}
hook::run "$@"
HOOK
  run
  ok ''
  same status '{"one":"a-46634438","other":"a-46634438","text":"a-0422f0d8","list":"a-b668454b","none":"a-ef5fd30c"}' "$(jq -c .status result.json)"
}

test_a_name_with_a_hash_is_short_enough_and_does_not_begin_with_a_dash() {
  contexts '[{"binding":"site","children":{},"object":{"metadata":{"name":"p"}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() {
  reconcile::jq '{status: {short: ("x" | hashed("p"; 10)), none: ("x" | hashed(""; 10)), dash: ("x" | hashed("cm-"; 20)),
    cut: ["my.site", "a--b", "a-.-b", "--"] | map(. as $name | "x" | hashed($name; 12)),
    alike: (["ab", "bA", "t1A", "t0b"] | map(hashed("p"; 20)) | unique | length), refused: (try ("x" | hashed("p"; 9)) catch .),
    missing: (try ("x" | hashed(null; 20)) catch .)}}'
}
hook::run "$@"
HOOK
  run
  ok ''
  same status '{"short":"p-08f7eb87","none":"08f7eb87","dash":"cm-08f7eb87","cut":["my-08f7eb87","a-08f7eb87","a-08f7eb87","08f7eb87"],"alike":4,"refused":"hashed: max is 9, but a name with a hash has 10 characters or more","missing":"hashed: the prefix is no text, but of type null"}' \
    "$(jq -c .status result.json)"
}

test_what_a_program_says_behind_what_should_be_are_operations_on_objects() {
  contexts '[{"binding":"site","children":{},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  : > objects.json
  export KUBERNETES_PATCH_PATH=${PWD}/objects.json
  hook <<'HOOK'
__on_reconcile::site() { reconcile::jq '{children: []}, ($object | gone), empty, ({spec: {a: "\n"}} | create_once)'; }
hook::run "$@"
HOOK
  run
  ok ''
  equal result '{"children":[]}' "$(< result.json)"
  equal operations '["DeleteInBackground",null] ["CreateIfNotExists","\n"]' \
    "$(jq -c '[.operation, .object.spec.a]' objects.json | tr '\n' ' ' | sed 's/ $//')"
}

test_programs_of_controllers_are_run_by_the_operator() {
  contexts '[{"binding":"site","children":{},"object":{},"related":{},"type":"Reconcile"}]'
  reconcile_result
  printf '#!/bin/sh\n[ "$1 $2" = "hook jq" ] || exit 9\nshift 2\necho asked >> "%s/asked"\nexec jq "$@"\n' "${PWD}" > operator
  chmod +x operator
  hook <<< '__on_reconcile::site() { reconcile::jq "{}"; }
hook::run "$@"'
  ADDON_OPERATOR_BINARY=${PWD}/operator run
  ok ''
  equal asked asked "$(< asked)"
  # One that is gone leaves jq.
  ADDON_OPERATOR_BINARY=${PWD}/nowhere run
  ok ''
  equal asked asked "$(< asked)"
}

test_a_deleted_object_has_a_function_of_its_own() {
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() { echo "reconcile ${BINDING_CONTEXT_CURRENT_BINDING}"; }
__on_finalize::site() { reconcile::jq '{finalized: true}'; echo finalize; }
__on_reconcile::other() { context::get type; }
hook::run "$@"
HOOK
  contexts '[{"binding":"site","children":{},"object":{},"related":{},"type":"Finalize"}]'
  run
  ok finalize
  equal result '{"finalized":true}' "$(< result.json)"
  contexts '[{"binding":"site","children":{},"object":{},"related":{},"type":"Reconcile"}]'
  run
  ok 'reconcile site'
  contexts '[{"binding":"other","children":{},"object":{},"related":{},"type":"Finalize"}]'
  run
  ok Finalize
}

test_a_program_that_fails_fails_the_hook() {
  reconcile_result
  hook <<'HOOK'
__on_reconcile::site() { reconcile::jq 'error("no")'; }
hook::run "$@"
HOOK
  contexts '[{"binding":"site","children":{},"object":{},"related":{},"type":"Reconcile"}]'
  run
  [[ ${status} != 0 ]] || equal status 'not 0' "${status}"
}

test_an_error_of_a_program_names_its_line() {
  reconcile_result
  contexts '[{"binding":"site","children":{},"object":{},"related":{},"type":"Reconcile"}]'
  local call
  for call in reconcile::jq patch::jq; do
    hook <<HOOK
__on_reconcile::site() { ${call} '{} |

    nothing_of_this_name'; }
hook::run "\$@"
HOOK
    run
    [[ ${status} != 0 && ${err} == *'line 3'* ]] || equal "${call}" "line 3" "${err}"
  done
}

test_operations_on_objects_are_written_only_if_they_change_something() {
  contexts '[{"binding":"a","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","finalizers":["x/y"]},
    "spec":{"a":1,"b":[1]},"status":{"ready":true}}}]'
  : > objects.json
  export KUBERNETES_PATCH_PATH=${PWD}/objects.json
  hook <<'HOOK'
__main__() {
  patch::jq '.object as $living | $living
    | ({spec: {a: 1}} | ensure($living)), (.spec.a = 2 | ensure($living) | .operation),
      ({ready: true} | status($living)), ({ready: false} | status($living)), finalizer_added("x/y"), finalizer_removed("x/y"),
      (create_once | .operation), gone'
}
hook::run "$@"
HOOK
  run
  ok ''
  same operations '"CreateOrUpdate"
{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"n","operation":"MergePatch","subresource":"status","ignoreMissingObject":true,"mergePatch":{"status":{"ready":false}}}
{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"n","operation":"JQPatch","ignoreMissingObject":true,"jqFilter":"if .metadata.finalizers then .metadata.finalizers -= [\"x/y\"] else . end"}
"CreateIfNotExists"
{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"n","operation":"DeleteInBackground"}' "$(< objects.json)"
}

test_finalizers_of_others_stay_as_they_are_and_in_their_order() {
  contexts '[{"binding":"a","living":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","finalizers":["a","x.a"]}},
    "deleted":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"]}}}]'
  : > objects.json
  export KUBERNETES_PATCH_PATH=${PWD}/objects.json
  hook <<'HOOK'
__main__() {
  patch::jq '(.living | finalizer_added("a"), finalizer_removed("b"), finalizer_added("x"), finalizer_removed("a")),
    (.deleted | finalizer_added("b"), finalizer_removed("b"))'
}
hook::run "$@"
HOOK
  run
  ok ''
  equal operations '["JQPatch","p",true] ["JQPatch","p",true]' \
    "$(jq -c '[.operation, .name, .ignoreMissingObject]' objects.json | tr '\n' ' ' | sed 's/ $//')"
  # What happened since the hook saw the object is not undone.
  local -a filters
  mapfile -t filters < <(jq -r .jqFilter objects.json)
  local none='{"metadata":{}}' other='{"metadata":{"finalizers":["late","a"]}}'
  local deleted='{"metadata":{"deletionTimestamp":"t","finalizers":["late"]}}'
  same added '{"metadata":{"finalizers":["x"]}}{"metadata":{"finalizers":["late","a","x"]}}{"metadata":{"deletionTimestamp":"t","finalizers":["late"]}}' \
    "$(printf '%s\n' "${none}" "${other}" "${deleted}" | jq -c "${filters[0]}" | tr -d '\n')"
  same removed '{"metadata":{}}{"metadata":{"finalizers":["late"]}}{"metadata":{"deletionTimestamp":"t","finalizers":["late"]}}' \
    "$(printf '%s\n' "${none}" "${other}" "${deleted}" | jq -c "${filters[1]}" | tr -d '\n')"
}

test_of_an_object_that_is_not_there_nothing_is_changed() {
  contexts '[{"binding":"a","living":null}]'
  : > objects.json
  export KUBERNETES_PATCH_PATH=${PWD}/objects.json
  hook <<'HOOK'
__main__() {
  patch::jq '.living as $living
    | ($living | gone, finalizer_added("a"), finalizer_removed("a")), ({ready: true} | status($living))'
}
hook::run "$@"
HOOK
  run
  ok ''
  equal operations '' "$(< objects.json)"
}

test_a_program_says_metrics_beside_operations_in_one_process() {
  contexts '[{"binding":"site","children":{},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"related":{},"type":"Reconcile"}]'
  reconcile_result
  : > objects.json
  : > metrics.json
  export KUBERNETES_PATCH_PATH=${PWD}/objects.json METRICS_PATH=${PWD}/metrics.json
  hook <<'HOOK'
__on_reconcile::site() {
  reconcile::jq '{children: []}, {metric: {name: "a", action: "set", value: 1, labels: {b: "}\n"}}}, ($object | gone)'
  patch::jq '{metric: {name: "c", action: "set", value: 2}}, (.object | create_once)'
  patch::jq 'empty'
}
hook::run "$@"
HOOK
  run
  ok ''
  equal result '{"children":[]}' "$(< result.json)"
  equal operations '"DeleteInBackground" "CreateIfNotExists"' "$(jq -c .operation objects.json | tr '\n' ' ' | sed 's/ $//')"
  equal metrics '["a",1,{"b":"}\n"}] ["c",2,null]' "$(jq -c '[.name, .value, .labels]' metrics.json | tr '\n' ' ' | sed 's/ $//')"
}

test_which_function_runs_is_asked_of_the_operator() {
  contexts '[{"binding":"a","type":"Schedule"},{"binding":"onStartup"}]'
  printf '#!/bin/sh\n[ "$1 $2" = "hook jq" ] || exit 9\nshift 2\necho asked >> "%s/asked"\nexec jq "$@"\n' "${PWD}" > operator
  chmod +x operator
  hook <<'HOOK'
__on_schedule::a() { echo schedule; }
__on_startup() { echo startup; }
hook::run "$@"
HOOK
  ADDON_OPERATOR_BINARY=${PWD}/operator run
  ok $'schedule\nstartup'
  equal asked asked "$(< asked)"
}

failed=0 count=0
for name in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
  directory=$(mktemp -d)
  count=$(( count + 1 ))
  if ! message=$( (cd "${directory}" && "${name}") 2>&1 ); then
    failed=$(( failed + 1 ))
    printf 'FAILED %s\n%s\n' "${name}" "${message}"
  fi
  rm -rf "${directory}"
done
echo "${count} tests, ${failed} failed ($("${bash}" -c 'echo "bash ${BASH_VERSION}"'), $(jq --version))"
(( failed == 0 && count > 0 ))
