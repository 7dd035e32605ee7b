#!/usr/bin/env bash
# Reads and changes values. A change is written twice: as operations into the patch
# file, which the operator applies, and into the file with the values, so that the
# hook sees it. With --config, values that users configure are meant.

# Sets VALUES_FILE and VALUES_PATCH_FILE, and VALUES_SKIP to 1 if an option was read.
values::_select() {
  if [[ ${1:-} == --config ]]; then
    VALUES_SKIP=1
    VALUES_FILE=${CONFIG_VALUES_PATH:?}
    VALUES_PATCH_FILE=${CONFIG_VALUES_JSON_PATCH_PATH:-}
  else
    VALUES_SKIP=0
    VALUES_FILE=${VALUES_PATH:?}
    VALUES_PATCH_FILE=${VALUES_JSON_PATCH_PATH:-}
  fi
}

# Runs jq over the values: values::jq [--config] arguments of jq.
values::jq() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  path::_jq "$@" "${VALUES_FILE}"
}

values::_query() {
  path::_jq "$1" "${PATH_JQ_FUNCTIONS} $2" "${VALUES_FILE}"
}

values::_test() {
  [[ $(values::_query -c "$1") == true ]]
}

# Prints a value, `null` if there is none: values::get [--config] [--required] [path].
values::get() {
  local required=no path arguments=()
  while (( $# > 0 )); do
    case $1 in
      --required) required=yes ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  values::_select ${arguments[@]+"${arguments[@]}"}
  local wanted=${arguments[VALUES_SKIP]:-}
  path=$(path::_to_json "${wanted}")
  if [[ ${required} == yes ]] && ! values::_test "path_value(${path}) != null"; then
    echo "Error: Value ${wanted} required, but doesn't exist" >&2
    return 1
  fi
  values::_query -r "path_value(${path})"
}

# Prints the first value that is there: values::get_first_defined [--config] path...
values::get_first_defined() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  local path
  for path in "$@"; do
    if values::_test "path_exists($(path::_to_json "${path}"))"; then
      values::_query -r "path_value($(path::_to_json "${path}"))"
      return 0
    fi
  done
  echo "Error: None of the values $* exists" >&2
  return 1
}

# Tells whether there is a value, even if it is null: values::has [--config] path.
values::has() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  values::_test "path_exists($(path::_to_json "${1:-}"))"
}

# Tells whether a value is true: values::is_true [--config] path.
values::is_true() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  values::_test "path_value($(path::_to_json "${1:-}")) == true"
}

# Tells whether a value is false: values::is_false [--config] path.
values::is_false() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  values::_test "path_value($(path::_to_json "${1:-}")) == false"
}

# Tells whether a value is null or missing: values::is_null [--config] path.
values::is_null() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  values::_test "path_value($(path::_to_json "${1:-}")) == null"
}

# Tells whether a list holds a value: values::array_has [--config] path value.
values::array_has() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  local value
  value=$(values::_to_json "${2:-}")
  values::_test "path_value($(path::_to_json "${1:-}")) | type == \"array\" and any(. == ${value} or . == (${value} | tostring))"
}

# Changes a value: values::set [--config] path value. Mappings on the way are made.
# A value that is JSON is taken as such, everything else as a text.
values::set() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  local path value
  path=$(path::_to_json "${1:?a path is required}")
  value=$(values::_to_json "${2-}")
  values::_change '
    in_list($path) as $list
    | if $list != null then [whole_list($list; applied({op: "set", path: pointer($path), value: $value}))]
      else [missing($path)[] | {op: "add", path: pointer(.), value: {}}] + [{op: "add", path: pointer($path), value: $value}]
      end' "${path}" "${value}"
}

# Removes a value, if it is there: values::unset [--config] path.
values::unset() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  values::_change '
    in_list($path) as $list
    | if path_exists($path) | not then []
      elif $list != null then [whole_list($list; delpaths([place(pointer($path))]))]
      else [{op: "remove", path: pointer($path)}]
      end' "$(path::_to_json "${1:?a path is required}")" null
}

# Writes an operation: values::json_patch [--config] add|remove|test /json/pointer [value].
values::json_patch() {
  values::_select "$@"
  shift "${VALUES_SKIP}"
  local value=null
  [[ $# -lt 3 ]] || value=$(values::_to_json "$3")
  values::_change "[{op: $(path::_string "${1:?}"), path: $(path::_string "${2:?}")}
    + (if $(path::_string "$1") == \"remove\" then {} else {value: \$value} end)]" '[]' "${value}"
}

# Prints a text as JSON: as it is if it is JSON, otherwise as a string.
values::_to_json() {
  local number='^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$'
  if [[ $1 =~ ${number} || $1 == true || $1 == false || $1 == null ]]; then
    printf '%s' "$1"
  elif [[ $1 =~ ^[[:space:]]*[\{\[\"] ]] && path::_jq -cs 'if length == 1 then .[0] else error("") end' <<< "$1" 2> /dev/null; then
    :
  else
    path::_jq -n --arg text "$1" '$text'
  fi
}

# Functions for programs that make and carry out operations. An item of a list is
# changed by writing the whole list: operations on one place would pile up.
VALUES_JQ_FUNCTIONS='
def escaped: tostring | gsub("~"; "~0") | gsub("/"; "~1");
def pointer($path): $path | map("/" + escaped) | join("");
def parents($path): [range(1; $path | length) as $length | $path[:$length]];
def missing($path): . as $root | parents($path) | map(select(. as $parent | $root | path_value($parent) == null));
def in_list($path): . as $root | [parents($path)[] | select(. as $parent | $root | path_value($parent) | type == "array")][0];
def place($text):
  . as $root
  | reduce ($text | ltrimstr("/") | split("/") | .[] | gsub("~1"; "/") | gsub("~0"; "~")) as $part
      ({at: $root, keys: []};
       (if .at | type == "array" then (if $part == "-" then (.at | length) else ($part | tonumber) end) else $part end) as $key
       | .keys += [$key]
       | .at = (.at | if type == "object" or type == "array" then .[$key] else null end))
  | .keys;
def applied($operation):
  place($operation.path) as $keys
  | if $operation.op == "remove" then delpaths([$keys])
    elif $operation.op == "test" then .
    elif $operation.op == "add" and (getpath($keys[:-1]) | type) == "array" then
      setpath($keys[:-1]; getpath($keys[:-1]) | .[:$keys[-1]] + [$operation.value] + .[$keys[-1]:])
    else setpath($keys; $operation.value) end;
def whole_list($list; changed): {op: "add", path: pointer($list), value: (changed | path_value($list))};
'

# Makes operations with a program, appends them to the patch file and carries them out
# on the file with the values.
values::_change() {
  local answer fresh="${VALUES_FILE}.new"
  answer=$(path::_jq -c --argjson path "$2" --argjson value "$3" "${PATH_JQ_FUNCTIONS} ${VALUES_JQ_FUNCTIONS}
    ($1) as \$operations
    | reduce \$operations[] as \$operation (.; applied(\$operation))
    | ., \$operations[]" "${VALUES_FILE}")
  local operations=''
  [[ ${answer} != *$'\n'* ]] || operations=${answer#*$'\n'}$'\n'
  [[ -z ${VALUES_PATCH_FILE} ]] || printf '%s' "${operations}" >> "${VALUES_PATCH_FILE}"
  # The new file takes the old one's place at once; it is made with the same rights.
  cp -p "${VALUES_FILE}" "${fresh}"
  printf '%s\n' "${answer%%$'\n'*}" > "${fresh}"
  mv -f "${fresh}" "${VALUES_FILE}"
}
