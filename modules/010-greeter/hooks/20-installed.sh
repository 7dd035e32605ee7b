#!/usr/bin/env bash
# Runs after the chart was installed, and after it was removed.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "afterHelm": 10, "afterDeleteHelm": 10}'
  exit 0
fi

case $(jq -r '.[0].binding' "$BINDING_CONTEXT_PATH") in
  afterHelm) echo "the greeting is installed: $(jq -r .greeter.internal.text "$VALUES_PATH")" ;;
  afterDeleteHelm) echo "the greeting is gone" ;;
esac
