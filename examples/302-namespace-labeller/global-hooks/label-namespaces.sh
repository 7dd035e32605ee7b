#!/usr/bin/env bash
# Gives every namespace a level of pod security unless it has one.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: namespaces
  apiVersion: v1
  kind: Namespace
  labelSelector:
    matchExpressions:
    - {key: pod-security.kubernetes.io/enforce, operator: DoesNotExist}
  jqFilter: .metadata.name
  keepFullObjectsInMemory: false
  executeHookOnEvent: [Added]
CONFIG
}

label() {
  [[ $1 != kube-* ]] || return 0
  jq -n --arg name "$1" '{
    operation: "MergePatch", apiVersion: "v1", kind: "Namespace", name: $name, ignoreMissingObject: true,
    mergePatch: {metadata: {labels: {"pod-security.kubernetes.io/enforce": "baseline"}}}
  }' >> "${KUBERNETES_PATCH_PATH}"
  echo "namespace $1 gets the level baseline"
}

# At start: all that have no label.
__on_kubernetes::namespaces::synchronization() {
  local name
  for name in $(context::jq -r '.objects[].filterResult'); do
    label "${name}"
  done
}

# Later: a new namespace, or one that lost its label.
__on_kubernetes::namespaces::added() {
  label "$(context::get filterResult)"
}

hook::run "$@"
