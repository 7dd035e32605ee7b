#!/usr/bin/env bash
# Gives each new ConfigMap the label team of its namespace, unless it has one.
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: namespaces
  apiVersion: v1
  kind: Namespace
  jqFilter: '{name: .metadata.name, team: .metadata.labels.team}'
  keepFullObjectsInMemory: false
  executeHookOnSynchronization: false
  executeHookOnEvent: []
kubernetesMutating:
- name: team
  includeSnapshotsFrom: [namespaces]
  failurePolicy: Ignore
  rules:
  - apiGroups: [""]
    apiVersions: [v1]
    resources: [configmaps]
    operations: [CREATE]
CONFIG
  exit 0
fi

jq '.[0]
  | .review.request as $request
  | ([.snapshots.namespaces[].filterResult | select(.name == $request.namespace) | .team][0]) as $team
  | ($request.object.metadata.labels // {}) as $labels
  | if $team == null or ($labels | has("team")) then {allowed: true}
    else {allowed: true, patch: ([{op: "add", path: "/metadata/labels", value: ($labels + {team: $team})}] | tojson | @base64)} end' \
  "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
