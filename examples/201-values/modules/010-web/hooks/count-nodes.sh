#!/usr/bin/env bash
# Values come from files, from the ConfigMap and from hooks. This hook adds one; the schema demands it before the chart runs.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: nodes
  kind: Node
  jqFilter: .metadata.name
  keepFullObjectsInMemory: false
beforeHelm: 1
CONFIG
  exit 0
fi

if jq -e '.[0].binding == "beforeHelm"' "$BINDING_CONTEXT_PATH" > /dev/null; then
  count=$(jq '.[0].snapshots.nodes | length' "$BINDING_CONTEXT_PATH")
  echo "[{\"op\": \"add\", \"path\": \"/web/nodes\", \"value\": $count}]" > "$VALUES_JSON_PATCH_PATH"
fi
