#!/usr/bin/env bash
# Reads the binding contexts of this run.

# Runs jq over the list of all contexts.
context::global::jq() {
  path::_jq "$@" "${BINDING_CONTEXT_PATH:?}"
}

# Runs jq over the current context.
context::jq() {
  local index=${BINDING_CONTEXT_CURRENT_INDEX:-0}
  local -a arguments=()
  if context::_aim "${index}" "$@"; then
    context::global::jq "${arguments[@]}"
  else
    # Here a second process picks the context: the arguments say more than a program does.
    context::global::jq -c ".[${index}]" | path::_jq "$@"
  fi
}

# Sets `arguments` to the arguments of jq with a program that begins at the context
# with this index. Fails if something else than one program is asked for.
context::_aim() {
  local index=$1 program='' has_program=no
  shift
  while (( $# > 0 )); do
    case $1 in
      --arg | --argjson | --slurpfile | --rawfile)
        (( $# >= 3 )) || return 1
        arguments+=("$1" "$2" "$3")
        shift 2
        ;;
      --raw-output | --compact-output | --exit-status | --join-output | --sort-keys | --ascii-output | --tab)
        arguments+=("$1")
        ;;
      --* | -) return 1 ;;
      -*)
        [[ ${1#-} =~ ^[rcejSaMC]+$ ]] || return 1
        arguments+=("$1")
        ;;
      *)
        [[ ${has_program} == no ]] || return 1
        has_program=yes program=$1
        ;;
    esac
    shift
  done
  # Modules and further inputs have no place inside of another program.
  [[ ${has_program} == yes && ! ${program} =~ (^|[^[:alnum:]_.\$])(input|inputs|import|include|input_line_number)([^[:alnum:]_]|$) ]] ||
    return 1
  arguments+=(".[${index}] | (${program:-.}"$'\n'")")
}

# Prints the value at a path of the current context, `null` if there is none.
# With --required, it is an error if there is none.
context::get() {
  local required=no path
  if [[ ${1:-} == --required ]]; then
    required=yes
    shift
  fi
  path=$(path::_to_json "${1:-}")
  if [[ ${required} == yes ]] && ! context::_test "path_exists(${path})"; then
    echo "Error: Value ${1:-} required, but doesn't exist" >&2
    return 1
  fi
  context::_query -r "path_value(${path})"
}

# Tells whether there is a value at a path, even if it is null.
context::has() {
  context::_test "path_exists($(path::_to_json "${1:-}"))"
}

# Tells whether the value at a path is true.
context::is_true() {
  context::_test "path_value($(path::_to_json "${1:-}")) == true"
}

# Tells whether the value at a path is false.
context::is_false() {
  context::_test "path_value($(path::_to_json "${1:-}")) == false"
}

# Tells whether the value at a path is null or missing.
context::is_null() {
  context::_test "path_value($(path::_to_json "${1:-}")) == null"
}

# Runs a program that may use the functions for paths.
context::_query() {
  local options=$1
  context::global::jq "${options}" "${PATH_JQ_FUNCTIONS} .[${BINDING_CONTEXT_CURRENT_INDEX:-0}] | $2"
}

context::_test() {
  [[ $(context::_query -c "$1") == true ]]
}

# Prints a path in the language of jq: `a.b-c.0` becomes `.a."b-c"[0]`.
context::_convert_user_path_to_jq_path() {
  local index part result=''
  path::_split "${1:-}"
  for (( index = 0; index < ${#PATH_PARTS[@]}; index++ )); do
    part=${PATH_PARTS[index]}
    if [[ ${PATH_QUOTED[index]} == no && ${part} =~ ^[0-9]+$ ]]; then
      result="${result:-.}[${part}]"
    elif [[ ${PATH_QUOTED[index]} == no && ${part} =~ ^[a-zA-Z_][a-zA-Z0-9_]*$ ]]; then
      result+=".${part}"
    else
      result+=".$(path::_string "${part}")"
    fi
  done
  echo "${result:-.}"
}

# Prints a path without its last part.
context::_dirname() {
  local index result=''
  path::_split "${1:-}"
  for (( index = 0; index < ${#PATH_PARTS[@]} - 1; index++ )); do
    result+="${result:+.}$(path::_user_part "${index}")"
  done
  echo "${result}"
}

# Prints the last part of a path.
context::_basename() {
  path::_split "${1:-}"
  (( ${#PATH_PARTS[@]} == 0 )) || echo "${PATH_PARTS[-1]}"
}

path::_user_part() {
  if [[ ${PATH_QUOTED[$1]} == yes ]]; then
    path::_string "${PATH_PARTS[$1]}"
  else
    printf '%s' "${PATH_PARTS[$1]}"
  fi
}
