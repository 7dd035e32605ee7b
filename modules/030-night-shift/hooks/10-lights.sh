#!/usr/bin/env bash
# A module without a chart: only hooks. It also counts its minutes with a schedule and exports a metric.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
onStartup: 10
schedule:
- name: minute
  crontab: "* * * * *"
CONFIG
  exit 0
fi

case $(jq -r '.[0].binding' "$BINDING_CONTEXT_PATH") in
  onStartup) echo "the lights are on" ;;
  minute) echo '{"name": "night_shift_minutes_total", "action": "add", "value": 1}' > "$METRICS_PATH" ;;
esac
