#!/usr/bin/env bash
# Machine: one machine of the infrastructure, which runs at once.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: machine
  apiVersion: cluster.x-k8s.io/v1alpha4
  kind: Machine
  finalizer: cluster.x-k8s.io/machine
  queue: capi-machines
  concurrency: 4
  children:
  - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: SimMachine}
CONFIG
}

__on_reconcile::machine() {
  reconcile::jq 'if .type == "Finalize" then {finalized: true} else {
    # Of the kind whose template it is.
    children: [child("infrastructure.cluster.x-k8s.io/v1alpha4"; $object.spec.infrastructureRef.kind | rtrimstr("Template"); $object.metadata.name)
      | .spec = {template: $object.spec.infrastructureRef.name}],
    status: {phase: (if owned == [] then "Provisioning" else "Running" end)}
  } end'
}

hook::run "$@"
