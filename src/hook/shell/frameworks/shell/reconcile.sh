#!/usr/bin/env bash
# Controllers: programs of jq that say what should be.

# Functions for `reconcile::jq`. A hash is that of a text that all versions of jq write alike: keys in order, numbers as they are. The input is the context; $context is it, too, and $object its object.
RECONCILE_JQ_FUNCTIONS='
. as $context | .object as $object |
def condition($type; $status; $reason; $message): {
  type: $type, reason: $reason, message: $message,
  status: (if $status == true then "True" elif $status == false then "False"
    elif $status == null then "Unknown" else $status end)
};
def child($version; $kind; $name): {
  apiVersion: $version, kind: $kind, metadata: ({name: $name}
    + if $object.metadata.namespace then {namespace: $object.metadata.namespace} else {} end)
};
def _number: if . == floor and . < 9007199254740992 and . > -9007199254740992 then floor + 0 | tostring
  elif (. < 9007199254740992 and . > 0.001) or (. > -9007199254740992 and . < -0.001) then . + 0 | tostring
  else . * 1.0 | frexp | "\(.[0] * 9007199254740992 | floor)p\(.[1])" end;
def _text: if type == "object" then to_entries | sort_by(.key) | "{\(map("\(.key | tojson):\(.value | _text)") | join(","))}"
  elif type == "array" then "[\(map(_text) | join(","))]"
  elif type == "number" then _number else tojson end;
def hashed($prefix; $max):
  (reduce (_text | explode[]) as $char (5381; (. * 65599 + $char) % 4294967296)) as $sum
  | ([$sum, ($sum / 65536 | floor)] | map(. % 65536) | [.[1], .[0]]
     | map([4096, 256, 16, 1] as $weights | . as $part | [$weights[] | ($part / . | floor) % 16])
     | add | map("0123456789abcdef"[.:. + 1]) | add) as $hash
  | if $max < 10 then error("hashed: max is \($max), but a name with a hash has 10 characters or more")
    elif ($prefix | type) != "string" then error("hashed: the prefix is no text, but of type \($prefix | type)") else . end
  | ($prefix[0:$max - 9] | until(endswith("-") or endswith(".") | not; .[:-1])) as $start
  | if $start == "" then $hash else "\($start)-\($hash)" end;
def owned: [$context.children[][]];
def ready($kind): if $context.children | has($kind) then . else
    error("ready: \($kind) is none of the kinds of children of the binding: \($context.children | keys | join(", "))") end
  | [$context.children[$kind] | .[]] as $all
  | ($all | length) > 0 and ($all | all(
      (.status // {}) as $status
      | ($status.observedGeneration // 0) >= (if $status.observedGeneration then .metadata.generation // 0 else 0 end)
      and if .kind == "Deployment" then ($status.availableReplicas // 0) >= (.spec.replicas // 1)
        elif .kind == "StatefulSet" or .kind == "ReplicaSet" then ($status.readyReplicas // 0) >= (.spec.replicas // 1)
        elif .kind == "DaemonSet" then ($status.numberReady // 0) >= ($status.desiredNumberScheduled // 1)
        elif .kind == "Job" then ($status.succeeded // 0) >= (.spec.completions // 1)
        elif .kind == "Namespace" then $status.phase == "Active"
        else [$status.conditions // [] | .[] | select(.type == "Ready" or .type == "Available") | .status] | index("True") != null
        end));
'

# Functions for operations on objects. The input of each is an object as it should be, but for `gone` and finalizers: one that is there,
# or null if there is none, which leads to nothing. Finalizers are changed in the object as it is then, since others have theirs there.
PATCH_JQ_FUNCTIONS='
def _target: values | {apiVersion: .apiVersion, kind: .kind, name: .metadata.name}
  + if .metadata.namespace then {namespace: .metadata.namespace} else {} end;
def _within($living): . as $wanted
  | if ($wanted | type) == "object" and ($living | type) == "object"
    then all($wanted | keys[]; . as $key | $wanted[$key] | _within($living[$key]))
    else $wanted == $living end;
def ensure($living): if _within($living) then empty else {operation: "CreateOrUpdate", object: .} end;
def create_once: {operation: "CreateIfNotExists", object: .};
def gone: _target + {operation: "DeleteInBackground"};
def _filtered($filter): _target + {operation: "JQPatch", ignoreMissingObject: true, jqFilter: $filter};
def _has_finalizer($name): .metadata.finalizers // [] | index($name) != null;
def finalizer_added($name): if _has_finalizer($name) or .metadata.deletionTimestamp then empty
  else ($name | tojson) as $text | _filtered(
    "if (.metadata.finalizers // [] | index(\($text))) or .metadata.deletionTimestamp then . else .metadata.finalizers += [\($text)] end") end;
def finalizer_removed($name): if _has_finalizer($name)
  then _filtered("if .metadata.finalizers then .metadata.finalizers -= [\($name | tojson)] else . end") else empty end;
def status($living): . as $status | if _within($living.status) then empty
  else $living | _target + {operation: "MergePatch", subresource: "status", ignoreMissingObject: true,
    mergePatch: {status: $status}} end;
'

# Sends each of these results where it belongs: {"metric": …} to the metrics, all others to the operations on objects.
patch::_send() {
  local result
  local -a operations=() metrics=()
  for result in "$@"; do
    case ${result} in
      '{"metric":'*) metrics+=("${result:10:${#result} - 11}") ;;
      *) operations+=("${result}") ;;
    esac
  done
  (( ${#operations[@]} == 0 )) || printf '%s\n' "${operations[@]}" >> "${KUBERNETES_PATCH_PATH:?}"
  (( ${#metrics[@]} == 0 )) || printf '%s\n' "${metrics[@]}" >> "${METRICS_PATH:?}"
}

# Runs a program of jq over the current context. Its first result is what should be, all others are operations on objects, or metrics.
reconcile::jq() {
  local program=${!#} functions="${RECONCILE_JQ_FUNCTIONS}${PATCH_JQ_FUNCTIONS}"
  local -a results
  # On one line, so that errors name the lines of the program.
  path::_own_jq -c "${@:1:$# - 1}" \
    ".[${BINDING_CONTEXT_CURRENT_INDEX:-0}] | ${functions//$'\n'/ } (${program}"$'\n'")" \
    "${BINDING_CONTEXT_PATH:?}" > "${RECONCILE_RESULT_PATH:?}"
  mapfile -t results < "${RECONCILE_RESULT_PATH}"
  if (( ${#results[@]} > 1 )); then
    printf '%s\n' "${results[0]}" > "${RECONCILE_RESULT_PATH}"
    patch::_send "${results[@]:1}"
  fi
}

# Runs a program of jq over the current context. Each result is an operation on an object, or a metric.
patch::jq() {
  local program=${!#} output
  local -a results
  output=$(path::_own_jq -c "${@:1:$# - 1}" \
    ".[${BINDING_CONTEXT_CURRENT_INDEX:-0}] | ${PATCH_JQ_FUNCTIONS//$'\n'/ } (${program}"$'\n'")" \
    "${BINDING_CONTEXT_PATH:?}")
  [[ -n ${output} ]] || return 0
  mapfile -t results <<< "${output}"
  patch::_send "${results[@]}"
}

# Runs the only context of a reconcile binding without a process for that. Fails if there is no function for it.
reconcile::_run() {
  local head
  # The name of the binding comes first, and jq is needed only for one with an escape.
  IFS= read -r -d ',' head < "${BINDING_CONTEXT_PATH:?}" || return 1
  [[ ${head} =~ ^\[\{\"binding\":\"([^\"\\[:space:]]+)\"$ ]] || return 1
  BINDING_CONTEXT_CURRENT_BINDING=${BASH_REMATCH[1]}
  BINDING_CONTEXT_CURRENT_INDEX=0
  # Whether the object is being deleted is asked by the program itself, unless there are two functions.
  type "__on_finalize::${BINDING_CONTEXT_CURRENT_BINDING}" > /dev/null 2>&1 && return 1
  type "__on_reconcile::${BINDING_CONTEXT_CURRENT_BINDING}" > /dev/null 2>&1 || return 1
  export BINDING_CONTEXT_CURRENT_INDEX BINDING_CONTEXT_CURRENT_BINDING
}
