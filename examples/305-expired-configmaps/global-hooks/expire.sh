#!/usr/bin/env bash
# Each minute: deletes ConfigMaps whose time has come, and counts those that wait.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
schedule:
- name: each-minute
  crontab: "* * * * *"
  includeSnapshotsFrom: [expiring]
kubernetes:
- name: expiring
  apiVersion: v1
  kind: ConfigMap
  labelSelector:
    matchExpressions:
    - {key: expires, operator: Exists}
  jqFilter: "{namespace: .metadata.namespace, name: .metadata.name, at: .metadata.annotations[\"expires-at\"]}"
  keepFullObjectsInMemory: false
  # The watch only keeps the snapshot: the clock starts the hook.
  executeHookOnSynchronization: false
  executeHookOnEvent: []
CONFIG
}

__on_schedule::each-minute() {
  context::jq -c '
    .snapshots.expiring[].filterResult
    | select(.at != null and (.at | fromdateiso8601) <= now)
    | {operation: "DeleteInBackground", apiVersion: "v1", kind: "ConfigMap", namespace, name}
  ' > "${KUBERNETES_PATCH_PATH}"
  context::jq -c '{name: "expiring_config_maps", action: "set", value: (.snapshots.expiring | length)}' > "${METRICS_PATH}"
}

hook::run "$@"
