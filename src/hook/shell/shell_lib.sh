#!/usr/bin/env bash
# What a hook gets with `source /shell_lib.sh`: strict mode, a traceback when a
# command fails, and all functions of frameworks/shell.

set -Eeuo pipefail
shopt -s inherit_errexit failglob

# Prints the calls that led to the failed command, the outermost first.
backtrace() {
  local status=$?
  local frame source line
  {
    echo "Traceback (most recent call last):"
    for (( frame = ${#FUNCNAME[@]} - 1; frame > 0; frame-- )); do
      source=${BASH_SOURCE[frame]:-}
      line=${BASH_LINENO[frame - 1]:-0}
      echo "  File \"${source}\", line ${line}, in ${FUNCNAME[frame]}"
      shell_lib::_print_line "${source}" "${line}"
    done
    echo "Exiting with status ${status}"
  } >&2
  return "${status}"
}

# Prints one line of a file without the blanks before it.
shell_lib::_print_line() {
  local text number=0
  [[ -r $1 && ! -d $1 ]] || return 0
  while IFS= read -r text || [[ -n ${text} ]]; do
    number=$(( number + 1 ))
    if (( number == $2 )); then
      echo "    ${text#"${text%%[![:space:]]*}"}"
      return 0
    fi
  done < "$1"
}

# Sets SHELL_FRAMEWORK_FILES to the files of the framework, sorted by name.
# They lie beside this file, or where SHELL_FRAMEWORK_DIR says.
shell_lib::_find_framework() {
  local directory=${SHELL_FRAMEWORK_DIR:-"${BASH_SOURCE[0]%/*}/frameworks/shell"}
  local LC_ALL=C option
  local -a before=()
  # No process is started for this: it is part of each run.
  for option in failglob nullglob nocaseglob globstar; do
    if shopt -q "${option}"; then before+=("-s ${option}"); else before+=("-u ${option}"); fi
  done
  shopt -u failglob
  shopt -s nullglob nocaseglob globstar
  SHELL_FRAMEWORK_FILES=("${directory}"/**/*.sh)
  for option in "${before[@]}"; do
    shopt "${option%% *}" "${option#* }"
  done
}

trap backtrace ERR

shell_lib::_find_framework
for SHELL_FRAMEWORK_FILE in ${SHELL_FRAMEWORK_FILES[@]+"${SHELL_FRAMEWORK_FILES[@]}"}; do
  builtin source "${SHELL_FRAMEWORK_FILE}"
done
unset SHELL_FRAMEWORK_FILE SHELL_FRAMEWORK_FILES
