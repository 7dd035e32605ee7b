#!/usr/bin/env bash
# Switches the module night-shift on while a ConfigMap with the label `shift: night` exists anywhere.
# Try: kubectl create configmap owl && kubectl label configmap owl shift=night
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: shifts
  apiVersion: v1
  kind: ConfigMap
  labelSelector:
    matchLabels:
      shift: night
  jqFilter: .metadata.name
  keepFullObjectsInMemory: false
  includeSnapshotsFrom: [shifts]
beforeAll: 20
CONFIG
  exit 0
fi

count=$(jq '.[-1].snapshots.shifts | length' "$BINDING_CONTEXT_PATH")
if (( count > 0 )); then on=true; else on=false; fi
echo "[{\"op\": \"add\", \"path\": \"/nightShiftEnabled\", \"value\": $on}]" > "$VALUES_JSON_PATCH_PATH"
echo "the night shift is $on"
