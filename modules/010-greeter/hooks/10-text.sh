#!/usr/bin/env bash
# Runs before the chart is installed: computes the text from what the user configured.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "beforeHelm": 10}'
  exit 0
fi

name=$(jq -r .greeter.name "$VALUES_PATH")
times=$(jq -r .greeter.times "$VALUES_PATH")
text=""
for ((i = 0; i < times; i++)); do text+="Hello, $name! "; done
jq -n --arg text "${text% }" '[{op: "add", path: "/greeter/internal", value: {text: $text}}]' > "$VALUES_JSON_PATCH_PATH"
