#!/usr/bin/env bash
# Runs the function of a hook that fits each binding context.

# Prints, for each context of `.`, its binding, type and group and the names of the
# functions that may take it, each on a line of its own.
HOOK_JQ_HANDLERS='
def text: if . == null then "" else tostring | gsub("\\s"; " ") end;
def version: tostring | sub("/"; ".");
def handlers:
  (.binding | text) as $name
  | ({onStartup: "startup", beforeAll: "before_all", afterAll: "after_all", beforeHelm: "before_helm",
      afterHelm: "after_helm", beforeDeleteHelm: "before_delete_helm",
      afterDeleteHelm: "after_delete_helm"}[$name]) as $point
  | if .type == null and $point != null then ["__on_\($point)"]
    elif .type == "Synchronization" then ["__on_kubernetes::\($name)::synchronization", "__on_kubernetes::\($name)"]
    elif .type == "Event" then
      (.watchEvent | text | ascii_downcase) as $event
      | ["__on_kubernetes::\($name)::\($event)"]
        + (if $event == "deleted" then [] else ["__on_kubernetes::\($name)::added_or_modified"] end)
        + ["__on_kubernetes::\($name)"]
    elif .type == "Finalize" then ["__on_finalize::\($name)", "__on_reconcile::\($name)"]
    elif .type == "Reconcile" then ["__on_reconcile::\($name)"]
    elif .type == "Group" then ["__on_group::\(.groupName | text)"]
    elif .type == "Schedule" then ["__on_schedule::\($name)"]
    elif .type == "Validating" then ["__on_validating::\($name)"]
    elif .type == "Mutating" then ["__on_mutating::\($name)"]
    elif .type == "Conversion" then
      ["__on_conversion::\($name)::\(.fromVersion | version)::\(.toVersion | version)", "__on_conversion::\($name)"]
    else [] end;
.[] | (.binding | text | if . == "" then "unknown" else . end), (.type | text), (.groupName | text),
  # A function can not have a blank in its name; its parts would be other functions.
  (handlers | map(select(test("\\s") | not)) | join(" "))
'

# Runs the hook: `--config` prints what __config__ prints; otherwise the first
# function that exists is run for each context, in a shell of its own.
hook::run() {
  if [[ ${1:-} == --config ]]; then
    __config__
    exit 0
  fi
  if [[ -n ${RECONCILE_RESULT_PATH:-} ]] && reconcile::_run; then
    # The function is there, and no other one follows it that needs a shell of its own.
    "__on_reconcile::${BINDING_CONTEXT_CURRENT_BINDING}"
    return
  fi
  local -a lines
  local plan
  plan=$(path::_own_jq -r "${HOOK_JQ_HANDLERS}" "${BINDING_CONTEXT_PATH:?}")
  mapfile -t lines <<< "${plan}"
  CONTEXT_LENGTH=$(( ${#plan} == 0 ? 0 : (${#lines[@]} + 3) / 4 ))
  for (( BINDING_CONTEXT_CURRENT_INDEX = 0; BINDING_CONTEXT_CURRENT_INDEX < CONTEXT_LENGTH; BINDING_CONTEXT_CURRENT_INDEX++ )); do
    local first=$(( BINDING_CONTEXT_CURRENT_INDEX * 4 ))
    BINDING_CONTEXT_CURRENT_BINDING=${lines[first]}
    BINDING_CONTEXT_CURRENT_TYPE=${lines[first + 1]:-}
    BINDING_CONTEXT_GROUP_NAME=${lines[first + 2]:-}
    HANDLERS="${lines[first + 3]:-} __main__"
    export BINDING_CONTEXT_CURRENT_INDEX BINDING_CONTEXT_CURRENT_BINDING
    hook::_run_first_available_handler "${HANDLERS}"
  done
}

# Runs the first of these functions that exists. A failure ends the hook.
hook::_run_first_available_handler() {
  local -a names
  local name traps
  read -r -d '' -a names <<< "$*" || true
  for name in "${names[@]}"; do
    type "${name}" > /dev/null 2>&1 || continue
    # One traceback is enough: the one from inside.
    traps=$(trap -p ERR)
    trap - ERR
    (
      eval "${traps}"
      "${name}"
    )
    eval "${traps}"
    return 0
  done
  local list="${names[*]}"
  echo "ERROR: Can't find any handler from the list: ${list// /, }" >&2
  return 1
}

# Prints the names of the functions that may take the current context.
hook::_get_possible_handler_names() {
  local index=${BINDING_CONTEXT_CURRENT_INDEX:-0}
  context::global::jq -r "[.[${index}]] | ${HOOK_JQ_HANDLERS}" | tail -n 1
}

# An old name, which hooks in the field call.
hook::_determine_kubernetes_and_scheduler_handlers() {
  hook::_get_possible_handler_names
}
