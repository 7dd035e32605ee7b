#!/usr/bin/env bash
# MachineSet: as many machines as it says, of its template.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
# A set has 1000 machines at most. Whatever it asks for, a run takes no more than this.
settings: {limits: {memory: 1Gi}}
reconcile:
- name: machine-set
  apiVersion: cluster.x-k8s.io/v1alpha4
  kind: MachineSet
  finalizer: cluster.x-k8s.io/machine-set
  queue: capi
  children:
  - {apiVersion: cluster.x-k8s.io/v1alpha4, kind: Machine, update: Recreate}
CONFIG
}

__on_reconcile::machine-set() {
  reconcile::jq '$object.spec as $spec
    | [.children["Machine.cluster.x-k8s.io"][] | select(.status.phase == "Running" and .metadata.deletionTimestamp == null)] as $running
    | if .type == "Finalize" then [.children["Machine.cluster.x-k8s.io"][].metadata.name]
      | if . == [] then {finalized: true} else {children: [], conditions:
          [condition("Ready"; false; "Deleting"; "waits for the end of Machine \(join(", "))")]} end else {
    children: [range($spec.replicas) | child("cluster.x-k8s.io/v1alpha4"; "Machine"; "\($object.metadata.name)-\(.)")
      | .spec = {clusterName: $spec.clusterName, infrastructureRef: $spec.infrastructureRef}],
    status: {replicas: $spec.replicas, readyReplicas: ($running | length),
      # The template that all of them are of.
      template: ([$running[].spec.infrastructureRef.name] | unique
        | if length == 1 then .[0] elif $spec.replicas == 0 then $spec.infrastructureRef.name else null end)}
  } end'
}

hook::run "$@"
