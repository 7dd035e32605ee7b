#!/usr/bin/env bash
# Watches the greeter's ConfigMap. What it says becomes a value; a changed value installs the chart again.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: greeting
  apiVersion: v1
  kind: ConfigMap
  labelSelector:
    matchLabels:
      app: greeter
  jqFilter: .data.text
  includeSnapshotsFrom: [greeting]
beforeHelm: 10
CONFIG
  exit 0
fi

heard=$(jq -r '.[-1].snapshots.greeting[0].filterResult // "nothing yet"' "$BINDING_CONTEXT_PATH")
jq -n --arg heard "$heard" '[{op: "add", path: "/echo/heard", value: $heard}]' > "$VALUES_JSON_PATCH_PATH"
echo "heard: $heard"
