#!/usr/bin/env bash
# IndexedJob: one pod for each index, some at a time. A pod that fails is made again; what is done is remembered in the status.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: indexed-job
  apiVersion: example.com/v1
  kind: IndexedJob
  children:
  - {apiVersion: v1, kind: Pod}
CONFIG
}

PODS='def index: .metadata.annotations["example.com/index"] | tonumber;
  .object.spec as $spec | (.children.Pod | map(.)) as $pods
  | ((.object.status.completed // []) + [$pods[] | select(.status.phase == "Succeeded") | index] | unique) as $done
  | [$pods[] | select(.status.phase == "Failed")] as $failed |'

__on_reconcile::indexed-job() {
  patch::jq "${PODS}"' $failed[] | gone'
  reconcile::jq "${PODS}"' ([range($spec.completions)] - $done) as $open
    | {children: [$pods[] | select(.status.phase == "Succeeded") | index] | (. + $open[0:$spec.parallelism]) | unique
        | map(. as $index | child("v1"; "Pod"; "\($object.metadata.name)-\($index)") * $spec.template
          | .metadata.annotations["example.com/index"] = "\($index)" | .spec.restartPolicy = "Never"
          | .spec.containers[].env += [{name: "JOB_INDEX", value: "\($index)"}])}
    + {status: {active: ([$pods[] | select(.status.phase != "Succeeded" and .status.phase != "Failed")] | length),
        succeeded: ($done | length), failed: (($object.status.failed // 0) + ($failed | length)), completed: $done},
      conditions: [condition("Complete"; $open == []; if $open == [] then "AsExpected" else "Running" end; "")]}'
}

hook::run "$@"
